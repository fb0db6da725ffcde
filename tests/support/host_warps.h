/* CUDA C++ kernels on the host, a thread to a work-item: what they need of the dialect and of `warp.h`, with the fragments of
   matrices as the PTX ISA manual defines them. Asynchronous copies come as late as they may. */
#include <algorithm>
#include <barrier>
#include <cstring>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
struct uint2 { uint x, y; };
struct int2 { int x, y; };
struct uint4 { uint x, y, z, w; };
struct Copy { void *to; const void *from; };

alignas(128) static uchar arena_of_group[1 << 20];
static std::unique_ptr<std::barrier<>> group_barrier;
static std::vector<std::unique_ptr<std::barrier<>>> warp_barriers;
static uint exchanged[32][32][6]; /* warp, lane, registers */
static const uchar *pointed[32][32];
static thread_local uint own_item, own_group;
static thread_local std::vector<Copy> begun;
static thread_local std::deque<std::vector<Copy>> committed;

#define __kernel extern "C"
#define __global
#define __local
#define __device__
#define __forceinline__ inline
#define INLINE inline
#define RESTRICT
#define REQD_GROUP(x)
#define CLK_LOCAL_MEM_FENCE 1
#define INT_MAX 2147483647
#define LOCAL_ARENA(type, name, count)                        \
    static_assert(sizeof(type) * (count) <= sizeof(arena_of_group)); \
    type *name = (type *)arena_of_group

static uint get_local_id(int) { return own_item; }
static uint get_group_id(int) { return own_group; }
static void barrier(int) { group_barrier->arrive_and_wait(); }
static void __syncwarp() { warp_barriers[own_item / 32]->arrive_and_wait(); }
#define HW_THREAD_SYNC __syncwarp
static uint min(uint a, uint b) { return a < b ? a : b; }
static int min(int a, int b) { return a < b ? a : b; }
static uint4 vload4(size_t i, const uint *p) { return ((const uint4 *)p)[i]; }
static void vstore4(uint4 v, size_t i, uint *p) { ((uint4 *)p)[i] = v; }
static uint atomic_add(uint *p, uint v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
static uint atomic_inc(uint *p) { return atomic_add(p, 1); }

static uint __byte_perm(uint a, uint b, uint selectors) {
    unsigned long bytes = (unsigned long)b << 32 | a;
    uint word = 0;
    for (int i = 0; i < 4; ++i) word |= (uint)(bytes >> 8 * (selectors >> 4 * i & 7) & 255) << 8 * i;
    return word;
}

static uint __dp4a(uint a, uint b, uint c) {
    for (int i = 0; i < 32; i += 8) c += (a >> i & 255) * (b >> i & 255);
    return c;
}

template <class T>
static T __shfl_xor_sync(uint, T value, int across) {
    uint warp = own_item / 32, lane = own_item % 32;
    memcpy(exchanged[warp][lane], &value, 4);
    __syncwarp();
    memcpy(&value, exchanged[warp][lane ^ across], 4);
    __syncwarp();
    return value;
}

static void load(uint *m, const void *row, bool transposed) {
    uint warp = own_item / 32, lane = own_item % 32, g = lane / 4, t = lane % 4;
    pointed[warp][lane] = (const uchar *)row;
    __syncwarp();
    for (int matrix = 0; matrix < 4; ++matrix) {
        ushort pair[2];
        for (uint e = 0; e < 2; ++e) {
            uint line = transposed ? 2 * t + e : g, column = transposed ? g : 2 * t + e;
            memcpy(pair + e, pointed[warp][8 * matrix + line] + 2 * column, 2);
        }
        m[matrix] = pair[0] | (uint)pair[1] << 16;
    }
    __syncwarp();
}

static void load_matrices(uint *m, const void *row) { load(m, row, false); }
static void load_transposed(uint *m, const void *row) { load(m, row, true); }

static void multiply(int *c, const uint *a, uint b0, uint b1) {
    uint warp = own_item / 32, lane = own_item % 32, own[6] = {a[0], a[1], a[2], a[3], b0, b1};
    memcpy(exchanged[warp][lane], own, sizeof own);
    __syncwarp();
    for (int r = 0; r < 4; ++r) {
        uint row = lane / 4 + r / 2 * 8, column = lane % 4 * 2 + r % 2;
        for (uint k = 0; k < 32; ++k) {
            uint within = k % 16 / 4, x = exchanged[warp][row % 8 * 4 + within][row / 8 + k / 16 * 2];
            uint y = exchanged[warp][column * 4 + within][4 + k / 16];
            c[r] += (x >> 8 * (k % 4) & 255) * (y >> 8 * (k % 4) & 255);
        }
    }
    __syncwarp();
}

static void copy_async(void *to, const void *from) { begun.push_back({to, from}); }

static void commit_copies() {
    committed.push_back(begun);
    begun.clear();
}

template <int left>
static void await_copies() {
    for (; committed.size() > left; committed.pop_front()) {
        for (Copy copy : committed.front()) memcpy(copy.to, copy.from, 16);
    }
}

static void prefetch_l2(const void *) {}

/* Runs work-groups one after the other; local memory holds nonsense at first. */
template <class Kernel>
static void launch(uint groups, uint items, Kernel kernel) {
    for (uint group = 0; group < groups; ++group) {
        memset(arena_of_group, 0xCD, sizeof arena_of_group);
        group_barrier = std::make_unique<std::barrier<>>(items);
        warp_barriers.clear();
        for (uint warp = 0; warp < items / 32; ++warp) warp_barriers.push_back(std::make_unique<std::barrier<>>(32));
        std::vector<std::thread> threads;
        for (uint item = 0; item < items; ++item) {
            threads.emplace_back([=] {
                own_item = item;
                own_group = group;
                kernel();
            });
        }
        for (std::thread &thread : threads) thread.join();
    }
}
