/* What the products on matrix units share. CUDA C++ (compute capability 8.0 and later): OpenCL has no name for the units,
   so that the instructions are inline PTX.

   FORMAT  0: TF32, mma.sync.m16n8k8, one value to a 32-bit word; 1: bf16, mma.sync.m16n8k16, two, the lower half first.
   TERMS   1: operands rounded; 3: each operand is split into hi = round(x) and lo = round(x - hi) while it is staged,
           and hi lo + lo hi + hi hi is summed; lo lo is below rounding. (S. Markidis et al., "NVIDIA Tensor Core
           Programmability, Performance & Precision", IPDPSW 2018; H. Ootomo, R. Yokota, "Recovering single precision
           accuracy from Tensor Cores", IJHPCA 2022.)

   The units truncate what they add to, which adds up over a long inner dimension: dgamma's products (of split operands: plain
   TF32 rounds more away itself), and with APART the others', are summed apart and added to FP32 registers.

   Operands lie in shared memory as [part][row][word], 4 words of padding to a row: WORDS is a multiple of 8, so that
   eight rows of four words touch all banks once. In words both formats have one fragment layout; with g = lane / 4
   and t = lane % 4:
     A (16 rows x 8 words)    a0 (g, t)   a1 (g + 8, t)   a2 (g, t + 4)   a3 (g + 8, t + 4)
     B (8 columns x 8 words)  b0 (g, t)   b1 (g, t + 4)
     sums (16 x 8)            c0 (g, 2t)  c1 (g, 2t + 1)  c2 (g + 8, 2t)  c3 (g + 8, 2t + 1)
   ldmatrix gives each lane word t of row g of up to four 8 x 4-word matrices: a whole fragment of A, or two of B. */
#define PER_WORD (FORMAT ? 2 : 1)
#define DEPTH (WORDS * PER_WORD)
#define PITCH (WORDS + 4)
#define PARTS (TERMS == 3 ? 2 : 1)
#define WARPS_ACROSS (COLUMNS / WARP_COLUMNS)
#define ITEMS (32 * (ROWS / WARP_ROWS) * WARPS_ACROSS)
#define TILES_DOWN (WARP_ROWS / 16)
#define TILES_ACROSS (WARP_COLUMNS / 8)

#include "products.h"

/* One word of an operand, and what rounding left of it: of TF32 the first value alone. */
uint round_word(float first, float second) {
    uint word;
#if FORMAT /* whose upper half is the instruction's first source */
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
#else
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(first));
#endif
    return word;
}

uint round_rest(float first, float second, uint word) {
#if FORMAT
    return round_word(first - as_float(word << 16), second - as_float(word & 0xFFFF0000u));
#else
    return round_word(first - as_float(word), 0.0f);
#endif
}

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

void copy_part(float *to, const float *from, uint bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"((uint)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes) : "memory");
}

/* Begins to copy COUNT lines of WIDTH words, GAP words apart in the copy; `lines` of them, which begin at `start`, have `words`
   words inside the maps. */
template <uint COUNT, uint WIDTH, uint GAP>
void copy_lines(float *to, const float *RESTRICT x, uint start, uint stride, uint lines, uint words) {
    const uint parts = (WIDTH + EDGE) / 4;
    #pragma unroll 2
    for (uint slot = get_local_id(0); slot < COUNT * parts; slot += ITEMS) {
        uint line = slot / parts, part = slot % parts, at = start + line * stride, from = at - AHEAD(at) + 4 * part;
        uint count = line < lines && from < at + words ? min(at + words - from, 4u) : 0;
        copy_part(to + line * GAP + 4 * part, x + (count ? from : 0), 4 * count);
    }
}

void load_matrices(uint *words, const uint *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"((uint)__cvta_generic_to_shared(row)) : "memory");
}

#if FORMAT
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
#else
#define MMA "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
#endif
void multiply(float *c, const uint *a, const uint *b) {
    asm volatile(MMA " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
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
