/* What the products on matrix units in CUDA C++ share, beyond the instructions (mma.h).

   Operands lie in shared memory as [part][row][word], 4 words of padding to a row: WORDS is a multiple of 8, so that
   eight rows of four words touch all banks once. ldmatrix gives each lane word t of row g of up to four 8 x 4-word matrices: a whole
   fragment of A, or two of B. Sums are apart (mma.h) in dgamma's products (of split operands: plain TF32 rounds more away itself), and
   with APART in the others. */
#include "mma.h"

#define DEPTH (WORDS * PER_WORD)
#define PITCH (WORDS + 4)
#define WARPS_ACROSS (COLUMNS / WARP_COLUMNS)
#define ITEMS (32 * (ROWS / WARP_ROWS) * WARPS_ACROSS)
#define TILES_DOWN (WARP_ROWS / 16)
#define TILES_ACROSS (WARP_COLUMNS / 8)

#include "products.h"

#ifndef PACK
/* Rounds and splits values to COUNT words of a row, 1 or 4, lo behind hi by `part` words. */
template <int COUNT> void put(uint *row, uint part, const float *v) {
    uint hi[COUNT], lo[COUNT];
    #pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        float first = v[PER_WORD * i], second = v[PER_WORD * i + PER_WORD - 1];
        hi[i] = round_word(first, second);
        lo[i] = round_rest(first, second, hi[i]);
    }
    if constexpr (COUNT == 4) {
        *reinterpret_cast<uint4 *>(row) = make_uint4(hi[0], hi[1], hi[2], hi[3]);
        if (PARTS == 2) *reinterpret_cast<uint4 *>(row + part) = make_uint4(lo[0], lo[1], lo[2], lo[3]);
    } else {
        *row = *hi;
        if (PARTS == 2) row[part] = *lo;
    }
}

/* Maps are copied as they lie in memory, asynchronously, line by line: a line is what is contiguous, a channel's positions
   (NHWC: a position's channels). It is copied by 16-byte parts, which begin at the last multiple of 4 words ahead of it: planes of
   any size are copied so. Words beyond the maps become 0. */
#define LINE_STRIDE (NHWC ? channels : pixels)
#define AHEAD(at) (VECTOR == 4 ? 0 : (at) % 4)
#define EDGE (VECTOR == 4 ? 0 : 4)
#include "copies.h"

/* Begins to copy COUNT lines of WIDTH words, GAP words apart in the copy; `lines` of them, which begin at `start`, have `words`
   words inside the maps, which have `end`. */
template <uint COUNT, uint WIDTH, uint GAP>
void copy_lines(float *to, const float *RESTRICT x, uint start, uint stride, uint lines, uint words, uint end) {
    const uint parts = (WIDTH + EDGE) / 4;
    #pragma unroll 2
    for (uint slot = get_local_id(0); slot < COUNT * parts; slot += ITEMS) {
        uint line = slot / parts, part = slot % parts, at = start + line * stride, from = at - AHEAD(at) + 4 * part;
        uint count = line < lines && from < at + words ? min(at + words - from, 4u) : 0;
        copy_words(to + line * GAP + 4 * part, x, from, count, end);
    }
}

void load_matrices(uint *words, const uint *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"((uint)__cvta_generic_to_shared(row)) : "memory");
}

/* Adds to the sums what A's fragments make with 8 words of the columns whose staged rows begin at `b_row`; with OWN by way of
   sums of their own. */
template <bool OWN> void multiply_words(float (*sum)[TILES_ACROSS][4], const uint (*x)[TILES_DOWN][4], const uint *b_row) {
    #pragma unroll
    for (int j = 0; j < TILES_ACROSS; j += 2) {
        uint y[PARTS][4];
        #pragma unroll
        for (int q = 0; q < PARTS; ++q) load_matrices(y[q], b_row + (q * COLUMNS + 8 * j) * PITCH);
        #pragma unroll
        for (int i = 0; i < TILES_DOWN; ++i) {
            #pragma unroll
            for (int h = 0; h < 2; ++h) {
                float own[4] = {}, *to = OWN ? own : sum[i][j + h];
                if (PARTS == 2) {
                    multiply(to, x[0][i], y[PARTS - 1] + 2 * h);
                    multiply(to, x[PARTS - 1][i], y[0] + 2 * h);
                }
                multiply(to, x[0][i], y[0] + 2 * h);
                #pragma unroll
                for (int r = 0; OWN && r < 4; ++r) sum[i][j + h][r] += own[r];
            }
        }
    }
}

void unpack(uint *words, uint4 four) {
    words[0] = four.x;
    words[1] = four.y;
    words[2] = four.z;
    words[3] = four.w;
}

/* Stores neighbouring positions as what is not needed again (__stcs), so that operands, which are, stay in the cache. */
void store_two(float *to, uint at, uint stride, const float *v, bool both) {
    if (VECTOR == 4 && !NHWC) {
        __stcs(reinterpret_cast<float2 *>(to + at), MAKE_FLOAT2(v[0], v[1]));
    } else {
        __stcs(to + at, v[0]);
        if (both) __stcs(to + at + stride, v[1]);
    }
}
#endif
