/* Batches of BATCH windows row by row; corners are read from the integral images in global memory.

   UBERKERNEL    windows of all levels in one launch, else of one level
   GLOBAL_QUEUE  number and place of each window come from a queue in global memory, else they are computed */

#define BANKS 1     /* columns of the local queue */
#define TAKEN BATCH /* units of a batch */
#define DECLARE_IMAGE(image) __global const uint *image = sums
#define GRID {pitch, 2 * plane}

typedef struct {
    uint begin, end;
} Batch;

Batch batch_at(Atlas atlas, uint start) {
    Batch batch = {start, min(start + (uint)BATCH, atlas.total)};
    return batch;
}

#define COPY_IMAGE(atlas, batch, image) /* nothing */
#define NODES_FOR(batch, nodes) (nodes)
#define WINDOWS_IN(batch) ((batch).end - (batch).begin)

/* Where a window's corners are. */
IMAGE uint *corner_of(Atlas atlas, uint number, uint place) {
    return atlas.sums + quotient(number, atlas.frame_units) * atlas.frame_words + place;
}

/* A window by its frame, its number, and its place in the frame's atlas. */
Window window_from(Atlas atlas, uint frame, uint number, uint place) {
    __global const uint *corner = atlas.sums + frame * atlas.frame_words + place;
    Window window = {corner, normalisation(corner, atlas.pitch, atlas.plane), number, place};
    return window;
}

#if GLOBAL_QUEUE
/* The i-th window of a launch. */
Window window_at(Atlas atlas, Batch batch, uint i) {
    uint number = atlas.entries[atlas.first + i].number, place = atlas.entries[atlas.first + i].place;
    uint frame = quotient(number, atlas.frame_units);
    return window_from(atlas, frame, number, place);
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
/* The i-th window of a launch. */
Window window_at(Atlas atlas, Batch batch, uint i) {
    uint number = atlas.first + i, frame = quotient(number, atlas.frame_units);
    uint inside = number - frame * atlas.frame_windows;
#if UBERKERNEL
    __global const Level *level = level_by_first_window(atlas.levels, atlas.level_count, inside);
#else
    __global const Level *level = atlas.levels + atlas.known_level;
#endif
    return window_from(atlas, frame, number, place_of(level, inside, atlas.pitch));
}
#endif
