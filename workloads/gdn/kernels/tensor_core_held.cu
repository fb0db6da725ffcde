/* The products over positions on matrix units where gamma's fragments stay in local memory, and a work-group takes one tile of positions after another, of an image each. What is
   read of maps is copied once. FORWARD: the next tile while the present is multiplied. INPUT has room for one tile, whose delta
   becomes t and whose D becomes the gradient's first term. Columns' fragments are made by each warp that needs them. */
#include "matrix_units.h"

#define CHANNELS (8 * PER_WORD * STEPS)
#define TILE_PITCH ((NHWC ? CHANNELS : COLUMNS) + 4)
#define TILE (TILE_PITCH * (NHWC ? COLUMNS : CHANNELS))
#define OF_CHANNEL (NHWC ? 1 : TILE_PITCH) /* how far apart channels and positions are in a copy */
#define OF_POSITION (NHWC ? TILE_PITCH : 1)
#define POSITION_STRIDE (NHWC ? channels : 1)
#define HELD_WORDS (4 * 32 * PARTS * STEPS * (ROWS / 16))
#ifdef FORWARD
#define COPIED_WORDS (2 * TILE)
#define OPERAND(x) ((x) * (x))
#define RESULT u
#else
#define COPIED_WORDS (3 * TILE)
#define OPERAND(x) (x)
#define RESULT dw
#endif
__kernel void REQD_GROUP_RESIDENT(ITEMS, RESIDENT) PRODUCT(PRODUCT_PARAMETERS(uint4), uint tiles) {
    LOCAL_ARENA(float, arena, HELD_WORDS + COPIED_WORDS);
    uint item = get_local_id(0), lane = item % 32, warp = item / 32, g = lane / 4, t = lane % 4;
    uint warp_row = warp / WARPS_ACROSS * WARP_ROWS, column = warp % WARPS_ACROSS * WARP_COLUMNS;
    uint per_image = (pixels + COLUMNS - 1) / COLUMNS, end = positions * channels;
    const uint4 *held = reinterpret_cast<const uint4 *>(arena) + warp_row / 16 * STEPS * PARTS * 32 + lane;

    auto pixel_of = [&](uint tile) { return tile % per_image * COLUMNS; };
    auto start_of = [&](uint tile) { return tile / per_image * channels * pixels + pixel_of(tile) * POSITION_STRIDE; };
    auto copy_tile = [&](uint tile, float *to) {
        if (tile < tiles) {
            uint left = pixels - pixel_of(tile), lines = NHWC ? left : channels, words = NHWC ? channels : left;
            auto copy = [&](const float *x) {
                copy_lines<NHWC ? COLUMNS : CHANNELS, NHWC ? CHANNELS : COLUMNS, TILE_PITCH>(
                    to, x, start_of(tile), LINE_STRIDE, lines, words, end);
                to += TILE;
            };
            copy(w);
#ifdef INPUT
            copy(delta);
            copy(d);
#endif
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    for (uint slot = item; slot < HELD_WORDS / 4; slot += ITEMS)
        copy_part(arena + 4 * slot, reinterpret_cast<const float *>(packed + slot), 16);
    float *copy = arena + HELD_WORDS;
    copy_tile(get_group_id(0), copy);

    for (uint tile = get_group_id(0); tile < tiles; tile += get_num_groups(0)) {
        asm volatile("cp.async.wait_group %0;" :: "n"(0) : "memory");
        barrier(CLK_LOCAL_MEM_FENCE); /* this tile's copy is there, the last tile's is used up */
#ifdef FORWARD
        float *other = arena + HELD_WORDS + (copy == arena + HELD_WORDS ? TILE : 0), *operand = copy;
        copy_tile(tile + get_num_groups(0), other);
#else
        float *operand = copy + TILE;
        #pragma unroll 2
        for (uint i = item; i < TILE / 4; i += ITEMS) {
            float4 from = vload4(i, copy + TILE), x = vload4(i, copy), root = vload4(i, copy + 2 * TILE);
            vstore4(TERM(from, x, root), i, copy + TILE);
            vstore4(INVERSE ? from / root : from * root, i, copy + 2 * TILE);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        uint start = start_of(tile), left = pixels - pixel_of(tile);
        const float *from[2];
        #pragma unroll
        for (int r = 0; r < 2; ++r) {
            uint line = NHWC ? column + g : 2 * t + r;
            from[r] = operand + (2 * t + r) * OF_CHANNEL + (column + g) * OF_POSITION + AHEAD(start + line * LINE_STRIDE);
        }
        float sum[TILES_DOWN][TILES_ACROSS][4];
        #pragma unroll
        for (int i = 0; i < TILES_DOWN; ++i) {
            #pragma unroll
            for (int h = 0; h < 2; ++h) {
                float first = 0.0f;
#ifdef FORWARD
                uint row = warp_row + 16 * i + 8 * h + g;
                if (row < channels) first = beta[row];
#endif
                #pragma unroll
                for (int j = 0; j < TILES_ACROSS; ++j) sum[i][j][2 * h] = sum[i][j][2 * h + 1] = first;
            }
        }
        #pragma unroll UNROLL
        for (uint k = 0; k < STEPS; ++k) {
            uint x[PARTS][TILES_DOWN][4];
            #pragma unroll
            for (int i = 0; i < TILES_DOWN; ++i) {
                #pragma unroll
                for (int q = 0; q < PARTS; ++q) unpack(x[q][i], held[((i * STEPS + k) * PARTS + q) * 32]);
            }
            #pragma unroll
            for (int j = 0; j < TILES_ACROSS; ++j) {
                uint y[PARTS][2];
                #pragma unroll
                for (int h = 0; h < 2; ++h) { /* TF32: channel 2 t + h; bf16: 2 t + 8 h and the next */
                    uint at = (8 * PER_WORD * k + (FORMAT ? 8 * h : 0)) * OF_CHANNEL + 8 * j * OF_POSITION;
                    float first = OPERAND(from[FORMAT ? 0 : h][at]), second = OPERAND(from[1][at]);
                    y[0][h] = round_word(first, second);
                    if (PARTS == 2) y[PARTS - 1][h] = round_rest(first, second, y[0][h]);
                }
                #pragma unroll
                for (int i = 0; i < TILES_DOWN; ++i) {
                    if (PARTS == 2) {
                        multiply(sum[i][j], x[0][i], y[PARTS - 1]);
                        multiply(sum[i][j], x[PARTS - 1][i], y[0]);
                    }
                    multiply(sum[i][j], x[0][i], y[0]);
                }
            }
        }
        auto place_of = [&](uint row, uint p) {
            return row * OF_CHANNEL + p * OF_POSITION + AHEAD(start + (NHWC ? p : row) * LINE_STRIDE);
        };
        /* The result of a sum, which becomes the root that is saved. */
        auto finish = [&](float &s, uint at) {
#ifdef FORWARD
            float z = s;
            s = native_rsqrt(z);
            return copy[at] * (INVERSE ? z * s : s);
#else
            return copy[2 * TILE + at] + 2.0f * copy[at] * s;
#endif
        };
        auto for_pairs = [&](auto take) { /* of neighbouring positions, by row, first position, sums */
            #pragma unroll
            for (int i = 0; i < TILES_DOWN; ++i) {
                #pragma unroll
                for (int h = 0; h < 2; ++h) {
                    uint row = warp_row + 16 * i + 8 * h + g;
                    #pragma unroll
                    for (int j = 0; j < TILES_ACROSS; ++j) {
                        uint p = column + 8 * j + 2 * t;
                        if (row < channels && p < left) take(row, p, sum[i][j] + 2 * h);
                    }
                }
            }
        };
#if VECTOR == 1 && !NHWC /* by way of w's copy, so that neighbours store neighbours: parts of sectors are stored less often */
        auto store_lines = [&](float *to) {
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint i = item; i < channels * COLUMNS; i += ITEMS) {
                uint row = i / COLUMNS, p = i % COLUMNS;
                if (p < left) __stcs(to + start + row * pixels + p, copy[place_of(row, p)]);
            }
        };
#ifdef FORWARD
        barrier(CLK_LOCAL_MEM_FENCE); /* no warp needs the copy as an operand any more */
#endif
        for_pairs([&](uint row, uint p, float *s) {
            #pragma unroll
            for (uint r = 0; r < 2; ++r) {
                uint at = place_of(row, p + r);
                if (p + r < left) copy[at] = finish(s[r], at);
            }
        });
        store_lines(RESULT);
#if SAVE
        barrier(CLK_LOCAL_MEM_FENCE);
        for_pairs([&](uint row, uint p, float *s) {
            #pragma unroll
            for (uint r = 0; r < 2; ++r) {
                if (p + r < left) copy[place_of(row, p + r)] = s[r];
            }
        });
        store_lines(saved);
#endif
#else
        for_pairs([&](uint row, uint p, float *s) {
            uint to = start + row * CHANNEL_STRIDE + p * POSITION_STRIDE;
            float value[2] = {finish(s[0], place_of(row, p)), finish(s[1], place_of(row, p + 1))};
            store_two(RESULT, to, POSITION_STRIDE, value, p + 1 < left);
#if SAVE
            store_two(saved, to, POSITION_STRIDE, s, p + 1 < left);
#endif
        });
#endif
#ifdef FORWARD
        copy = other;
#else
        barrier(CLK_LOCAL_MEM_FENCE);
        copy_tile(tile + get_num_groups(0), copy);
#endif
    }
}
