/* The matrix tile of tiled.cl: ROWS points (the block of a team of work-items) times CENTRES centres, 16 dimensions or more at a
   time, exact scores in 32 bits. What makes it is chosen by macros:
     VECTOR > 0   tile_vectors.cl   a work-item to a block of VECTOR points, vectors across the points: CPUs
     MATRIX       tile_matrix.h     a warp to a block, matrix units: CUDA C++
     else         tile_dot.cl       a team to a block, a work-item to POINTS_EACH points, dot products of four bytes
   Each of them defines

     Block, Scores, Best, Added   of a work-item: its points, scores of a tile, largest scores so far, sums in registers
     put_centre                   takes four dimensions of a centre into local memory, where RESIDENT are at a time
     begin, take                  the first block begins to come; a block has come
     tile_clear, tile_multiply    scores of nothing; what STRIDE units of 16 dimensions add to them
     begin_best, tile_best        no score; the larger of the scores so far and of a tile's, the first of equal ones
     tile_labels                  labels to where the team sees them
     begin_added, add_block, finish   labels and sums of a block; what is held back goes to the sums

   the last two with tile_rows.cl where rows lie in local memory. */
#include "pass.cl"

#define WORDS (DIMS / 4)
#define UNITS (DIMS / 16)
#define PADDED ((K + RESIDENT - 1) / RESIDENT * RESIDENT)

#if VECTOR
#define TEAM 1
#define ROWS VECTOR
#define PARTS (2 * RESIDENT * WORDS)
#define STAGED 0
#define LABELS 0
#define PAIRS (LOCAL_PAIRS ? K * 2 * WORDS : 0)
#define GROUP_SYNC() /* a work-item is a group */
#define TEAM_SYNC()
#else
#define TEAM 32
#define ROWS (TEAM * POINTS_EACH)
#define ROW_WORDS 32
/* Unit u of a row in local memory is at u ^ (row % 8): no bank conflicts, whether work-items read a row each or matrices. */
#define UNIT_AT(row, unit) (((row) * 8 + ((unit) ^ ((row) & 7))) * 4)
#define STAGED (TEAMS * STAGES * ROWS * ROW_WORDS)
#define LABELS (TEAMS * ROWS / 4)
#define PAIRS 0
#define GROUP_SYNC() barrier(CLK_LOCAL_MEM_FENCE)
#define TEAM_SYNC() HW_THREAD_SYNC()
#if MATRIX
#define PARTS (2 * RESIDENT * ROW_WORDS)
#define CENTRE_AT(k, unit) UNIT_AT(k, unit)
#else
#define PARTS (2 * RESIDENT * WORDS)
#define CENTRE_AT(k, unit) (((k) * UNITS + (unit)) * 4)
#endif
#endif
#define TEAMS (GROUP / TEAM)

/* Words of local memory; what is loaded as vectors stands first. */
#define ROWS_AT PARTS
#define SUMS_AT (ROWS_AT + STAGED)
#define PAIRS_AT (SUMS_AT + (LOCAL_SUMS ? K * DIMS : 0))
#define HALVES_AT (PAIRS_AT + PAIRS)
#define COUNTS_AT (HALVES_AT + PADDED)
#define LABELS_AT (COUNTS_AT + K)
#define ARENA (LABELS_AT + LABELS)

/* Sums of the group in local memory, dimension 4 w + j of a cluster at w + WORDS * j, so that neighbours hit different banks;
   or where these do not fit the node's sums themselves. */
#if LOCAL_SUMS
#define SUMS_SPACE __local
#define SUM_STEP WORDS
#define SUM_AT(k, d) ((k) * DIMS + (d) % 4 * WORDS + (d) / 4)
#else
#define SUMS_SPACE __global
#define SUM_STEP 1
#define SUM_AT(k, d) ((k) * DIMS + (d))
#endif

/* What a work-item knows of its group's run of points. */
typedef struct {
    __local uint *parts, *pairs, *counts, *rows; /* rows and labels: of its team */
    SUMS_SPACE uint *sums;
    __local int *half_norm;
    __local uchar *label;
    __global const uint *points;
    __global uchar *labels;
    uint length, team, lane;
} Run;

/* Word w of a point of class k: an atomic for each of its bytes. */
INLINE void add_word(const Run *run, uint k, uint w, uint x) {
    SUMS_SPACE uint *sum = run->sums + SUM_AT(k, 4 * w);
    atomic_add(sum, x & 0xFFu);
    atomic_add(sum + SUM_STEP, x >> 8 & 0xFFu);
    atomic_add(sum + 2 * SUM_STEP, x >> 16 & 0xFFu);
    atomic_add(sum + 3 * SUM_STEP, x >> 24);
}
