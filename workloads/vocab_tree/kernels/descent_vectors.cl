/* The nearest centre for processors with few cores and wide vectors. Centres are stored less 32768, as signed 16-bit integers:
   that takes the same from every score of a descriptor, and processors add products of such integers in pairs. A node's
   centres are read as they lie, in order. Where a descriptor waits for its node's centres, the processor goes on with others.

   VNNI: the products are added to the sums, too, in one instruction by inline assembly (PoCL's compiler takes it).

   Macros: VNNI, CENTRES (whose sums are formed side by side, a multiple of 4). OpenCL alone: vectors of 16-bit integers are not
   in the dialect. */
#define DESCENT EXPLICIT_VECTORS(int8) REQD_GROUP(1)
#define TEAM 1
#define TEAM_MEMORY(team) const Team team = {0}
#define BLOCKS ((K + 3) / 4)

typedef uchar Points;
typedef short Centres;
typedef struct {
    uint lane;
} Team;

#if DIMS % 32 == 0
#define WIDTH 32
typedef short Shorts __attribute__((ext_vector_type(32)));
typedef uchar Bytes __attribute__((ext_vector_type(32)));
typedef int Products __attribute__((ext_vector_type(32)));
typedef int16 Sums;
#define EVENS(p) \
    __builtin_shufflevector((p), (p), 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define ODDS(p) \
    __builtin_shufflevector((p), (p), 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#define EIGHT(sums) \
    (__builtin_shufflevector((sums), (sums), 0, 1, 2, 3, 4, 5, 6, 7) + \
     __builtin_shufflevector((sums), (sums), 8, 9, 10, 11, 12, 13, 14, 15))
#else
#define WIDTH 16
typedef short16 Shorts;
typedef uchar16 Bytes;
typedef int16 Products;
typedef int8 Sums;
#define EVENS(p) __builtin_shufflevector((p), (p), 0, 2, 4, 6, 8, 10, 12, 14)
#define ODDS(p) __builtin_shufflevector((p), (p), 1, 3, 5, 7, 9, 11, 13, 15)
#define EIGHT(sums) (sums)
#endif
#define UNITS (DIMS / WIDTH)

/* sum plus the products of x and the 16-bit integers at c, added in pairs. */
#if VNNI
#define ADD_PRODUCTS(sum, x, c) __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(x), "m"(*(__global const Shorts *)(c)))
#else
Sums in_pairs(Products products) { return EVENS(products) + ODDS(products); }
#define PRODUCTS_OF(v) __builtin_convertvector((v), Products)
#define ADD_PRODUCTS(sum, x, c) (sum) += in_pairs(PRODUCTS_OF(x) * PRODUCTS_OF(*(__global const Shorts *)(c)))
#endif

/* The compilers of CPU runtimes are Clang, whose shuffles become one instruction. */
#define WORDS_LOW(a, b) __builtin_shufflevector((a), (b), 0, 8, 1, 9, 4, 12, 5, 13)
#define WORDS_HIGH(a, b) __builtin_shufflevector((a), (b), 2, 10, 3, 11, 6, 14, 7, 15)
#define PAIRS_LOW(a, b) __builtin_shufflevector((a), (b), 0, 1, 8, 9, 4, 5, 12, 13)
#define PAIRS_HIGH(a, b) __builtin_shufflevector((a), (b), 2, 3, 10, 11, 6, 7, 14, 15)

#define HALVES_SWAPPED(a) __builtin_shufflevector((a), (a), 2, 3, 0, 1)
#define PAIRS_SWAPPED(a) __builtin_shufflevector((a), (a), 1, 0, 3, 2)

/* The component sums of four vectors. */
int4 sums_of(int8 a, int8 b, int8 c, int8 d) {
    int8 ab = WORDS_LOW(a, b) + WORDS_HIGH(a, b), cd = WORDS_LOW(c, d) + WORDS_HIGH(c, d);
    int8 all = PAIRS_LOW(ab, cd) + PAIRS_HIGH(ab, cd);
    return __builtin_shufflevector(all, all, 0, 1, 2, 3) + __builtin_shufflevector(all, all, 4, 5, 6, 7);
}

typedef struct {
    Shorts units[UNITS];
} Descriptor;

INLINE void take(Descriptor *x, const Team *team, __global const uchar *points, uint i) {
    __global const Bytes *point = (__global const Bytes *)(points + (size_t)i * DIMS);
    #pragma unroll
    for (int u = 0; u < UNITS; ++u) x->units[u] = __builtin_convertvector(point[u], Shorts);
}

/* The lowest of equal ones. */
INLINE uint nearest_of(const Descriptor *x, const Team *team, __global const short *all, __global const int *all_halves,
                       uint node) {
    __global const short *centres = all + (size_t)node * (K * DIMS);
    __global const int *halves = all_halves + (size_t)node * (4 * BLOCKS);
    int4 best = -INT_MAX - 1, nearest = 0, number = MAKE_INT4(0, 1, 2, 3);
    for (int k = 0; k < K; k += CENTRES) {
        Sums sum[CENTRES];
        #pragma unroll
        for (int j = 0; j < CENTRES; ++j) sum[j] = 0;
        #pragma unroll
        for (int u = 0; u < UNITS; ++u) {
            #pragma unroll
            for (int j = 0; j < CENTRES; ++j)
                if (k + j < K) ADD_PRODUCTS(sum[j], x->units[u], centres + ((k + j) * UNITS + u) * WIDTH);
        }
        #pragma unroll
        for (int j = 0; j < CENTRES; j += 4) {
            if (k + j < K) { /* a block's centres past the last one have INT_MAX in halves */
                int4 score = sums_of(EIGHT(sum[j]), EIGHT(sum[j + 1]), EIGHT(sum[j + 2]), EIGHT(sum[j + 3]));
                score -= vload4((k + j) / 4, halves);
                int4 better = score > best;
                best = select(best, score, better);
                nearest = select(nearest, number, better);
                number += 4;
            }
        }
    }
    /* The nearest of four classes of centres. Branches on what no processor foresees cost more than selections. */
    int4 other = HALVES_SWAPPED(best), others = HALVES_SWAPPED(nearest);
    int4 better = other > best || (other == best && others < nearest);
    best = select(best, other, better);
    nearest = select(nearest, others, better);
    other = PAIRS_SWAPPED(best);
    others = PAIRS_SWAPPED(nearest);
    better = other > best || (other == best && others < nearest);
    nearest = select(nearest, others, better);
    return (uint)nearest.x;
}
