/* The products by matrix tiles (matrix_tile.h), one source for matrix units, for GPUs without them and for CPUs:
     FORWARD  z = beta + gamma w^2;  u = w z^(-1/2), inverse: w z^(1/2); with SAVE also D = z^(-1/2)
     INPUT    g = gamma^T t;         dw = delta D + 2 w g, inverse: delta / D + 2 w g
     GAMMA    dgamma = t (w^2)^T;    with BETA also dbeta = t 1; partial sums, which `finish` adds up

   FORWARD, INPUT: columns of a tile lie along what is contiguous in memory: in NCHW rows are output channels and columns positions, in
   NHWC rows are positions and columns output channels. So gamma is the operand of the rows, or of the columns.

   A work-group takes PLACES tiles of POSITIONS positions of an image; in each of its turns it makes CHANNELS output channels of one of
   them, ROWS x COLUMNS sums, a tile of TILE_ROWS x TILE_COLUMNS to each team. What stands for STAGED channels of the positions (w^2 or t)
   is staged in local memory: where STAGED holds all channels, once for all turns, else (RESTAGE) anew in each. Gamma lies in panels of
   PANEL output channels, zeros beyond the last (PACK); with STAGE_GAMMA it goes through local memory, too, and a panel is
   a turn's. Sums go through local memory to the work-items that take the root and multiply: neighbours store neighbours, in vectors of
   ACCESS words, whatever the sizes of planes and tiles.

   GAMMA: a work-group sums ROWS x COLUMNS of dgamma over its split of the positions, DEPTH at a time, of which both operands are staged;
   where one tile holds all channels (SHARED), w is read once for both. With COPIES they are made of copies of the maps that are begun
   steps ahead (ahead.h). TEAMS teams go over its tiles: where each has one, sums stay in registers, else they wait in the split's
   partial sums. */
#if defined(GAMMA) || defined(FINISH)
#define ROWS_IN __local
#define COLUMNS_IN __local
#define SUMS_IN __global
#define ROW_LINES LINES
#else
#define SUMS_IN __local
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
#endif
#define GROUP_ITEMS (TEAM * TEAMS)
#if COPIES
#define MAPS_IN __local
#else
#define MAPS_IN __global
#endif
#include "matrix_tile.h"
#include "products.h"
#include "ahead.h"

#ifdef PACK
/* Gamma (INPUT: its transpose) as an operand: [panel][step][line], zeros beyond the channels. `count` words, or lanes of fragments, to
   `inner` channels of the inner dimension. */
__kernel void pack(__global const float *RESTRICT gamma, uint channels, uint inner, uint count, __global word *RESTRICT packed) {
    uint slot = get_global_id(0);
    if (slot >= count) return;
#define WEIGHT(line, k)                                                                                        \
    ((line) < channels && (k) < channels ? gamma[OF_TRANSPOSE ? (k) * channels + (line) : (line) * channels + (k)] : 0.0f)
#if TERMS
    uint lane = slot % 32, groups = PANEL / 16, group = slot / 32 % groups, step = slot / 32 / groups, steps = inner / STEP;
    uint first = step / steps * PANEL + 16 * group, k = step % steps * STEP;
    float v[4 * PER_WORD];
    #pragma unroll
    for (uint r = 0; r < 4; ++r) {
        #pragma unroll
        for (uint e = 0; e < PER_WORD; ++e)
            v[r * PER_WORD + e] = WEIGHT(first + FRAGMENT_LINE(lane, r), k + FRAGMENT_INNER(lane, r, e));
    }
    PUT_FRAGMENT(packed + step * WORDS_OF(PANEL) + group * PARTS * PART_WORDS + PLACE_OF_LANE(lane), v);
#else
    uint line = slot / (PANEL * inner) * PANEL + slot % PANEL, k = slot / PANEL % inner;
    packed[slot] = WEIGHT(line, k);
#endif
}
#endif

#if defined(FORWARD) || defined(INPUT) || defined(GAMMA)
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

#if !TERMS
/* Puts ACCESS values down: of a line, from inner index k on, or of neighbouring lines. */
INLINE void put_operand(__local word *to, uint width, uint line, uint k, access made) {
    if (ALONG) {
        float part[ACCESS];
        WORDS_TO(part, made);
        #pragma unroll
        for (uint e = 0; e < ACCESS; ++e) to[(k + e) * width + line] = part[e];
    } else {
        PUT(made, to + k * width + line);
    }
}
#endif

/* Stages `count` values of the inner dimension of `width` lines, of which `lines` are inside the maps, 0 beyond them: t, w^2 or each in its
   place. Lines, or with ALONG the inner dimension, lie side by side from `start` on, the others `stride` apart; with COPIES in copies
   of them. */
#define OF_T 1
#define OF_SQUARE 2
INLINE void stage(int makes, __local word *terms, __local word *squares, uint width, MAPS_IN const float *delta, MAPS_IN const float *w,
                  MAPS_IN const float *d, uint start, uint stride, uint lines, uint count, uint item) {
#if TERMS
    #pragma unroll FETCHES
    for (uint slot = item; slot < (count + STEP - 1) / STEP * width * 2; slot += GROUP_ITEMS) {
        /* Neighbouring work-items take what lies side by side in the maps. */
        uint of = slot % 32, lane = ALONG ? of : of % 8 * 4 + of / 8;
        uint fragment = slot / 32 % (width / 16), step = slot / 32 / (width / 16);
        float t[4 * PER_WORD], square[4 * PER_WORD];
        #pragma unroll
        for (uint r = 0; r < 4; ++r) {
            #pragma unroll
            for (uint e = 0; e < PER_WORD; ++e) {
                uint line = 16 * fragment + FRAGMENT_LINE(lane, r);
#if COPIES
                uint k = step * STEP + COPY_INNER(lane, r, e);
                uint across = ALONG ? line : k, along = ALONG ? k : line;
                uint at = across * COPY_PITCH(width) + BEFORE_LINE(start + across * stride) + along;
#define WORD_OF(x) ((x)[at])
#else
                uint k = step * STEP + FRAGMENT_INNER(lane, r, e);
                uint at = start + (ALONG ? line * stride + k : line + k * stride);
                int there = line < lines && k < count;
#define WORD_OF(x) (there ? (x)[at] : 0.0f)
#endif
                float x = WORD_OF(w);
                if (makes & OF_T) {
                    float from = WORD_OF(delta), root = WORD_OF(d);
                    t[r * PER_WORD + e] = TERM(from, x, root);
                }
                if (makes & OF_SQUARE) square[r * PER_WORD + e] = x * x;
            }
        }
        uint to = step * WORDS_OF(width) + fragment * PARTS * PART_WORDS + PLACE_OF_LANE(lane);
        if (makes & OF_T) PUT_FRAGMENT(terms + to, t);
        if (makes & OF_SQUARE) PUT_FRAGMENT(squares + to, square);
    }
#else
    uint slots = ALONG ? (count + ACCESS - 1) / ACCESS * width : count * (width / ACCESS);
    #pragma unroll FETCHES
    for (uint slot = item; slot < slots; slot += GROUP_ITEMS) {
#if ALONG && GROUP_ITEMS == 1 /* line by line: these are pages apart */
        uint of_line = (count + ACCESS - 1) / ACCESS, line = slot / of_line, k = slot % of_line * ACCESS;
#elif ALONG
        uint line = slot % width, k = slot / width * ACCESS;
#else
        uint line = slot % (width / ACCESS) * ACCESS, k = slot / (width / ACCESS);
#endif
        uint at = start + (ALONG ? line * stride + k : line + k * stride);
        int inside = ALONG ? (line < lines ? (int)(count - k) : 0) : (int)lines - (int)line;
        access x = READ(w + at, inside);
        if (makes & OF_T) {
            access from = READ(delta + at, inside), root = READ(d + at, inside);
            put_operand(terms, width, line, k, TERM(from, x, root));
        }
        if (makes & OF_SQUARE) put_operand(squares, width, line, k, x * x);
    }
#endif
}
#endif

#if defined(FORWARD) || defined(INPUT)
#ifdef FORWARD
#define MAKES OF_SQUARE
#define STAGED_OF w, w, w
#else
#define MAKES OF_T
#define STAGED_OF delta, w, d
#endif
#define SQUARES (PLACES * (STAGED / STEP) * WORDS_OF(POSITIONS)) /* words of local memory */
#define PITCH (COLUMNS + (TERMS ? 8 : 0)) /* of results: pairs that a warp puts down are in different banks */
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
#if GROUP_ITEMS == 1 /* the next group's maps: it is likely to be the same processor's */
        fetch_share(STAGED_OF, start + PLACES * POSITIONS * (NHWC ? channels : 1), NHWC ? channels : pixels,
                    NHWC ? PLACES * POSITIONS : channels, NHWC ? channels : PLACES * POSITIONS, turn, turns);
#endif
        for (uint first = 0; first < channels; first += STAGED) {
            const uint count = min((uint)STAGED, channels - first), steps = (count + STEP - 1) / STEP;
            if (RESTAGE || STAGE_GAMMA) SYNC(); /* products, or results, are done with what is replaced */
            if (RESTAGE || turn == 0) {
                const uint last = RESTAGE ? (place + 1) * POSITIONS : here;
                for (uint p = RESTAGE ? place * POSITIONS : 0; p < last; p += POSITIONS) {
                    __local word *to = arena + (RESTAGE ? 0 : p) / POSITIONS * (STAGED / STEP) * WORDS_OF(POSITIONS);
                    uint from = start + p * (NHWC ? channels : 1) + first * CHANNEL_STRIDE;
                    stage(MAKES, to, to, POSITIONS, STAGED_OF, from, NHWC ? channels : pixels, here - p, count, item);
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

#if defined(GAMMA) || defined(FINISH)
/* Of a split's partial sums: whole tiles of dgamma, and of dbeta LINES words to a tile's rows. */
#define TILES(n, side) (((n) + (side) - 1) / (side))
#define PARTIAL_PITCH(channels) (TILES(channels, COLUMNS) * COLUMNS)
#define BETA_AT(channels) (TILES(channels, ROWS) * ROWS * PARTIAL_PITCH(channels))
#define PARTIAL(channels) (BETA_AT(channels) + BETA * TILES(channels, ROWS) * LINES)
#endif

#ifdef GAMMA
#define TILES_ACROSS (COLUMNS / TILE_COLUMNS)
#define TURNS (ROWS / TILE_ROWS * TILES_ACROSS / TEAMS)
__kernel REQD_GROUP_RESIDENT(GROUP_ITEMS, RESIDENT) void gamma_gradient(GAMMA_PARAMETERS) {
    RESIDENT_GROUPS(GROUP_ITEMS, RESIDENT);
    LOCAL_ARENA(word, arena, ARENA);
    __local word *squares = arena + DEPTH / STEP * WORDS_OF(LINES);
    const uint item = get_local_id(0), team = item / TEAM, lane = item % TEAM;
    const uint pitch = PARTIAL_PITCH(channels), stride = NHWC ? channels : pixels;
    Split at = split_of_group(channels, pixels, batch, steps);
    partial += (size_t)at.split * PARTIAL(channels);
    __global float *sums = partial + at.first_row * pitch + at.first_column;
    row_sums sum[ROWS_OF_SUMS];
    tile_start(sum);
#if COPIES
#define MAP(x, n) (copy + (n) * COPY_WORDS(LINES))
    __local float *copies = (__local float *)(squares + DEPTH / STEP * WORDS_OF(COLUMN_LINES)), *copy = copies;
    Split ahead = at;
    #pragma unroll
    for (int n = 0; n < COPIES; ++n)
        copy_step(copies + n * STEP_WORDS, delta, w, d, &ahead, channels, pixels, batch * channels * pixels, item);
#else
#define MAP(x, n) (x)
#endif
    for (const uint first = at.step; at.step < at.last; ++at.step) {
        const uint count = min((uint)DEPTH, pixels - at.pixel), here = (count + STEP - 1) / STEP;
        const uint start = at.image + at.pixel * (NHWC ? channels : 1);
        const uint of_rows = start + at.first_row * CHANNEL_STRIDE, of_columns = start + at.first_column * CHANNEL_STRIDE;
#if COPIES
        copies_there();
#endif
        SYNC();
        stage(SHARED ? OF_T | OF_SQUARE : OF_T, arena, squares, LINES, MAP(delta, 0), MAP(w, 1), MAP(d, 2), of_rows, stride,
              min(channels - at.first_row, (uint)ROWS), count, item);
        if (!SHARED)
            stage(OF_SQUARE, squares, squares, COLUMN_LINES, MAP(w, 3), MAP(w, 3), MAP(w, 3), of_columns, stride,
                  channels - at.first_column, count, item);
        SYNC();
#if COPIES /* this step's copy is used up */
        copy_step(copy, delta, w, d, &ahead, channels, pixels, batch * channels * pixels, item);
        copy = copy == copies + (COPIES - 1) * STEP_WORDS ? copies : copy + STEP_WORDS;
#endif
#if GROUP_ITEMS == 1
        Split ahead = at;
        next_positions(&ahead, channels, pixels);
#endif
        for (uint turn = 0; turn < TURNS; ++turn) {
            const uint tile = turn * TEAMS + team;
            const uint row = tile / TILES_ACROSS * TILE_ROWS, column = tile % TILES_ACROSS * TILE_COLUMNS;
            __global float *to = sums + row * pitch + column;
#if GROUP_ITEMS == 1
            if (at.step + 1 < at.last)
                fetch_share(delta, w, d, ahead.image + ahead.pixel * (NHWC ? channels : 1) + at.first_row * CHANNEL_STRIDE, stride,
                            COPY_LINES(min(channels - at.first_row, (uint)ROWS)), COPY_SPAN(ROWS), turn, TURNS);
#endif
#if TURNS > 1
            if (at.step == first) tile_start(sum);
            else tile_take(sum, to, pitch);
#endif
            tile_multiply(sum, arena + WORDS_OF(row), squares + WORDS_OF(column), here, lane);
            if (TURNS > 1 || at.step + 1 == at.last) tile_put(sum, to, pitch, lane);
        }
#if BETA
        if (at.first_column == 0)
            add_line_sums(partial + BETA_AT(channels) + at.first_row / ROWS * LINES, arena, here, at.step == first, item);
#endif
        next_positions(&at, channels, pixels);
    }
}
#endif

#ifdef FINISH
/* Sums of the splits' partial results, in their order: the same bits every time. */
__kernel void finish(__global const float *RESTRICT partial, uint splits, uint channels, __global float *RESTRICT dgamma
#if BETA
                     , __global float *RESTRICT dbeta
#endif
) {
    uint i = get_global_id(0), row = i / channels, column = i % channels;
    if (i >= channels * (channels + BETA)) return;
    uint at = row * PARTIAL_PITCH(channels) + column;
    if (row == channels) at = BETA_AT(channels) + column / ROWS * LINES + column % ROWS;
    float sum = 0.0f;
    for (uint s = 0; s < splits; ++s) sum += partial[(size_t)s * PARTIAL(channels) + at];
#if BETA
    if (row == channels) dbeta[column] = sum;
    else
#endif
        dgamma[i] = sum;
}
#endif
