/* Batches of TILE x TILE windows, whose part of the integral images is brought into local memory (OFFSETS): neighbouring
   windows share most of it, and 32 scattered words come from there sooner than from the first-level cache.

   LOCAL_PITCH, LOCAL_LINES  its size in words; TILTED: of both planes
   HALF                      where windows are 2 pixels apart, even columns come first and odd ones so many words behind
                             them, so that neighbouring windows have neighbouring corners
   HALVED                    nodes ahead of those for such levels
   LANES                     work-items that copy a line */

#define BANKS 32 /* of local memory: columns of the local queue */
#define TAKEN 1  /* units of a batch */
#define DECLARE_IMAGE(image) LOCAL_ARENA(uint, image, LOCAL_PITCH *LOCAL_LINES *(1 + TILTED))
#define GRID {LOCAL_PITCH, LOCAL_PITCH * LOCAL_LINES}

typedef struct {
    uint count;                  /* places of windows in a tile */
    uint columns, rows;          /* windows of the tile that are there: at the edges of a level fewer than TILE */
    uint step;                   /* pixels from window to window */
    uint first_number, stride;   /* number of its first window, and from row to row */
    __global const uint *corner; /* of its first window, in the integral images */
} Batch;

LEVEL_BY(first_tile)

INLINE void find_batch(Atlas atlas, uint start, Batch *batch) {
    uint frame = quotient(atlas.first + start, atlas.frame_units);
    uint unit = atlas.first + start - frame * atlas.frame_units.by;
#if UBERKERNEL
    __global const Level *level = level_by_first_tile(atlas.levels, atlas.level_count, unit);
#else
    __global const Level *level = atlas.levels + atlas.known_level;
#endif
    uint across = (level->columns + TILE - 1) / TILE, tile = unit - level->first_tile, step = level->step;
    uint left = tile % across * TILE, top = tile / across * TILE;
    batch->count = TILE * TILE;
    batch->columns = min((uint)TILE, level->columns - left);
    batch->rows = min((uint)TILE, level->rows - top);
    batch->step = step;
    batch->first_number = frame * atlas.frame_windows + level->first_window + top * level->columns + left;
    batch->stride = level->columns;
    batch->corner = atlas.sums + frame * atlas.frame_words + level->place + (size_t)top * step * atlas.pitch + left * step;
}

/* Brings a tile's part of the integral images into local memory, line by line. */
INLINE void copy_image(Atlas atlas, Batch batch, __local uint *image) {
    uint words = (batch.columns - 1) * batch.step + WINDOW_WIDTH + 1;
    uint lines = (batch.rows - 1) * batch.step + WINDOW_HEIGHT + 1;
    for (uint y = get_local_id(0) / LANES; y < lines; y += WORK_GROUP / LANES) {
        for (uint x = get_local_id(0) % LANES; x < words; x += LANES) {
            uint to = y * LOCAL_PITCH + (batch.step == 2 ? (x >> 1) + (x & 1) * HALF : x);
            image[to] = batch.corner[y * atlas.pitch + x];
#if TILTED
            image[to + LOCAL_PITCH * LOCAL_LINES] = batch.corner[y * atlas.pitch + x + 2 * (size_t)atlas.plane];
#endif
        }
    }
}

#define COPY_IMAGE(atlas, batch, image) copy_image(atlas, batch, image)
#define NODES_FOR(batch, nodes) ((nodes) + ((batch).step == 2 ? HALVED : 0))
#define WINDOWS_IN(batch) ((batch).columns * (batch).rows)

/* Where a window's corners are. */
INLINE IMAGE uint *corner_of(Atlas atlas, uint number, uint place) {
    return atlas.image + place;
}

/* The i-th window of a tile; where there is none, one that is too flat. */
INLINE void find_window(Atlas atlas, Batch batch, uint i, Window *window) {
    uint x = i % TILE, y = i / TILE;
    window->norm = 0.0f;
    window->corner = atlas.image;
    window->number = window->place = 0;
    if (x < batch.columns && y < batch.rows) {
        __global const uint *corner = batch.corner + (size_t)y * batch.step * atlas.pitch + x * batch.step;
        window->number = batch.first_number + y * batch.stride + x;
        window->place = y * batch.step * LOCAL_PITCH + x;
        window->corner = atlas.image + window->place;
        window->norm = normalisation(corner, atlas.pitch, atlas.plane);
    }
}

/* A window's number follows from its place. */
INLINE uint number_at(Batch batch, uint place) {
    uint y = place / (batch.step * LOCAL_PITCH), x = place - y * batch.step * LOCAL_PITCH;
    return batch.first_number + y * batch.stride + x;
}
