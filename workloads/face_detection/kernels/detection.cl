/* What the kernels named `detect` have in common: detect_direct.cl, detect_queued.cl. Techniques are macros, explained in
   the files that they choose between. */
#include "window.cl"
#if TILE
#include "batch_tiles.cl"
#else
#include "batch_rows.cl"
#endif
#include "counts.cl"
#include "cascade.cl"
#include "assignment.cl"

#define PARAMETERS                                                                                                     \
    __global const uint *RESTRICT sums, TABLE Node *RESTRICT nodes, __global const int *RESTRICT roots,                \
        __global const long *RESTRICT leaves, __global const int *RESTRICT stage_first,                                \
        __global const long *RESTRICT stage_threshold, __global const Level *RESTRICT levels, uint level_count,        \
        uint known_level, uint pitch, uint plane, ulong frame_words, uint frame_windows, uint frame_units,             \
        uint frame_multiplier, uint frame_shift, uint first, uint total, __global const Entry *RESTRICT entries,       \
        __global uint *tickets, uint launch, __global uint *count, __global uint *passing, uint capacity COUNTERS

/* The parameters by what they belong to. */
#define ATLAS(image)                                                                                         \
    {sums, pitch, plane, frame_words, levels, level_count, known_level, frame_windows,                       \
     {frame_units, frame_multiplier, frame_shift}, first, total, entries, image}
#define CASCADE {nodes, roots, leaves, stage_first, stage_threshold, GRID}
