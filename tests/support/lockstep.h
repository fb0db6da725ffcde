/* The dialect on the host: warps run one after another, each until its next barrier, their work-items from one exchange to the next, in
   one order or the other, and mma.sync is what PTX's reference says of its fragments. A work-item that misses a barrier, or an exchange
   of its warp, is a fault. What cp.async copies is there when its own work-item has waited for it, and nonsense from the beginning until then.
   Copies are counted whose instruction is as wide as to reach past the end of its buffer, whatever it is told to read of that. */
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <vector>

#define __kernel extern "C"
#define __global
#define __local
#define RESTRICT
#define INLINE
#define REQD_GROUP_RESIDENT(items, groups)
#define RESIDENT_GROUPS(items, groups)
#define CLK_LOCAL_MEM_FENCE 1
#define LOCAL_ARENA(type, name, count) \
    if ((count) > ARENA_WORDS) abort(); \
    type *name = reinterpret_cast<type *>(lockstep_arena)

typedef unsigned int uint;
struct float2 { float x, y; };
struct float4 { float x, y, z, w; };
struct uint4 { uint x, y, z, w; };
#define MAKE_FLOAT2(a, b) float2{(a), (b)}
#define MAKE_FLOAT4(a, b, c, d) float4{(a), (b), (c), (d)}
#define MAKE_UINT4(a, b, c, d) uint4{(a), (b), (c), (d)}
#define SPLAT_FLOAT4(a) splat(a)
static float4 splat(float a) { return {a, a, a, a}; }
#define OF(op)                                                                                                     \
    static float4 operator op(float4 a, float4 b) { return {a.x op b.x, a.y op b.y, a.z op b.z, a.w op b.w}; }     \
    static float4 operator op(float4 a, float b) { return a op splat(b); }                                         \
    static float4 operator op(float a, float4 b) { return splat(a) op b; }
OF(+) OF(-) OF(*) OF(/)
static float4 fma(float4 a, float4 b, float4 c) {
    return {std::fma(a.x, b.x, c.x), std::fma(a.y, b.y, c.y), std::fma(a.z, b.z, c.z), std::fma(a.w, b.w, c.w)};
}
static float rsqrt(float x) { return 1.0f / std::sqrt(x); }
static uint min(uint a, uint b) { return a < b ? a : b; }
template <class To, class From> static To as(From x) { To y; memcpy(&y, &x, sizeof y); return y; }
#define as_float as<float>
#define as_int as<int>

#define VECTORS(type, n)                                                                              \
    static type##n vload##n(size_t i, const type *p) {                                                \
        if (reinterpret_cast<uintptr_t>(p + n * i) % sizeof(type##n)) abort(); /* as CUDA asks for */ \
        type##n v;                                                                                    \
        memcpy(&v, p + n * i, sizeof v);                                                              \
        return v;                                                                                     \
    }                                                                                                 \
    static void vstore##n(type##n v, size_t i, type *p) {                                             \
        if (reinterpret_cast<uintptr_t>(p + n * i) % sizeof(type##n)) abort();                        \
        memcpy(p + n * i, &v, sizeof v);                                                              \
    }
VECTORS(float, 2) VECTORS(float, 4) VECTORS(uint, 4)

alignas(128) static float lockstep_arena[ARENA_WORDS];
static ucontext_t scheduler, contexts[1024];
enum State { RUNNING, WAITING, ENDED };
static State states[1024];
static uint current, group_id;

static size_t get_local_id(uint) { return current; }
static size_t get_group_id(uint) { return group_id; }
static size_t get_global_id(uint) { return group_id * LOCKSTEP_ITEMS + current; }
static void yield(State state) {
    states[current] = state;
    swapcontext(&contexts[current], &scheduler);
}
static void barrier(int) { yield(WAITING); }

static uint rounded_tf32(float x) { return (as<uint>(x) + 0x1000u) & 0xFFFFE000u; }
static uint rounded_bf16(float x) {
    uint bits = as<uint>(x);
    return (bits + ((bits >> 16) & 1) + 0x7FFFu) >> 16;
}

static uint operands[1024][6];
static unsigned long instructions; /* of the matrix units, each counted by every lane */
extern "C" unsigned long matrix_instructions() { return instructions / 32; }

/* c += A B of 16 x 8 words by 8 columns, `values` to a word, the lower half first; B's words of a column are its rows. */
static void mma_sync(float *c, const uint *a, const uint *b, int values) {
    uint lane = current % 32, warp = current - lane;
    ++instructions;
    memcpy(operands[current], a, 16);
    memcpy(operands[current] + 4, b, 8);
    yield(RUNNING);
    for (uint r = 0; r < 4; ++r) {
        uint row = lane / 4 + r / 2 * 8, column = lane % 4 * 2 + r % 2;
        double sum = c[r];
        for (uint word = 0; word < 8; ++word) {
            uint x = operands[warp + row % 8 * 4 + word % 4][row / 8 + 2 * (word / 4)];
            uint y = operands[warp + column * 4 + word % 4][4 + word / 4];
            if (values == 1) {
                sum += double(as<float>(x & 0xFFFFE000u)) * as<float>(y & 0xFFFFE000u);
            } else {
                sum += double(as<float>(x << 16)) * as<float>(y << 16);
                sum += double(as<float>(x & 0xFFFF0000u)) * as<float>(y & 0xFFFF0000u);
            }
        }
        c[r] = float(sum);
    }
    yield(RUNNING);
}

struct Part { float *to; const float *from; uint bytes, width; };
static std::vector<std::vector<Part>> on_their_way[1024]; /* of a work-item, the last of them not committed yet */
static unsigned long copies, outside;
extern "C" unsigned long asynchronous_copies() { return copies; }
extern "C" unsigned long copies_outside() { return outside; }
static std::vector<std::pair<const char *, size_t>> buffers;
extern "C" void add_buffer(const char *start, size_t bytes) { buffers.emplace_back(start, bytes); }

static void copy_async(float *to, const float *from, uint bytes, uint width) {
    if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % width || bytes > width) abort();
    ++copies;
    bool inside = false;
    for (auto [start, size] : buffers) {
        auto at = reinterpret_cast<const char *>(from);
        inside |= at >= start && at + width <= start + size;
    }
    outside += !inside;
    memset(to, 0xFF, width);
    on_their_way[current].back().push_back({to, from, bytes, width});
}
static void commit_parts() { on_their_way[current].emplace_back(); }
static void wait_for_copies(uint left) {
    auto &steps = on_their_way[current];
    for (; steps.size() > left + 1; steps.erase(steps.begin())) {
        for (const Part &copy : steps.front()) {
            memset(copy.to, 0, copy.width);
            memcpy(copy.to, copy.from, copy.bytes);
        }
    }
}

/* Whether what runs next does so from the last to the first, a seeded toss: what is not synchronised is seen in one of both orders. */
static bool backwards() {
    static uint toss = 1;
    toss = toss * 1664525u + 1013904223u;
    return toss >> 31;
}

/* Runs a warp's work-items until they wait or end, all of them; whether they do so together. */
static bool run_warp(uint first, uint last) {
    for (uint i = first; i < last; ++i) {
        if (states[i] == WAITING) states[i] = RUNNING;
    }
    while (states[first] == RUNNING) {
        for (uint i = 0, count = last - first, back = backwards(); i < count; ++i) {
            current = back ? last - 1 - i : first + i;
            swapcontext(&scheduler, &contexts[current]);
        }
        for (uint i = first; i < last; ++i) {
            if (states[i] != states[first]) return false;
        }
    }
    return true;
}

/* Runs `work` as every work-item of so many groups; 0, or 1 where work-items of a group part ways. */
template <class Work> static int run_groups(uint groups, uint items, Work work) {
    static Work *all;
    all = &work;
    std::vector<std::vector<char>> stacks(items, std::vector<char>(1 << 18));
    for (group_id = 0; group_id < groups; ++group_id) {
        memset(lockstep_arena, 0xFF, sizeof lockstep_arena); /* NaN, and nonsense in bytes */
        for (uint i = 0; i < items; ++i) {
            getcontext(&contexts[i]);
            contexts[i].uc_stack.ss_sp = stacks[i].data();
            contexts[i].uc_stack.ss_size = stacks[i].size();
            contexts[i].uc_link = &scheduler;
            states[i] = RUNNING;
            on_their_way[i].assign(1, {});
            makecontext(&contexts[i], +[] { (*all)(); states[current] = ENDED; }, 0);
        }
        do {
            for (uint i = 0, warps = (items + 31) / 32, back = backwards(); i < warps; ++i) {
                uint first = 32 * (back ? warps - 1 - i : i);
                if (!run_warp(first, min(first + 32, items))) return 1;
            }
            for (uint i = 0; i < items; ++i) {
                if (states[i] != states[0]) return 1;
            }
        } while (states[0] != ENDED);
    }
    return 0;
}
