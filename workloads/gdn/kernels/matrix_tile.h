/* Matrix tiles: a team of work-items multiplies TILE_ROWS rows by TILE_COLUMNS columns, whatever the device has for it.

     TERMS not 0   matrix units (mma.h): a team is a warp, operands are fragments, rounded or split words
     else          FMA on vectors of WIDTH words: a team is one work-item, operands are FP32

   Operands lie step by step of the inner dimension, STEP of it at a time: [step][line], a line being a row of the first or a column
   of the second operand. Units: [step][16 lines][part][lane], four words of a fragment to a lane, of lines g and g + 8 and words t and
   t + 4; both operands have the same, since a fragment of 16 rows is two of 8 columns with words in another order. ROW_LINES and
   COLUMN_LINES say how many lines a step holds, ROWS_IN and COLUMNS_IN in which memory, SUMS_IN where sums are put. */
#include "mma.h"
#include "vectors.h"

#if TERMS
#define TEAM 32
#define STEP (8 * PER_WORD)
#define WORDS_OF(lines) ((lines) * 8 * PARTS)
typedef uint word;
typedef float row_sums[TILE_COLUMNS / 8][4];
#define ROWS_OF_SUMS (TILE_ROWS / 16)
#else
#define TEAM 1
#define STEP 1
#define WORDS_OF(lines) (lines)
typedef float word;
typedef vec row_sums[TILE_COLUMNS / WIDTH];
#define ROWS_OF_SUMS TILE_ROWS
#endif

#if TERMS
/* Where a lane's words stand among those of a fragment: neighbours in g, which write side by side, and neighbours in t, which read
   side by side, are in different banks. */
#define PLACE_OF_LANE(lane) (4 * (((lane) & ~3u) | (((lane) ^ (lane) >> 3) & 3)))
#define PART_WORDS 128

#define TAKE_FOUR(to, from)              \
    do {                                 \
        uint4 four = vload4(0, (from));  \
        (to)[0] = four.x;                \
        (to)[1] = four.y;                \
        (to)[2] = four.z;                \
        (to)[3] = four.w;                \
    } while (0)

/* Puts down a lane's values, [word half][line half][PER_WORD], rounded, and what rounding left behind them. */
#define PUT_FRAGMENT(to, v)                                                                                  \
    do {                                                                                                     \
        uint hi[4], lo[4];                                                                                   \
        _Pragma("unroll") for (int r = 0; r < 4; ++r) {                                                      \
            float first = (v)[r * PER_WORD], second = (v)[r * PER_WORD + PER_WORD - 1];                      \
            hi[r] = round_word(first, second);                                                               \
            lo[r] = round_rest(first, second, hi[r]);                                                        \
        }                                                                                                    \
        vstore4(MAKE_UINT4(hi[0], hi[1], hi[2], hi[3]), 0, (to));                                            \
        if (PARTS == 2) vstore4(MAKE_UINT4(lo[0], lo[1], lo[2], lo[3]), 0, (to) + PART_WORDS);               \
    } while (0)

/* Of both operands: line and inner index of a lane's value r * PER_WORD + e. */
#define FRAGMENT_LINE(lane, r) ((lane) / 4 + 8 * ((r) % 2))
#define FRAGMENT_INNER(lane, r, e) (PER_WORD * ((lane) % 4 + 4 * ((r) / 2)) + (e))
#endif

INLINE void tile_start(row_sums *sum) {
    #pragma unroll
    for (int i = 0; i < ROWS_OF_SUMS; ++i) {
        #pragma unroll
#if TERMS
        for (int j = 0; j < TILE_COLUMNS / 8; ++j) {
            #pragma unroll
            for (int r = 0; r < 4; ++r) sum[i][j][r] = 0.0f;
        }
#else
        for (int v = 0; v < TILE_COLUMNS / WIDTH; ++v) sum[i][v] = SPLAT(0.0f);
#endif
    }
}

/* Adds the product of `steps` steps; `rows` and `columns` point to the tile's first line, `lane` is of the team. */
INLINE void tile_multiply(row_sums *sum, ROWS_IN const word *rows, COLUMNS_IN const word *columns, uint steps, uint lane) {
#if TERMS
    rows += PLACE_OF_LANE(lane);
    columns += PLACE_OF_LANE(lane);
    #pragma unroll UNROLL
    for (uint k = 0; k < steps; ++k) {
        uint a[PARTS][TILE_ROWS / 16][4];
        #pragma unroll
        for (int q = 0; q < PARTS; ++q) {
            #pragma unroll
            for (int i = 0; i < TILE_ROWS / 16; ++i)
                TAKE_FOUR(a[q][i], rows + k * WORDS_OF(ROW_LINES) + (i * PARTS + q) * PART_WORDS);
        }
        #pragma unroll
        for (int j = 0; j < TILE_COLUMNS / 16; ++j) {
            uint b[PARTS][4];
            #pragma unroll
            for (int q = 0; q < PARTS; ++q)
                TAKE_FOUR(b[q], columns + k * WORDS_OF(COLUMN_LINES) + (j * PARTS + q) * PART_WORDS);
            #pragma unroll
            for (int h = 0; h < 2; ++h) {
                uint hi[2] = {b[0][h], b[0][h + 2]}, lo[2] = {b[PARTS - 1][h], b[PARTS - 1][h + 2]};
                #pragma unroll
                for (int i = 0; i < TILE_ROWS / 16; ++i) {
                    float own[4] = {0.0f, 0.0f, 0.0f, 0.0f}, *to = APART ? own : sum[i][2 * j + h];
                    if (PARTS == 2) {
                        multiply(to, a[0][i], lo);
                        multiply(to, a[PARTS - 1][i], hi);
                    }
                    multiply(to, a[0][i], hi);
                    #pragma unroll
                    for (int r = 0; r < 4; ++r) {
                        if (APART) sum[i][2 * j + h][r] += own[r];
                    }
                }
            }
        }
    }
#else
    #pragma unroll UNROLL
    for (uint k = 0; k < steps; ++k) {
        vec x[TILE_COLUMNS / WIDTH];
        float y[TILE_ROWS];
        #pragma unroll
        for (int v = 0; v < TILE_COLUMNS / WIDTH; ++v) x[v] = VLOAD(v, columns + k * COLUMN_LINES);
#if WIDTH == 4
        #pragma unroll
        for (int r = 0; r < TILE_ROWS; r += 4) {
            float4 four = vload4(0, rows + k * ROW_LINES + r);
            y[r] = four.x;
            y[r + 1] = four.y;
            y[r + 2] = four.z;
            y[r + 3] = four.w;
        }
#else
        #pragma unroll
        for (int r = 0; r < TILE_ROWS; ++r) y[r] = rows[k * ROW_LINES + r];
#endif
        #pragma unroll
        for (int r = 0; r < TILE_ROWS; ++r) {
            #pragma unroll
            for (int v = 0; v < TILE_COLUMNS / WIDTH; ++v) sum[r][v] = fma(SPLAT(y[r]), x[v], sum[r][v]);
        }
    }
#endif
}

/* Puts the sums down as [row][pitch]: whoever comes after need not know which work-item holds which. */
INLINE void tile_put(row_sums *sum, SUMS_IN float *to, uint pitch, uint lane) {
#if TERMS
    to += lane / 4 * pitch + 2 * (lane % 4);
    #pragma unroll
    for (int i = 0; i < TILE_ROWS / 16; ++i) {
        #pragma unroll
        for (int h = 0; h < 2; ++h) {
            #pragma unroll
            for (int j = 0; j < TILE_COLUMNS / 8; ++j)
                vstore2(MAKE_FLOAT2(sum[i][j][2 * h], sum[i][j][2 * h + 1]), 0, to + (16 * i + 8 * h) * pitch + 8 * j);
        }
    }
#else
    #pragma unroll
    for (int r = 0; r < TILE_ROWS; ++r) {
        #pragma unroll
        for (int v = 0; v < TILE_COLUMNS / WIDTH; ++v) VSTORE(sum[r][v], v, to + r * pitch);
    }
#endif
}

#ifdef GAMMA
#if !TERMS
/* Takes sums up that were put down. */
INLINE void tile_take(row_sums *sum, __global const float *from, uint pitch) {
    #pragma unroll
    for (int r = 0; r < TILE_ROWS; ++r) {
        #pragma unroll
        for (int v = 0; v < TILE_COLUMNS / WIDTH; ++v) sum[r][v] = VLOAD(v, from + r * pitch);
    }
}
#endif

/* Adds the sums of the first operand's lines over so many steps to what `to` has, or if they are the first begins with them. */
INLINE void add_line_sums(__global float *to, __local const word *lines, uint steps, int first, uint item) {
#if TERMS /* a product with ones, 16 lines to a warp */
    const uint one = FORMAT ? 0x3F803F80u : 0x3F800000u, ones[2] = {one, one}, lane = item % TEAM;
    for (uint group = item / TEAM; group < LINES / 16; group += TEAMS) {
        float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        for (uint k = 0; k < steps; ++k) {
            #pragma unroll
            for (int q = 0; q < PARTS; ++q) {
                uint a[4];
                float own[4] = {0.0f, 0.0f, 0.0f, 0.0f};
                TAKE_FOUR(a, lines + k * WORDS_OF(LINES) + (group * PARTS + q) * PART_WORDS + PLACE_OF_LANE(lane));
                multiply(own, a, ones);
                sum[0] += own[0];
                sum[2] += own[2];
            }
        }
        if (lane % 4 == 0) {
            #pragma unroll
            for (int h = 0; h < 2; ++h) {
                uint line = 16 * group + lane / 4 + 8 * h;
                to[line] = first ? sum[2 * h] : to[line] + sum[2 * h];
            }
        }
    }
#else
    for (uint line = WIDTH * item; line < LINES; line += WIDTH * TEAMS) {
        vec sum = SPLAT(0.0f);
        if (!first) sum = VLOAD(0, to + line);
        for (uint k = 0; k < steps; ++k) sum = sum + VLOAD(0, lines + k * LINES + line);
        VSTORE(sum, 0, to + line);
    }
#endif
}
#endif
