/* Windows on the integral images: where they lie, and what their features are multiplied by.

   SHIFTS    divisions by multiply and shift, mad24 */
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#include "level.cl"

/* Where corners of rectangles are read: a tile's part of the integral images is in local memory. */
#if TILE
#define IMAGE __local const
#else
#define IMAGE __global const
#endif

/* Barrier of a work-group, or of the one hardware thread that it is. Such small groups are declared: NVIDIA's compiler then
   holds more loads in registers at a time. Of larger ones it would fit as many as possible into a multiprocessor, and
   spill. */
#if WORK_GROUP <= HW_THREAD_ITEMS
#define SYNC() HW_THREAD_SYNC()
#define DECLARED_GROUP REQD_GROUP(WORK_GROUP)
#else
#define SYNC() barrier(CLK_LOCAL_MEM_FENCE)
#define DECLARED_GROUP
#endif

#if SHIFTS
#define MAD(a, b, c) mad24((int)(a), (int)(b), (int)(c))
#else
#define MAD(a, b, c) ((int)(a) * (int)(b) + (int)(c))
#endif

/* An entry of the global queue: a window's number and its place in the atlas. */
typedef struct {
    uint number, place;
} Entry;

/* A divisor, with the multiplier and the shift that the host chose for it. */
typedef struct {
    uint by, multiplier, shift;
} Division;

/* With SHIFTS exact below 2^31 (T. Granlund, P. L. Montgomery, "Division by Invariant Integers using Multiplication",
   PLDI 1994). */
INLINE uint quotient(uint n, Division division) {
#if SHIFTS
    return division.by == 1 ? n : mul_hi(n, division.multiplier) >> division.shift;
#else
    return n / division.by;
#endif
}

/* Integral images of all frames, the levels in them, and the units (windows, or tiles of them) that a launch takes. */
typedef struct {
    __global const uint *sums;
    uint pitch, plane;             /* words from line to line, and from plane to plane: pixels, squares, tilted */
    ulong frame_words;
    __global const Level *levels;
    uint level_count, known_level; /* the second: of a launch for one level */
    uint frame_windows;
    Division frame_units;
    uint first, total;             /* units: number of the first, how many */
    __global const Entry *entries; /* the global queue */
    IMAGE uint *image;             /* where corners are read: the integral images, or a tile's part in local memory */
} Atlas;

/* A window: where its features are read, the factor of its features (0: it is too flat to be a face), its number, and its
   place in a frame's atlas or a tile's image. */
typedef struct {
    IMAGE uint *corner;
    float norm;
    uint number, place;
} Window;

LEVEL_BY(first_window)

/* Place in the atlas of a window, by its number within a frame and its level. */
uint place_of(__global const Level *level, uint n, uint pitch) {
    Division columns = {level->columns, level->columns_multiplier, level->columns_shift};
    uint inside = n - level->first_window, step = level->step;
    uint y = quotient(inside, columns), x = inside - y * columns.by;
    return level->place + (uint)MAD(y * step, pitch, x * step);
}

/* 1 / (area times standard deviation) of the window at p; 0 if the deviation is 10 or less. */
float normalisation(__global const uint *p, uint pitch, uint plane) {
    uint a = pitch + 1, b = a + WINDOW_WIDTH - 2, c = a + (WINDOW_HEIGHT - 2) * pitch, d = c + WINDOW_WIDTH - 2;
    uint sum = p[a] - p[b] - p[c] + p[d];
    __global const uint *q = p + plane;
    uint square = q[a] - q[b] - q[c] + q[d];
    ulong area = (WINDOW_WIDTH - 2) * (WINDOW_HEIGHT - 2), all = area * square, mean = (ulong)sum * sum;
    if (all <= mean) return 0.0f; /* flat: a deviation of 0 */
    float norm = (float)(1.0 / sqrt((double)(all - mean)));
    return (double)area * (double)norm < 0.1 ? norm : 0.0f;
}
