/* What the kernels of all passes have in common. Rows of points are bytes; a tile is (node, first point, points, 0);
   centres are 16-bit fixed point, `halves` belong to them; a node that is not `moving` is left out. Labels are written,
   sums and counts of the node are added to. */
#define PARAMETERS(centre_word)                                                                              \
    __global const uint *RESTRICT points, __global const uint *RESTRICT tiles,                               \
        __global const centre_word *RESTRICT centres, __global const int *RESTRICT halves,                   \
        __global const uint *RESTRICT moving, __global uchar *RESTRICT labels, __global uint *RESTRICT sums, \
        __global uint *RESTRICT counts

/* Four 16-bit words in two, to four bytes: the upper or the lower ones. */
#define UPPER(a, b) (((a) >> 8 & 0xFFu) | ((a) >> 24) << 8 | ((b) >> 8 & 0xFFu) << 16 | ((b) >> 24) << 24)
#define LOWER(a, b) (((a) & 0xFFu) | ((a) >> 16 & 0xFFu) << 8 | ((b) & 0xFFu) << 16 | ((b) >> 16 & 0xFFu) << 24)
