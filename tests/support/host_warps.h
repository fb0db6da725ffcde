/* What CUDA C++ kernels of k-means need beyond lockstep.h: instructions of `warp.h`, with the fragments of matrices as the PTX ISA manual
   defines them. Asynchronous copies come as late as they may. */
#define LOCKSTEP_ITEMS 0 /* no kernel here asks for global ids */
#define ARENA_WORDS (1 << 18)
#include "lockstep.h"

typedef unsigned char uchar;
typedef unsigned short ushort;
struct uint2 { uint x, y; };
struct int2 { int x, y; };

static const uchar *pointed[1024];

#define __device__
#define __forceinline__ inline
#define REQD_GROUP(x)
#define INT_MAX 2147483647

static void __syncwarp() { yield(RUNNING); }
#define HW_THREAD_SYNC __syncwarp
static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }
static uint atomic_add(uint *p, uint v) { return (*p += v) - v; }
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
    memcpy(operands[current], &value, 4);
    __syncwarp();
    memcpy(&value, operands[current ^ across], 4);
    __syncwarp();
    return value;
}

static void load(uint *m, const void *row, bool transposed) {
    uint lane = current % 32, warp = current - lane, g = lane / 4, t = lane % 4;
    pointed[current] = (const uchar *)row;
    __syncwarp();
    for (int matrix = 0; matrix < 4; ++matrix) {
        ushort pair[2];
        for (uint e = 0; e < 2; ++e) {
            uint line = transposed ? 2 * t + e : g, column = transposed ? g : 2 * t + e;
            memcpy(pair + e, pointed[warp + 8 * matrix + line] + 2 * column, 2);
        }
        m[matrix] = pair[0] | (uint)pair[1] << 16;
    }
    __syncwarp();
}

static void load_matrices(uint *m, const void *row) { load(m, row, false); }
static void load_transposed(uint *m, const void *row) { load(m, row, true); }

static void product(int *c, uint (&own)[6], uint depth) {
    uint lane = current % 32, warp = current - lane;
    memcpy(operands[current], own, sizeof own);
    __syncwarp();
    for (int r = 0; r < 4; ++r) {
        uint row = lane / 4 + r / 2 * 8, column = lane % 4 * 2 + r % 2;
        for (uint k = 0; k < depth; ++k) {
            uint within = k % 16 / 4, x = operands[warp + row % 8 * 4 + within][row / 8 + k / 16 * 2];
            uint y = operands[warp + column * 4 + within][4 + k / 16];
            c[r] += (x >> 8 * (k % 4) & 255) * (y >> 8 * (k % 4) & 255);
        }
    }
    __syncwarp();
}

static void multiply(int *c, const uint *a, uint b0, uint b1) {
    uint own[6] = {a[0], a[1], a[2], a[3], b0, b1};
    product(c, own, 32);
}

static void multiply_half(int *c, const uint *a, uint b) {
    uint own[6] = {a[0], a[1], 0, 0, b, 0};
    product(c, own, 16);
}

static void copy_async(void *to, const void *from) { copy_async((float *)to, (const float *)from, 16, 16); }
static void commit_copies() { commit_parts(); }
template <int left>
static void await_copies() { wait_for_copies(left); }

static uint address(const void *p) { return (const char *)p - (const char *)lockstep_arena; }
static void add_local(uint at, uint value) { atomic_add((uint *)((char *)lockstep_arena + at), value); }
static void prefetch_l2(const void *) {}
