/* Batches of BATCH windows row by row; corners are read from the integral images in global memory.

   UBERKERNEL    windows of all levels in one launch, else of one level
   GLOBAL_QUEUE  number and place of each window come from a queue in global memory, else they are computed */

#define BANKS 1     /* columns of the local queue */
#define TAKEN BATCH /* units of a batch */
#define DECLARE_IMAGE(image) __global const uint *image = sums
#define GRID {pitch, 2 * plane}

typedef struct {
    uint first, count; /* windows of the launch */
} Batch;

INLINE void find_batch(Atlas atlas, uint start, Batch *batch) {
    batch->first = atlas.first + start;
    batch->count = min((uint)BATCH, atlas.total - start);
}

#define COPY_IMAGE(atlas, batch, image) /* nothing */
#define NODES_FOR(batch, nodes) (nodes)
#define WINDOWS_IN(batch) (batch).count

/* Where a window's corners are. */
INLINE IMAGE uint *corner_of(Atlas atlas, uint number, uint place) {
    return atlas.sums + quotient(number, atlas.frame_units) * atlas.frame_words + place;
}

/* A window by its frame, its number, and its place in the frame's atlas. */
INLINE void set_window(Atlas atlas, uint frame, uint number, uint place, Window *window) {
    window->corner = atlas.sums + frame * atlas.frame_words + place;
    window->norm = normalisation(window->corner, atlas.pitch, atlas.plane);
    window->number = number;
    window->place = place;
}

#if GLOBAL_QUEUE
/* The i-th window of a batch. */
INLINE void find_window(Atlas atlas, Batch batch, uint i, Window *window) {
    uint number = atlas.entries[batch.first + i].number, place = atlas.entries[batch.first + i].place;
    uint frame = quotient(number, atlas.frame_units);
    set_window(atlas, frame, number, place, window);
}

/* Writes the queue of all windows. */
__kernel void enqueue(__global const Level *RESTRICT levels, uint level_count, uint pitch, uint frame_windows,
                      uint frame_multiplier, uint frame_shift, uint total, __global Entry *RESTRICT entries) {
    uint number = get_global_id(0);
    if (number >= total) return;
    Division by_frame = {frame_windows, frame_multiplier, frame_shift};
    uint inside = number - quotient(number, by_frame) * frame_windows;
    entries[number].number = number;
    entries[number].place = place_of(level_by_first_window(levels, level_count, inside), inside, pitch);
}
#else
/* The i-th window of a batch. */
INLINE void find_window(Atlas atlas, Batch batch, uint i, Window *window) {
    uint number = batch.first + i, frame = quotient(number, atlas.frame_units);
    uint inside = number - frame * atlas.frame_windows;
#if UBERKERNEL
    __global const Level *level = level_by_first_window(atlas.levels, atlas.level_count, inside);
#else
    __global const Level *level = atlas.levels + atlas.known_level;
#endif
    set_window(atlas, frame, number, place_of(level, inside, atlas.pitch), window);
}
#endif
