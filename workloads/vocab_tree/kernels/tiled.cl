/* One pass of k-means in one source for GPUs and CPUs; meaning as in fused.cl. A work-group takes a run of points of one node, in
   blocks, each of which a team of its work-items multiplies by all centres in tiles (tile.cl), gives labels to, and adds up, so
   that a point is read from memory once.

   Local memory decides what is kept there: the sums (LOCAL_SUMS) and with vectors their 16-bit halves (LOCAL_PAIRS), or atomics go to
   the sums of the node; all centres, or RESIDENT at a time, which every step brings again.

   Macros: K, DIMS, GROUP, VECTOR, MATRIX, VNNI, AHEAD, POINTS_EACH, CENTRES (of a tile), RESIDENT (a multiple of CENTRES), STAGES,
   LOCAL_SUMS, LOCAL_PAIRS. */
#include "tile.cl"
#include "tile_vectors.cl"
#include "tile_dot.cl"

/* Centres `base` and on of a node to local memory. */
INLINE void put_centres(const Run *run, __global const uint *centres, uint node, uint base) {
    for (uint i = get_local_id(0); i < RESIDENT * WORDS_PUT; i += GROUP) {
        uint k = i / WORDS_PUT, w = i % WORDS_PUT, a = PADDING, b = PADDING;
        if (base + k < K && w < WORDS) {
            size_t at = 2 * (((size_t)node * K + base + k) * WORDS + w);
            a = centres[at];
            b = centres[at + 1];
        }
        put_centre(run->parts, k, w, a, b);
    }
}

__kernel void REQD_GROUP(GROUP) pass(PARAMETERS(uint)) {
    LOCAL_ARENA(uint, arena, ARENA);
    uint item = get_local_id(0);
    uint4 tile = vload4(get_group_id(0), tiles);
    uint node = tile.x, first = tile.y, length = moving[node] ? tile.z : 0;
    Run run;
    run.team = item / TEAM;
    run.lane = item % TEAM;
    run.length = length;
    run.points = points + (size_t)first * WORDS;
    run.labels = labels + first;
    run.parts = arena;
    run.rows = arena + ROWS_AT + run.team * (STAGED / TEAMS);
#if LOCAL_SUMS
    run.sums = arena + SUMS_AT;
#else
    run.sums = sums + (size_t)node * K * DIMS;
#endif
    run.pairs = arena + PAIRS_AT;
    run.half_norm = (__local int *)(arena + HALVES_AT);
    run.counts = arena + COUNTS_AT;
    run.label = (__local uchar *)(arena + LABELS_AT) + run.team * ROWS;

    if (length) {
        if (RESIDENT == PADDED) put_centres(&run, centres, node, 0);
        for (uint i = SUMS_AT + item; i < HALVES_AT; i += GROUP) arena[i] = 0; /* sums and pairs */
        for (uint i = item; i < PADDED; i += GROUP) run.half_norm[i] = i < K ? halves[node * K + i] : INT_MAX;
        for (uint i = item; i < K; i += GROUP) run.counts[i] = 0;
    }
    GROUP_SYNC();

    Added added;
    begin_added(&added);
    begin(&run);
    uint blocks = (length + ROWS - 1) / ROWS, steps = (blocks + TEAMS - 1) / TEAMS;
    for (uint step = 0; step < steps; ++step) { /* as many for every team: they meet where a hardware thread has no sync of its own */
        uint start = (step * TEAMS + run.team) * ROWS, here = start < length ? min((uint)ROWS, length - start) : 0;
        Block block;
        take(&run, &block, step);
        Best best;
        begin_best(&best);
        for (uint base = 0; base < PADDED; base += RESIDENT) {
            if (RESIDENT < PADDED) {
                GROUP_SYNC();
                put_centres(&run, centres, node, base);
                GROUP_SYNC();
            }
            for (uint k = 0; here && k < RESIDENT; k += CENTRES) {
                Scores scores;
                tile_clear(&scores);
                for (uint unit = 0; unit < UNITS; unit += STRIDE) tile_multiply(&scores, &run, &block, k, unit);
                tile_best(&best, &scores, &run, base + k);
            }
        }
        if (here) tile_labels(&run, &block, &best, here);
        TEAM_SYNC();
        if (here) add_block(&added, &run, &block, start, here);
        TEAM_SYNC();
    }
    finish(&added, &run);
    GROUP_SYNC();
    if (length) {
#if LOCAL_SUMS
        for (uint i = item; i < K * DIMS; i += GROUP) {
            uint value = run.sums[SUM_AT(i / DIMS, i % DIMS)];
            if (value) atomic_add(sums + (size_t)node * K * DIMS + i, value);
        }
#endif
        for (uint i = item; i < K; i += GROUP) {
            if (run.counts[i]) atomic_add(counts + node * K + i, run.counts[i]);
        }
    }
}
