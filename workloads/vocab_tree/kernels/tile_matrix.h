/* Tiles on matrix units: a warp has 32 points, POINTS_EACH times, and CENTRES (a multiple of 8) at a time. Upper and lower bytes of
   centres have sums of their own. Up to 16 clusters the sums of points are products, too: of one-hot labels and points; beyond
   that by atomics. */
#include "matrix_units.h"
#include "tile.cl"
#include "tile_rows.cl"

#define STRIDE 4 /* units of 16 dimensions */
#define TILES_DOWN (2 * POINTS_EACH)
#define TILES_ACROSS (CENTRES / 8)
#define PRODUCT_SUMS (K <= 16)
#define NO_CLASS 0x7Fu /* of rows behind the last point: above all classes that are one-hot */

struct Scores {
    int upper[TILES_DOWN][TILES_ACROSS][4], lower[TILES_DOWN][TILES_ACROSS][4];
};
struct Best { /* of rows 16 m + g and 8 more */
    int score[TILES_DOWN][2];
    uint label[TILES_DOWN][2];
};
struct Added {
    int sums[UNITS][2][4];
};

INLINE void tile_clear(Scores *scores) { *scores = {}; }

INLINE void tile_multiply(Scores *scores, const Run *run, const Block *block, uint k, uint unit) {
    uint x[TILES_DOWN][2][4], lane = run->lane;
    #pragma unroll
    for (int m = 0; m < TILES_DOWN; ++m) {
        #pragma unroll
        for (int s = 0; s < 2; ++s) {
            if (unit + 2 * s < UNITS) load_matrices(x[m][s], block->rows + UNIT_AT(16 * m + lane % 16, unit + 2 * s + lane / 16));
        }
    }
    #pragma unroll
    for (int n = 0; n < TILES_ACROSS; ++n) {
        #pragma unroll
        for (int lower = 0; lower < 2; ++lower) {
            uint y[4]; /* 64 bytes of 8 centres */
            load_matrices(y, run->parts + CENTRE_AT(lower * RESIDENT + k + 8 * n + lane % 8, unit + lane / 8));
            #pragma unroll
            for (int m = 0; m < TILES_DOWN; ++m) {
                int *sums = lower ? scores->lower[m][n] : scores->upper[m][n];
                multiply(sums, x[m][0], y[0], y[1]);
                if (unit + 2 < UNITS) multiply(sums, x[m][1], y[2], y[3]);
            }
        }
    }
}

INLINE void begin_best(Best *best) {
    #pragma unroll
    for (int i = 0; i < 2 * TILES_DOWN; ++i) {
        best->score[i / 2][i % 2] = -INT_MAX - 1;
        best->label[i / 2][i % 2] = 0;
    }
}

INLINE void tile_best(Best *best, const Scores *scores, const Run *run, uint k) {
    #pragma unroll
    for (int i = 0; i < 2 * TILES_ACROSS; ++i) { /* centre 8 n + 2 t + j */
        int n = i / 2, j = i % 2;
        uint own = k + 8 * n + run->lane % 4 * 2 + j;
        int half_norm = run->half_norm[own];
        #pragma unroll
        for (int row = 0; row < 2 * TILES_DOWN; ++row) { /* 16 m + g + 8 h */
            int m = row / 2, h = row % 2;
            int score = 256 * scores->upper[m][n][2 * h + j] + scores->lower[m][n][2 * h + j] - half_norm;
            if (score > best->score[m][h]) {
                best->score[m][h] = score;
                best->label[m][h] = own;
            }
        }
    }
}

INLINE void tile_labels(const Run *run, Block *block, Best *best, uint here) {
    #pragma unroll
    for (int i = 0; i < 2 * TILES_DOWN; ++i) {
        uint row = 16 * (i / 2) + 8 * (i % 2) + run->lane / 4, *label = &best->label[i / 2][i % 2];
        best_of_row(&best->score[i / 2][i % 2], label);
        if (run->lane % 4 == 0) run->label[row] = row < here ? (uchar)*label : NO_CLASS;
    }
}

INLINE void begin_added(Added *added) { *added = {}; }

INLINE void add_block(Added *added, const Run *run, const Block *block, uint start, uint here) {
    put_labels(run, start, here);
    if (!PRODUCT_SUMS) {
        add_words(run, block, here);
        return;
    }
    #pragma unroll
    for (int p = 0; p < POINTS_EACH; ++p) {
        uint hot[4];
        one_hot(hot, run->label + TEAM * p, run->lane / 4, run->lane % 4);
        #pragma unroll
        for (int u = 0; u < UNITS; ++u) add_unit(added->sums[u], hot, block->rows + UNIT_AT(TEAM * p + run->lane, u));
    }
}

INLINE void finish(const Added *added, const Run *run) {
    await_copies<0>();
    if (!PRODUCT_SUMS) return;
    #pragma unroll
    for (int i = 0; i < UNITS * 8; ++i) { /* class g + 8 h, column 2 t + j of 8 */
        int unit = i / 8, odd = i / 4 % 2, h = i / 2 % 2, j = i % 2;
        uint k = run->lane / 4 + 8 * h, d = 16 * unit + 2 * (2 * (run->lane % 4) + j) + odd;
        int value = added->sums[unit][odd][2 * h + j];
        if (k < K && value) atomic_add(run->sums + SUM_AT(k, d), (uint)value);
    }
}
