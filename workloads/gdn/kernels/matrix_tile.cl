/* The products over positions by matrix tiles (matrix_tile.h), one source for matrix units, for GPUs without them and for CPUs:
     FORWARD  z = beta + gamma w^2;  u = w z^(-1/2), inverse: w z^(1/2); with SAVE also D = z^(-1/2)
     INPUT    g = gamma^T t;         dw = delta D + 2 w g, inverse: delta / D + 2 w g
   Columns of a tile lie along what is contiguous in memory: in NCHW rows are output channels and columns positions, in NHWC rows are
   positions and columns output channels. So gamma is the operand of the rows, or of the columns.

   A work-group takes PLACES tiles of POSITIONS positions of an image; in each of its turns it makes CHANNELS output channels of one of
   them, ROWS x COLUMNS sums, a tile of TILE_ROWS x TILE_COLUMNS to each team. What stands for STAGED channels of the positions (w^2 or t)
   is staged in local memory: where STAGED holds all channels, once for all turns, else (RESTAGE) anew in each. Gamma lies in panels of
   PANEL output channels, zeros beyond the last (PACK); with STAGE_GAMMA it goes through local memory, too, and a panel is
   a turn's. Sums go through local memory to the work-items that take the root and multiply: neighbours store neighbours, in vectors of
   ACCESS words, whatever the sizes of planes and tiles. */
#define POSITIONS (NHWC ? ROWS : COLUMNS)
#define CHANNELS (NHWC ? COLUMNS : ROWS)
#define ROW_LINES (NHWC ? POSITIONS : PANEL)
#define COLUMN_LINES (NHWC ? PANEL : POSITIONS)
#if STAGE_GAMMA
#define GAMMA_IN __local
#else
#define GAMMA_IN __global
#endif
#if NHWC
#define ROWS_IN __local
#define COLUMNS_IN GAMMA_IN
#else
#define ROWS_IN GAMMA_IN
#define COLUMNS_IN __local
#endif
#include "matrix_tile.h"
#include "products.h"

#ifdef PACK
/* Gamma (INPUT: its transpose) as an operand: [panel][step][line], zeros beyond the channels. `count` words, or lanes of fragments, to
   `inner` channels of the inner dimension. */
__kernel void pack(__global const float *RESTRICT gamma, uint channels, uint inner, uint count, __global word *RESTRICT packed) {
    uint slot = get_global_id(0);
    if (slot >= count) return;
#define GAMMA(line, k)                                                                                         \
    ((line) < channels && (k) < channels ? gamma[OF_TRANSPOSE ? (k) * channels + (line) : (line) * channels + (k)] : 0.0f)
#if TERMS
    uint lane = slot % 32, groups = PANEL / 16, group = slot / 32 % groups, step = slot / 32 / groups, steps = inner / STEP;
    uint first = step / steps * PANEL + 16 * group, k = step % steps * STEP;
    float v[4 * PER_WORD];
    #pragma unroll
    for (uint r = 0; r < 4; ++r) {
        #pragma unroll
        for (uint e = 0; e < PER_WORD; ++e)
            v[r * PER_WORD + e] = GAMMA(first + FRAGMENT_LINE(lane, r), k + FRAGMENT_INNER(lane, r, e));
    }
    PUT_FRAGMENT(packed + step * WORDS_OF(PANEL) + group * PARTS * PART_WORDS + PLACE_OF_LANE(lane), v);
#else
    uint line = slot / (PANEL * inner) * PANEL + slot % PANEL, k = slot / PANEL % inner;
    packed[slot] = GAMMA(line, k);
#endif
}
#else

#define GROUP_ITEMS (TEAM * (ROWS / TILE_ROWS) * (COLUMNS / TILE_COLUMNS))
#define SQUARES (PLACES * (STAGED / STEP) * WORDS_OF(POSITIONS)) /* words of local memory */
#define PITCH (COLUMNS + (TERMS ? 8 : 0)) /* of results: pairs that a warp puts down are in different banks */
#if GROUP_ITEMS == 1 /* compilers for CPUs would keep the sums in memory across barriers */
#define SYNC()
#else
#define SYNC() barrier(CLK_LOCAL_MEM_FENCE)
#endif

/* ACCESS words of a line of which `count` are inside the maps, with TAILS perhaps fewer; 0 for the others. */
#if ACCESS == 1
typedef float access;
#define FILL(x) (x)
#define ROOT inverse_root_of_word
#define READ(x, count) ((count) > 0 ? *(x) : 0.0f)
#define WRITE(v, x, count) (*(x) = (v))
#define TAKE(x) (*(x))
#define PUT(v, x) (*(x) = (v))
#define WORDS_TO(part, v) (*(part) = (v))
#else
typedef vec access;
#define FILL(x) SPLAT(x)
#define ROOT inverse_root
#define TAKE(x) VLOAD(0, (x))
#define PUT(v, x) VSTORE((v), 0, (x))
#define WORDS_TO(part, v) VSTORE((v), 0, (part))
#if !TAILS
#define READ(x, count) ((count) > 0 ? VLOAD(0, (x)) : FILL(0.0f))
#define WRITE(v, x, count) VSTORE((v), 0, (x))
#else
#define READ(x, count) read_some((x), (count))
#define WRITE(v, x, count) write_some((v), (x), (count))

access read_some(__global const float *x, int count) {
    if (count >= ACCESS) return VLOAD(0, x);
    float part[ACCESS];
    for (int n = 0; n < ACCESS; ++n) part[n] = n < count ? x[n] : 0.0f;
    return VLOAD(0, part);
}

void write_some(access v, __global float *x, int count) {
    if (count >= ACCESS) {
        VSTORE(v, 0, x);
    } else {
        float part[ACCESS];
        VSTORE(v, 0, part);
        for (int n = 0; n < ACCESS; ++n) {
            if (n < count) x[n] = part[n];
        }
    }
}
#endif
#endif

#if TERMS
typedef float operand;
#else
typedef access operand;
#endif

operand square(operand x) { return x * x; }

#ifdef FORWARD
#define OPERAND(read) square(read(w))
#else
#define OPERAND(read) TERM(read(delta), read(w), read(d))
#endif

__kernel REQD_GROUP_RESIDENT(GROUP_ITEMS, RESIDENT) void PRODUCT(PRODUCT_PARAMETERS(word)) {
    RESIDENT_GROUPS(GROUP_ITEMS, RESIDENT);
    LOCAL_ARENA(word, arena, ARENA);
    __local float *results = (__local float *)(arena + RESULTS_AT);
    const uint item = get_local_id(0), team = item / TEAM, lane = item % TEAM;
    const uint row = team / (COLUMNS / TILE_COLUMNS) * TILE_ROWS, column = team % (COLUMNS / TILE_COLUMNS) * TILE_COLUMNS;
    const uint per_image = (pixels + PLACES * POSITIONS - 1) / (PLACES * POSITIONS), group = get_group_id(0);
    const uint pixel = group % per_image * (PLACES * POSITIONS), here = min(pixels - pixel, (uint)(PLACES * POSITIONS));
    const uint start = group / per_image * channels * pixels + pixel * (NHWC ? channels : 1);
    const uint inner = (channels + STEP - 1) / STEP * STEP, places = (here + POSITIONS - 1) / POSITIONS;
    const uint turns = (channels + CHANNELS - 1) / CHANNELS * places;

    for (uint turn = 0; turn < turns; ++turn) {
        const uint first_channel = turn / places * CHANNELS, place = turn % places;
        row_sums sum[ROWS_OF_SUMS];
        tile_start(sum);
        for (uint first = 0; first < inner; first += STAGED) {
            const uint count = min((uint)STAGED, inner - first), steps = count / STEP;
            if (RESTAGE || STAGE_GAMMA) SYNC(); /* products, or results, are done with what is replaced */
            if (RESTAGE || turn == 0) {
                for (uint p = RESTAGE ? place * POSITIONS : 0; p < (RESTAGE ? (place + 1) * POSITIONS : here); p += POSITIONS) {
                    __local word *to = arena + (RESTAGE ? 0 : p) / POSITIONS * (STAGED / STEP) * WORDS_OF(POSITIONS);
#if TERMS
                    #pragma unroll FETCHES
                    for (uint slot = item; slot < steps * POSITIONS * 2; slot += GROUP_ITEMS) {
                        /* Neighbouring work-items take what lies side by side in the maps. */
                        uint of = slot % 32, to_lane = NHWC ? of : of % 8 * 4 + of / 8;
                        uint fragment = slot / 32 % (POSITIONS / 16), step = slot / 32 / (POSITIONS / 16);
                        float v[4 * PER_WORD];
                        #pragma unroll
                        for (uint r = 0; r < 4; ++r) {
                            #pragma unroll
                            for (uint e = 0; e < PER_WORD; ++e) {
                                uint position = p + 16 * fragment + FRAGMENT_LINE(to_lane, r);
                                uint k = first + step * STEP + FRAGMENT_INNER(to_lane, r, e);
                                uint at = start + position * (NHWC ? channels : 1) + k * CHANNEL_STRIDE;
                                int there = position < here && k < channels;
#define WORD_OF(x) (there ? (x)[at] : 0.0f)
                                v[r * PER_WORD + e] = OPERAND(WORD_OF);
                            }
                        }
                        PUT_FRAGMENT(to + step * WORDS_OF(POSITIONS) + fragment * PARTS * PART_WORDS + PLACE_OF_LANE(to_lane), v);
                    }
#elif NHWC
                    #pragma unroll FETCHES
                    for (uint slot = item; slot < (count + ACCESS - 1) / ACCESS * POSITIONS; slot += GROUP_ITEMS) {
                        uint position = slot % POSITIONS, k = slot / POSITIONS * ACCESS;
                        int inside = p + position < here ? (int)(count - k) : 0;
                        uint at = start + (p + position) * channels + first + k;
#define WORDS_OF_MAP(x) READ((x) + at, inside)
                        access made = OPERAND(WORDS_OF_MAP);
                        float part[ACCESS];
                        WORDS_TO(part, made);
                        #pragma unroll
                        for (uint e = 0; e < ACCESS; ++e) to[(k + e) * POSITIONS + position] = part[e];
                    }
#else
                    #pragma unroll FETCHES
                    for (uint slot = item; slot < count * (POSITIONS / ACCESS); slot += GROUP_ITEMS) {
                        uint position = slot % (POSITIONS / ACCESS) * ACCESS, k = slot / (POSITIONS / ACCESS);
                        int inside = (int)here - (int)(p + position);
                        uint at = start + (first + k) * pixels + p + position;
#define WORDS_OF_MAP(x) READ((x) + at, inside)
                        access made = OPERAND(WORDS_OF_MAP);
                        PUT(made, to + k * POSITIONS + position);
                    }
#endif
                }
            }
            const uint channel = NHWC ? column : row; /* the team's first, of this turn's */
#if STAGE_GAMMA
            __local word *gamma_tile = arena + SQUARES;
            __global const word *panel = packed + (first_channel / PANEL * (inner / STEP) + first / STEP) * WORDS_OF(PANEL);
            for (uint slot = item; slot < (steps * WORDS_OF(PANEL) + 3) / 4; slot += GROUP_ITEMS)
                vstore4(vload4(slot, panel), slot, gamma_tile);
            __local const word *gamma = gamma_tile + WORDS_OF(channel);
#else
            __global const word *gamma =
                packed + ((first_channel + channel) / PANEL * (inner / STEP) + first / STEP) * WORDS_OF(PANEL);
#endif
            __local const word *squares =
                arena + (RESTAGE ? 0 : place) * (STAGED / STEP) * WORDS_OF(POSITIONS) + WORDS_OF(NHWC ? row : column);
            SYNC();
#if NHWC
            tile_multiply(sum, squares, gamma, steps, lane);
#else
            tile_multiply(sum, gamma, squares, steps, lane);
#endif
        }
        SYNC(); /* results may lie where operands lay, and those of the last turn are used up */
        tile_put(sum, results + row * PITCH + column, PITCH, lane);
        SYNC();
        for (uint slot = item; slot < ROWS * (COLUMNS / ACCESS); slot += GROUP_ITEMS) {
            uint r = slot / (COLUMNS / ACCESS), c = slot % (COLUMNS / ACCESS) * ACCESS;
            uint channel = first_channel + (NHWC ? c : r), position = place * POSITIONS + (NHWC ? r : c);
            int line = NHWC ? position < here : channel < channels;
            int count = line ? (NHWC ? (int)channels - (int)channel : (int)here - (int)position) : 0;
            if (count > 0) {
                uint at = start + channel * CHANNEL_STRIDE + position * (NHWC ? channels : 1);
                access x = READ(w + at, count), s = TAKE(results + r * PITCH + c);
#ifdef FORWARD
                access z = s + (NHWC ? READ(beta + channel, count) : FILL(beta[channel])), root = ROOT(z);
#if SAVE
                WRITE(root, saved + at, count);
#endif
                WRITE(x * (INVERSE ? z * root : root), u + at, count);
#else
                access slope = READ(d + at, count);
                if (INVERSE) slope = 1.0f / slope;
                WRITE(READ(delta + at, count) * slope + 2.0f * x * s, dw + at, count);
#endif
            }
        }
    }
}
#endif
