/* Tiles by dot products of four bytes: a work-item has POINTS_EACH rows of its team's block, centres are read at one place by
   all of them. */
#include "tile.cl"
#include "tile_rows.cl"

#if !VECTOR && !MATRIX
#define STRIDE 1

typedef struct {
    uint upper[CENTRES][POINTS_EACH], lower[CENTRES][POINTS_EACH];
} Scores;
typedef struct {
    int score[POINTS_EACH];
    uint label[POINTS_EACH];
} Best;
typedef struct {
    uint none; /* nothing is held back */
} Added;

INLINE void tile_clear(Scores *scores) {
    #pragma unroll
    for (int c = 0; c < CENTRES; ++c) {
        #pragma unroll
        for (int p = 0; p < POINTS_EACH; ++p) scores->upper[c][p] = scores->lower[c][p] = 0;
    }
}

INLINE void tile_multiply(Scores *scores, const Run *run, const Block *block, uint k, uint unit) {
    uint4 x[POINTS_EACH];
    #pragma unroll
    for (int p = 0; p < POINTS_EACH; ++p) x[p] = vload4(0, block->rows + UNIT_AT(run->lane + p * TEAM, unit));
    #pragma unroll
    for (int c = 0; c < CENTRES; ++c) {
        uint4 h = vload4(0, run->parts + CENTRE_AT(k + c, unit)), l = vload4(0, run->parts + CENTRE_AT(RESIDENT + k + c, unit));
        #pragma unroll
        for (int p = 0; p < POINTS_EACH; ++p) {
            scores->upper[c][p] = DOT4_U8(x[p].x, h.x, DOT4_U8(x[p].y, h.y, scores->upper[c][p]));
            scores->upper[c][p] = DOT4_U8(x[p].z, h.z, DOT4_U8(x[p].w, h.w, scores->upper[c][p]));
            scores->lower[c][p] = DOT4_U8(x[p].x, l.x, DOT4_U8(x[p].y, l.y, scores->lower[c][p]));
            scores->lower[c][p] = DOT4_U8(x[p].z, l.z, DOT4_U8(x[p].w, l.w, scores->lower[c][p]));
        }
    }
}

INLINE void begin_best(Best *best) {
    #pragma unroll
    for (int p = 0; p < POINTS_EACH; ++p) {
        best->score[p] = -INT_MAX - 1;
        best->label[p] = 0;
    }
}

INLINE void tile_best(Best *best, const Scores *scores, const Run *run, uint k) {
    #pragma unroll
    for (int c = 0; c < CENTRES; ++c) {
        int half_norm = run->half_norm[k + c];
        #pragma unroll
        for (int p = 0; p < POINTS_EACH; ++p) {
            int score = (int)(256 * scores->upper[c][p] + scores->lower[c][p]) - half_norm;
            if (score > best->score[p]) {
                best->score[p] = score;
                best->label[p] = k + c;
            }
        }
    }
}

INLINE void tile_labels(const Run *run, Block *block, const Best *best, uint here) {
    #pragma unroll
    for (int p = 0; p < POINTS_EACH; ++p) run->label[run->lane + p * TEAM] = (uchar)best->label[p];
}

INLINE void begin_added(Added *added) { added->none = 0; }

INLINE void add_block(Added *added, const Run *run, const Block *block, uint start, uint here) {
    put_labels(run, start, here);
    add_words(run, block, here);
}

INLINE void finish(const Added *added, const Run *run) {}
#endif
