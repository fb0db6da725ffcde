/* The pyramid's levels. */

/* One level. The host has the same names (LEVEL in variants/layout.py; a test holds the two together). */
typedef struct {
    uint place;                             /* of its integral image in the atlas */
    uint width, height;                     /* of its image */
    uint columns, step;                     /* windows in a row, and how many pixels they are apart */
    uint first_window;                      /* number of its first window */
    uint columns_multiplier, columns_shift; /* of a division by columns */
    uint first_row, first_piece;            /* in the lists of all rows, and of all pieces of columns (STRIP rows high) */
    uint column_table, row_table;           /* where its columns and rows begin in the table of coefficients */
    uint rows;                              /* of windows */
    float scale;
    uint first_tile;                        /* of windows */
} Level;

/* Defines a search by bisection: the last level whose FIELD is not above n. */
#define LEVEL_BY(FIELD)                                                                                         \
    __global const Level *level_by_##FIELD(__global const Level *levels, uint count, uint n) {                  \
        uint low = 0, high = count;                                                                             \
        while (high - low > 1) {                                                                                \
            uint middle = (low + high) >> 1;                                                                    \
            if (levels[middle].FIELD <= n) low = middle; else high = middle;                                    \
        }                                                                                                       \
        return levels + low;                                                                                    \
    }
