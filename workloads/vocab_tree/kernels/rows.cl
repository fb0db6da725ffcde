/* Descriptors through all levels of a tree, for processors with few cores and wide vectors. Nodes and words as the
   query module has them; the centres less 32768, as signed 16-bit integers: that takes the same from every score of a
   descriptor, and processors add products of such integers in pairs. A node's centres are read as they lie, in order.

   A work-item takes HELD descriptors through a level before the next: where one waits for its node's centres, the
   processor goes on with others.

   VNNI: the products are added to the sums, too, in one instruction by inline assembly (PoCL's compiler takes it).

   Macros: K, DIMS, HELD, CENTRES (whose sums are formed side by side, a multiple of 4), VNNI. OpenCL alone: vectors of
   16-bit integers are not in the dialect. */
#define BLOCKS ((K + 3) / 4)

#if DIMS % 32 == 0
#define LANES 32
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
#define LANES 16
typedef short16 Shorts;
typedef uchar16 Bytes;
typedef int16 Products;
typedef int8 Sums;
#define EVENS(p) __builtin_shufflevector((p), (p), 0, 2, 4, 6, 8, 10, 12, 14)
#define ODDS(p) __builtin_shufflevector((p), (p), 1, 3, 5, 7, 9, 11, 13, 15)
#define EIGHT(sums) (sums)
#endif
#define UNITS (DIMS / LANES)

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

/* Which of a node's centres is the nearest to a point, the lowest of equal ones. */
INLINE uint nearest_of(__global const uchar *point, __global const short *centres, __global const int *halves) {
    Shorts x[UNITS];
    #pragma unroll
    for (int u = 0; u < UNITS; ++u) x[u] = __builtin_convertvector(((__global const Bytes *)point)[u], Shorts);
    int4 best = -INT_MAX - 1, nearest = 0, number = MAKE_INT4(0, 1, 2, 3);
    for (int k = 0; k < K; k += CENTRES) {
        Sums sum[CENTRES];
        #pragma unroll
        for (int j = 0; j < CENTRES; ++j) sum[j] = 0;
        #pragma unroll
        for (int u = 0; u < UNITS; ++u) {
            #pragma unroll
            for (int j = 0; j < CENTRES; ++j)
                if (k + j < K) ADD_PRODUCTS(sum[j], x[u], centres + ((k + j) * UNITS + u) * LANES);
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

__kernel EXPLICIT_VECTORS(int8) REQD_GROUP(1)
void descend_rows(__global const uchar *RESTRICT points, __global const short *RESTRICT centres,
                  __global const int *RESTRICT halves, __global const uint *RESTRICT children,
                  __global const uint *RESTRICT leaves, uint count, __global uint *RESTRICT words) {
    uint first = get_group_id(0) * HELD, here = min((uint)HELD, count - first);
    uint nodes[HELD];
    for (uint i = 0; i < here; ++i) nodes[i] = 0;
    for (uint left = here; left > 0;) {
        left = 0;
        for (uint i = 0; i < here; ++i) {
            size_t node = nodes[i];
            if (node == UINT_MAX) continue;
            size_t child = node * K + nearest_of(points + (size_t)(first + i) * DIMS, centres + node * (K * DIMS),
                                                 halves + node * (4 * BLOCKS));
            uint next = children[child];
            if (next == UINT_MAX) words[first + i] = leaves[child];
            else ++left;
            nodes[i] = next;
        }
    }
}
