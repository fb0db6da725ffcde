/* dgamma's product on matrix units: delta, w and D are copied as they lie in memory, asynchronously, STAGES steps of WORDS words
   of positions at a time; each step's operands are made of the copies. Where one tile holds all channels (SHARED) w is copied
   once for both. */
#include "matrix_units.h"

#define LINES(n) (NHWC ? DEPTH : (n))
#define SPAN(n) (NHWC ? (n) : DEPTH)
#define LINE_PITCH(n) (SPAN(n) + EDGE)
#define COPY(n) (LINES(n) * LINE_PITCH(n))
#define COPIES (3 * COPY(ROWS) + (SHARED ? 0 : COPY(COLUMNS)))
#define GRAIN (VECTOR == 4 || NHWC ? 4 : 1) /* words of a row that an item makes at once */
#define MADE(n) ((n) * WORDS / GRAIN)
#define MADE_FITS(slot, n) (MADE(n) % ITEMS == 0 || (slot) < MADE(n))
#define MADE_ROW(slot, n) (NHWC ? (slot) % (n) : (slot) / (WORDS / GRAIN))
#define MADE_GRAIN(slot, n) (NHWC ? (slot) / (n) : (slot) % (WORDS / GRAIN))
#define COPY_CHANNELS(n) copy_lines<LINES(n), SPAN(n), LINE_PITCH(n)>

/* The values of GRAIN words of row `row` from a copy of lines that begin at `start`. */
template <uint N> void get(float *v, const float *copy, uint row, uint word, uint start, uint stride) {
    uint depth = PER_WORD * word;
    #pragma unroll
    for (uint e = 0; e < GRAIN * PER_WORD; e += VECTOR == 4 && !NHWC ? 4 : 1) {
        uint line = NHWC ? depth + e : row, along = NHWC ? row : depth + e;
        const float *from = copy + line * LINE_PITCH(N) + along + AHEAD(start + line * stride);
        if (VECTOR == 4 && !NHWC) {
            float4 four = vload4(0, from);
            v[e] = four.x;
            v[e + 1] = four.y;
            v[e + 2] = four.z;
            v[e + 3] = four.w;
        } else {
            v[e] = *from;
        }
    }
}

__kernel void REQD_GROUP_RESIDENT(ITEMS, RESIDENT) gamma_gradient(GAMMA_PARAMETERS) {
    LOCAL_ARENA(uint, arena, PARTS * (ROWS + COLUMNS) * PITCH + STAGES * COPIES);
    uint *a_tile = arena, *b_tile = arena + PARTS * ROWS * PITCH;
    float *copies = reinterpret_cast<float *>(b_tile + PARTS * COLUMNS * PITCH);
    uint item = get_local_id(0), lane = item % 32, warp = item / 32, g = lane / 4, t = lane % 4;
    uint warp_row = warp / WARPS_ACROSS * WARP_ROWS, warp_column = warp % WARPS_ACROSS * WARP_COLUMNS;
    /* Lanes address the rows of four matrices in turn: A down, then along; B along, then down. */
    const uint *a_row = a_tile + (warp_row + lane % 16) * PITCH + lane / 16 * 4;
    const uint *b_row = b_tile + (warp_column + lane % 8 + lane / 16 * 8) * PITCH + lane / 8 % 2 * 4;
    Split at = split_of_group(channels, pixels, batch, steps), ahead = at;

    auto start_of = [&](const Split &s, uint channel) {
        return s.image + channel * CHANNEL_STRIDE + s.pixel * (NHWC ? channels : 1);
    };
    const uint end = batch * channels * pixels;
    auto copy_next = [&](uint stage) {
        if (ahead.step < ahead.last) {
            float *to = copies + stage * COPIES;
            uint positions = pixels - ahead.pixel, rows = channels - ahead.first_row, start = start_of(ahead, ahead.first_row);
            uint lines = NHWC ? positions : rows, words = NHWC ? rows : positions;
            COPY_CHANNELS(ROWS)(to, delta, start, LINE_STRIDE, lines, words, end);
            COPY_CHANNELS(ROWS)(to + COPY(ROWS), w, start, LINE_STRIDE, lines, words, end);
            COPY_CHANNELS(ROWS)(to + 2 * COPY(ROWS), d, start, LINE_STRIDE, lines, words, end);
            if (!SHARED) {
                uint columns = channels - ahead.first_column;
                COPY_CHANNELS(COLUMNS)(to + 3 * COPY(ROWS), w, start_of(ahead, ahead.first_column), LINE_STRIDE,
                                    NHWC ? positions : columns, NHWC ? columns : positions, end);
            }
            ++ahead.step;
            next_positions(&ahead, channels, pixels);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    float row_sum[(MADE(ROWS) + ITEMS - 1) / ITEMS] = {};
    auto make_operands = [&](uint stage) {
        const float *copy = copies + stage * COPIES;
        uint start = start_of(at, at.first_row);
        #pragma unroll
        for (uint slot = item, s = 0; s < (MADE(ROWS) + ITEMS - 1) / ITEMS; slot += ITEMS, ++s) {
            if (MADE_FITS(slot, ROWS)) {
                uint row = MADE_ROW(slot, ROWS), word = GRAIN * MADE_GRAIN(slot, ROWS);
                float from[GRAIN * PER_WORD], x[GRAIN * PER_WORD], root[GRAIN * PER_WORD];
                get<ROWS>(from, copy, row, word, start, LINE_STRIDE);
                get<ROWS>(x, copy + COPY(ROWS), row, word, start, LINE_STRIDE);
                get<ROWS>(root, copy + 2 * COPY(ROWS), row, word, start, LINE_STRIDE);
                #pragma unroll
                for (int e = 0; e < GRAIN * PER_WORD; ++e) {
                    from[e] = TERM(from[e], x[e], root[e]);
                    row_sum[s] += from[e];
                    x[e] *= x[e];
                }
                put<GRAIN>(a_tile + row * PITCH + word, ROWS * PITCH, from);
                if (SHARED) put<GRAIN>(b_tile + row * PITCH + word, COLUMNS * PITCH, x);
            }
        }
        if (!SHARED) {
            start = start_of(at, at.first_column);
            #pragma unroll
            for (uint slot = item, s = 0; s < (MADE(COLUMNS) + ITEMS - 1) / ITEMS; slot += ITEMS, ++s) {
                if (MADE_FITS(slot, COLUMNS)) {
                    uint row = MADE_ROW(slot, COLUMNS), word = GRAIN * MADE_GRAIN(slot, COLUMNS);
                    float x[GRAIN * PER_WORD];
                    get<COLUMNS>(x, copy + 3 * COPY(ROWS), row, word, start, LINE_STRIDE);
                    #pragma unroll
                    for (int e = 0; e < GRAIN * PER_WORD; ++e) x[e] *= x[e];
                    put<GRAIN>(b_tile + row * PITCH + word, COLUMNS * PITCH, x);
                }
            }
        }
    };

    float sum[TILES_DOWN][TILES_ACROSS][4] = {};
    #pragma unroll
    for (uint stage = 0; stage < STAGES - 1; ++stage) copy_next(stage);
    uint stage = 0;
    for (; at.step < at.last; ++at.step) {
        asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 2) : "memory");
        barrier(CLK_LOCAL_MEM_FENCE); /* this step's copies are there, the last step's operands are used up */
        copy_next(stage ? stage - 1 : STAGES - 1);
        make_operands(stage);
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll
        for (int k = 0; k < WORDS / 8; ++k) {
            uint x[PARTS][TILES_DOWN][4];
            #pragma unroll
            for (int q = 0; q < PARTS; ++q) {
                #pragma unroll
                for (int i = 0; i < TILES_DOWN; ++i) load_matrices(x[q][i], a_row + (q * ROWS + 16 * i) * PITCH + 8 * k);
            }
            multiply_words<PARTS == 2>(sum, x, b_row + 8 * k);
        }
        next_positions(&at, channels, pixels);
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }

    partial += (size_t)at.split * channels * (channels + BETA);
    #pragma unroll
    for (int i = 0; i < TILES_DOWN; ++i) {
        #pragma unroll
        for (int j = 0; j < TILES_ACROSS; ++j) {
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                uint row = at.first_row + warp_row + 16 * i + r / 2 * 8 + g;
                uint column = at.first_column + warp_column + 8 * j + 2 * t + r % 2;
                if (row < channels && column < channels) partial[row * channels + column] = sum[i][j][r];
            }
        }
    }
#if BETA
    if (at.first_column == 0) { /* the sums of a row's grains, in their order */
        float *sums = reinterpret_cast<float *>(arena);
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll
        for (uint slot = item, s = 0; s < (MADE(ROWS) + ITEMS - 1) / ITEMS; slot += ITEMS, ++s) {
            if (MADE_FITS(slot, ROWS)) sums[MADE_GRAIN(slot, ROWS) * ROWS + MADE_ROW(slot, ROWS)] = row_sum[s];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint row = item; row < ROWS; row += ITEMS) {
            float total = 0.0f;
            for (uint q = 0; q < WORDS / GRAIN; ++q) total += sums[q * ROWS + row];
            if (at.first_row + row < channels) partial[channels * channels + at.first_row + row] = total;
        }
    }
#endif
}
