/* The kernel `detect` for processors with few cores and wide vectors, one work-item to a tile: VECTOR neighbouring windows go
   through the stages together for as long as one of them is left. In a tile's image their corners lie side by side, so
   that each corner is one load. Late stages evaluate windows for nothing, which takes less time than gathering the corners
   of those that are left. OpenCL alone: vectors of 8 and 16 integers are not in the dialect.

   STUMPS    every tree is one node */
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#include "window.cl"
#include "batch_tiles.cl"
#include "counts.cl"
#include "assignment.cl"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define AS(type) JOIN(as_##type, VECTOR)
#define CONVERT(type) JOIN(convert_##type, VECTOR)
typedef JOIN(uint, VECTOR) Words;
typedef JOIN(int, VECTOR) Ints; /* of comparisons: 0 or -1 */
typedef JOIN(long, VECTOR) Longs;
typedef JOIN(ulong, VECTOR) Ulongs;
typedef JOIN(float, VECTOR) Floats;

/* Vectors from any word on; vloadN is several loads in PoCL. */
typedef Words UnalignedWords __attribute__((aligned(4)));
typedef uint8 Unaligned8 __attribute__((aligned(4)));
typedef uint16 Unaligned16 __attribute__((aligned(4)));
#define WORDS(p) (*(__local const UnalignedWords *)(p))
#define GLOBAL_WORDS(p) (*(__global const UnalignedWords *)(p))
#define GLOBAL_16(p) (*(__global const Unaligned16 *)(p))
/* Every second of 16 words. */
#define EVEN_OF(v) __builtin_shufflevector(v, v, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODD_OF(v) __builtin_shufflevector(v, v, 1, 3, 5, 7, 9, 11, 13, 15)

/* A node: corners of its rectangles as offsets in a tile's image, + - - +. The host has the same names (`vector_node`
   and STAGE in variants/stream_tables.py; a test holds them together). */
typedef struct {
    int corners[12];
    int weights[3];  /* 0: there is no such rectangle */
    float threshold;
#if STUMPS
    long gain;       /* of a window below the threshold; others gain nothing */
#else
    int left, right; /* a later node, or minus a leaf less 1 */
#endif
} VectorNode;

/* A stage's trees: those of two rectangles come first if they are stumps. */
typedef struct {
    int first, third, end, unused;
    long threshold;
} Stage;

/* As copy_image of batch_tiles.cl. Where a tile has fewer columns than TILE, what else a vector reaches is 0. */
INLINE void copy_vectors(Batch batch, uint pitch, __global const uint *from, __local uint *image) {
    uint words = (batch.columns - 1) * batch.step + WINDOW_WIDTH + 1;
    uint lines = (batch.rows - 1) * batch.step + WINDOW_HEIGHT + 1;
    for (uint y = 0; y < lines; ++y) {
        __global const uint *line = from + (size_t)y * pitch;
        __local uint *to = image + y * LOCAL_PITCH;
        uint x = 0;
        if (batch.columns < TILE)
            for (uint i = 0; i < LOCAL_PITCH; ++i) to[i] = 0;
        if (batch.step == 2) {
            for (; x + 16 <= words; x += 16) {
                uint16 both = GLOBAL_16(line + x);
                *(__local Unaligned8 *)(to + x / 2) = EVEN_OF(both);
                *(__local Unaligned8 *)(to + x / 2 + HALF) = ODD_OF(both);
            }
            for (; x < words; ++x) to[x / 2 + (x & 1) * HALF] = line[x];
        } else {
            for (; x + 16 <= words; x += 16) *(__local Unaligned16 *)(to + x) = GLOBAL_16(line + x);
            for (; x < words; ++x) to[x] = line[x];
        }
    }
}

/* Every second word. */
INLINE Words second_words(__global const uint *p) {
#if VECTOR == 8
    return EVEN_OF(GLOBAL_16(p));
#else
    return __builtin_shufflevector(GLOBAL_16(p), GLOBAL_16(p + 16), 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28,
                                   30);
#endif
}

/* Sums of neighbouring windows over the rectangle that they are normalised by. */
INLINE Ulongs sums_of(__global const uint *p, uint pitch, uint step) {
    __global const uint *a = p + pitch + 1, *b = a + WINDOW_WIDTH - 2, *c = a + (WINDOW_HEIGHT - 2) * pitch;
    __global const uint *d = c + WINDOW_WIDTH - 2;
    Words sums = step == 2 ? second_words(a) - second_words(b) - second_words(c) + second_words(d)
                           : GLOBAL_WORDS(a) - GLOBAL_WORDS(b) - GLOBAL_WORDS(c) + GLOBAL_WORDS(d);
    return CONVERT(ulong)(sums);
}

/* Factors of the windows of a tile from (x, y) on, as `normalisation` of window.cl has them; 0 where there is none. */
INLINE Floats normalisations(Atlas atlas, Batch batch, uint x, uint y) {
    __global const uint *p = batch.corner + (size_t)y * batch.step * atlas.pitch + x * batch.step;
    if (x + VECTOR > batch.columns) {
        Floats norms = 0.0f;
        for (uint i = 0; x + i < batch.columns; ++i)
            ((float *)&norms)[i] = normalisation(p + i * batch.step, atlas.pitch, atlas.plane);
        return norms;
    }
    const ulong area = (WINDOW_WIDTH - 2) * (WINDOW_HEIGHT - 2);
    Ulongs sum = sums_of(p, atlas.pitch, batch.step), mean = sum * sum;
    Ulongs all = area * sums_of(p + atlas.plane, atlas.pitch, batch.step);
    /* A flat window has 1: too little as well. */
    Ulongs variance = select((Ulongs)1, all - mean, all > mean);
    Floats norm = CONVERT(float)(1.0 / sqrt(CONVERT(double)(variance)));
    Longs steep = (double)area * CONVERT(double)(norm) < 0.1;
    return select((Floats)0.0f, norm, CONVERT(int)(steep));
}

INLINE Ints rectangle(__local const uint *p, __global const int *corners) {
    return AS(int)(WORDS(p + corners[0]) - WORDS(p + corners[1]) - WORDS(p + corners[2]) + WORDS(p + corners[3]));
}

/* Which windows' feature is below its threshold; p: the first window's corner. */
INLINE Ints below(__local const uint *p, Floats norm, __global const VectorNode *node, int third) {
    Ints value = node->weights[0] * rectangle(p, node->corners) + node->weights[1] * rectangle(p, node->corners + 4);
    if (third) value += node->weights[2] * rectangle(p, node->corners + 8);
    return CONVERT(float)(value) * norm < node->threshold;
}

/* `value` where `which` says so, else 0. */
INLINE Longs where(Ints which, long value) {
    return CONVERT(long)(which) & (Longs)value;
}

/* Figures count features of windows that are left, and places in vectors that were evaluated for them. */
#if INSTRUMENT
INLINE uint number_of(Ints which) {
    uint number = 0;
    for (int i = 0; i < VECTOR; ++i) number += ((int *)&which)[i] != 0;
    return number;
}

#define COUNT_VECTOR(counts, which) ((counts)->tally.features += number_of(which), (counts)->tally.slots += VECTOR)
#define COUNT_WINDOWS(counts, stage, which) atomic_add(&(counts)->entered[stage], number_of(which))
#else
#define COUNT_VECTOR(counts, which)
#define COUNT_WINDOWS(counts, stage, which)
#endif

/* Sums of a stage for a vector of windows. */
INLINE Longs votes_of(__local const uint *p, Floats norm, __global const VectorNode *nodes, __global const int *roots,
                      __global const long *leaves, Stage stage, Ints alive, Counts *counts) {
    Longs sum = 0;
#if STUMPS
    for (int tree = stage.first; tree < stage.third; ++tree) {
        COUNT_VECTOR(counts, alive);
        sum += where(below(p, norm, nodes + tree, 0), nodes[tree].gain);
    }
    for (int tree = stage.third; tree < stage.end; ++tree) {
        COUNT_VECTOR(counts, alive);
        sum += where(below(p, norm, nodes + tree, 1), nodes[tree].gain);
    }
#else
    for (int tree = stage.first; tree < stage.end; ++tree) {
        int root = roots[tree], count = roots[tree + 1] - root;
        Ints at = 0; /* as left and right of a node */
        for (int n = 0; n < count; ++n) { /* one after the other: each leads to later ones */
            __global const VectorNode *node = nodes + root + n;
            Ints here = at == n;
            COUNT_VECTOR(counts, alive & here);
            Ints next = select((Ints)node->right, (Ints)node->left, below(p, norm, node, node->weights[2] != 0));
            at = select(at, next, here);
        }
        for (int leaf = 0; leaf <= count; ++leaf) sum += where(at == -1 - leaf, leaves[root + tree + leaf]);
    }
#endif
    return sum;
}

__kernel REQD_GROUP(1) EXPLICIT_VECTORS(Ints)
void detect(__global const uint *RESTRICT sums, __global const VectorNode *RESTRICT nodes,
            __global const int *RESTRICT roots, __global const long *RESTRICT leaves, __global const Stage *RESTRICT stages,
            __global const Level *RESTRICT levels, uint level_count, uint pitch, uint plane, ulong frame_words,
            uint frame_windows, uint frame_units, uint frame_multiplier, uint frame_shift, uint first,
            __global uint *RESTRICT count, __global uint *RESTRICT passing, uint capacity COUNTERS) {
    DECLARE_IMAGE(image);
    DECLARE_COUNTS(counts);
    Atlas atlas = {sums, pitch, plane, frame_words, levels, level_count, 0, frame_windows,
                   {frame_units, frame_multiplier, frame_shift}, first, 0, 0, image};
    Batch batch;
    find_batch(atlas, get_group_id(0), &batch);
    copy_vectors(batch, pitch, batch.corner, image);
#if TILTED
    copy_vectors(batch, pitch, batch.corner + 2 * (size_t)plane, image + LOCAL_PITCH * LOCAL_LINES);
#endif
    nodes = NODES_FOR(batch, nodes);
    for (uint y = 0; y < batch.rows; ++y) {
        for (uint x = 0; x < batch.columns; x += VECTOR) {
            __local const uint *p = image + y * batch.step * LOCAL_PITCH + x;
            Floats norm = normalisations(atlas, batch, x, y);
            Ints alive = norm > 0.0f;
            for (int stage = 0; stage < STAGES && any(alive); ++stage) {
                COUNT_WINDOWS(&counts, stage, alive);
                Longs sum = votes_of(p, norm, nodes, roots, leaves, stages[stage], alive, &counts);
                alive &= CONVERT(int)(sum >= stages[stage].threshold);
            }
            if (!any(alive)) continue;
            for (uint i = 0; i < VECTOR; ++i)
                if (((int *)&alive)[i]) add_passing(passing, count, capacity, batch.first_number + y * batch.stride + x + i);
        }
    }
    tally_batch(&counts, WINDOWS_IN(batch));
    STORE_COUNTS(&counts);
}
