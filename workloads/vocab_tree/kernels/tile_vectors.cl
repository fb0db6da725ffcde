/* Tiles for processors with few cores and wide vectors. VECTOR points at a time: their rows are turned into vectors of the same
   four dimensions of all of them, a multiply-add of bytes for each centre and half of its 16 bits; then rows are added in 16-bit
   halves, a class's emptied every HELD of its points.

   VNNI: the processor's dot product of four bytes by inline assembly (PoCL's compiler takes it). Its second operand is
   signed, so both bytes of a centre are stored less 128: that adds the same to every score of a point. Without it the
   compiler gets products of 16-bit integers, added in pairs, the centre less 32768: Intel's makes VNNI's `vpdpwssd` of them.

   AHEAD: points fetched ahead, because a block of rows fills what the processor reorders. OpenCL alone: vectors of so many
   integers are not in the dialect. */
#include "tile.cl"

#if VECTOR
#define STRIDE 1
#define WORDS_PUT WORDS
#define MASK 0x00FF00FFu
#define HELD 256

/* Words of a and b alternate, by 128-bit lanes: the lower two of each lane, or the upper two. The compilers of CPU runtimes
   are Clang, whose shuffles become one instruction. */
#define EIGHT(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7)
#if VECTOR == 16
typedef int16 Integers;
#define WORDS_LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define WORDS_HIGH(a, b) __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define PAIRS_LOW(a, b) __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define PAIRS_HIGH(a, b) __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
#define SIXTEEN(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define ROWS4(i) SIXTEEN(EIGHT(FOUR(i), FOUR(i + 4)), EIGHT(FOUR(i + 8), FOUR(i + 12)))
#define STORE_INTEGERS vstore16
#define BROADCAST "%{1to16%}"
typedef short Shorts __attribute__((ext_vector_type(32)));
typedef int Products __attribute__((ext_vector_type(32)));
#define EVENS(p) __builtin_shufflevector(p, p, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define ODDS(p) __builtin_shufflevector(p, p, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#else
typedef int8 Integers;
#define WORDS_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define WORDS_HIGH(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define PAIRS_LOW(a, b) __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define PAIRS_HIGH(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define ROWS4(i) EIGHT(FOUR(i), FOUR(i + 4))
#define STORE_INTEGERS vstore8
#define BROADCAST "%{1to8%}"
typedef short16 Shorts;
typedef int16 Products;
#define EVENS(p) __builtin_shufflevector(p, p, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODDS(p) __builtin_shufflevector(p, p, 1, 3, 5, 7, 9, 11, 13, 15)
#endif
#define FOUR(i) vload4(0, (__global const int *)block->rows + block->at[i] + w)

typedef struct {
    __global const uint *rows;
    uint at[VECTOR];
    int label[VECTOR];
} Block;
typedef struct {
    Integers score, label;
} Best;
typedef struct {
    uint none; /* what is held back is in local memory */
} Added;

typedef struct {
#if VNNI
    Integers upper[CENTRES], lower[CENTRES];
#else
    Integers whole[CENTRES];
#endif
} Scores;

/* Words for multiply-adds, [word][centre][2]: VNNI's upper and lower bytes of four dimensions, or two dimensions each. */
#if VNNI
#define PADDING 0x80808080u /* zeros, once 128 is taken from each byte */
#define FIRST(a, b) (UPPER(a, b) ^ 0x80808080u)
#define SECOND(a, b) (LOWER(a, b) ^ 0x80808080u)
#define MULTIPLY(acc, x, c) __asm__("vpdpbusd %2" BROADCAST ", %1, %0" : "+v"(acc) : "v"(x), "m"(c))
#else
#define PADDING 0x80008000u
#define FIRST(a, b) (((a) & 0xFFFFu | (b) << 16) ^ 0x80008000u)
#define SECOND(a, b) (((a) >> 16 | (b) & 0xFFFF0000u) ^ 0x80008000u)
/* acc plus products of 16-bit integers, added in pairs: an instruction of processors that compilers know. */
INLINE Integers multiply(Integers acc, Integers x, Integers c) {
    Products products = __builtin_convertvector(__builtin_astype(x, Shorts), Products);
    products *= __builtin_convertvector(__builtin_astype(c, Shorts), Products);
    return acc + (EVENS(products) + ODDS(products));
}
#define MULTIPLY(acc, x, c) (acc) = multiply((acc), (x), (Integers)(c))
#endif

INLINE void put_centre(__local uint *parts, uint k, uint w, uint a, uint b) {
    parts[(w * RESIDENT + k) * 2] = FIRST(a, b);
    parts[(w * RESIDENT + k) * 2 + 1] = SECOND(a, b);
}

INLINE void begin(const Run *run) {}

INLINE void take(const Run *run, Block *block, uint step) {
    uint start = step * ROWS;
    block->rows = run->points + (size_t)start * WORDS;
    #pragma unroll
    for (uint i = 0; i < VECTOR; ++i) block->at[i] = min(i, run->length - start - 1) * WORDS;
}

INLINE void tile_clear(Scores *scores) {
    #pragma unroll
    for (int c = 0; c < CENTRES; ++c) {
#if VNNI
        scores->upper[c] = scores->lower[c] = 0;
#else
        scores->whole[c] = 0;
#endif
    }
}

INLINE void tile_multiply(Scores *scores, const Run *run, const Block *block, uint k, uint unit) {
    uint w = 4 * unit;
    Integers a = ROWS4(0), b = ROWS4(1), c = ROWS4(2), d = ROWS4(3);
    Integers ab = WORDS_LOW(a, b), cd = WORDS_LOW(c, d), x[4];
    x[0] = PAIRS_LOW(ab, cd);
    x[1] = PAIRS_HIGH(ab, cd);
    ab = WORDS_HIGH(a, b);
    cd = WORDS_HIGH(c, d);
    x[2] = PAIRS_LOW(ab, cd);
    x[3] = PAIRS_HIGH(ab, cd);
    #pragma unroll
    for (int q = 0; q < 4; ++q) {
        __local const int *part = (__local const int *)run->parts + ((w + q) * RESIDENT + k) * 2;
#if !VNNI
        Integers even = x[q] & (int)MASK, odd = x[q] >> 8 & (int)MASK;
#endif
        #pragma unroll
        for (int i = 0; i < CENTRES; ++i) {
#if VNNI
            MULTIPLY(scores->upper[i], x[q], part[2 * i]);
            MULTIPLY(scores->lower[i], x[q], part[2 * i + 1]);
#else
            MULTIPLY(scores->whole[i], even, part[2 * i]);
            MULTIPLY(scores->whole[i], odd, part[2 * i + 1]);
#endif
        }
    }
}

INLINE void begin_best(Best *best) {
    best->score = -INT_MAX - 1;
    best->label = 0;
}

INLINE void tile_best(Best *best, const Scores *scores, const Run *run, uint k) {
    #pragma unroll
    for (int c = 0; c < CENTRES; ++c) {
#if VNNI
        Integers score = scores->upper[c] * 256 + scores->lower[c] - run->half_norm[k + c];
#else
        Integers score = scores->whole[c] - run->half_norm[k + c];
#endif
        Integers better = score > best->score, number = (int)k + c;
        best->score = select(best->score, score, better);
        best->label = select(best->label, number, better);
    }
}

INLINE void tile_labels(const Run *run, Block *block, const Best *best, uint here) {
    STORE_INTEGERS(best->label, 0, block->label);
}

INLINE void begin_added(Added *added) { added->none = 0; }

INLINE void add_sum(const Run *run, uint at, uint value) {
#if LOCAL_SUMS
    run->sums[at] += value;
#else
    if (value) atomic_add(run->sums + at, value);
#endif
}

INLINE void empty_pairs(const Run *run, uint k) {
    #pragma unroll
    for (uint odd = 0; odd < 2; ++odd) {
        __local uint *pair = run->pairs + (2 * k + odd) * WORDS;
        for (uint w = 0; w < WORDS; ++w) {
            uint at = SUM_AT(k, 4 * w + odd);
            add_sum(run, at, pair[w] & 0xFFFFu);
            add_sum(run, at + 2 * SUM_STEP, pair[w] >> 16);
            pair[w] = 0;
        }
    }
}

INLINE void add_block(Added *added, const Run *run, const Block *block, uint start, uint here) {
    for (uint i = 0; i < here; ++i) {
        __global const uint *x = block->rows + i * WORDS;
        PREFETCH(x + AHEAD * WORDS);
        PREFETCH(x + AHEAD * WORDS + 16);
        uint k = block->label[i], count = ++run->counts[k];
        run->labels[start + i] = (uchar)k;
#if LOCAL_PAIRS
        __local uint *pair = run->pairs + k * 2 * WORDS;
        #pragma unroll
        for (int w = 0; w < UNITS; ++w) {
            uint4 four = vload4(w, x);
            vstore4(vload4(w, pair) + (four & MASK), w, pair);
            vstore4(vload4(w, pair + WORDS) + (four >> 8 & MASK), w, pair + WORDS);
        }
        if (count % HELD == 0) empty_pairs(run, k);
#else
        for (uint w = 0; w < WORDS; ++w) add_word(run, k, w, x[w]);
#endif
    }
}

INLINE void finish(const Added *added, const Run *run) {
    if (!LOCAL_PAIRS || !run->length) return; /* where nothing moved nothing is counted */
    for (uint k = 0; k < K; ++k) {
        if (run->counts[k] % HELD) empty_pairs(run, k);
    }
}
#endif
