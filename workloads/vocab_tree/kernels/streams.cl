/* One pass of k-means for processors with few cores and wide vectors; meaning as in fused.cl. One work-item to
   a group. 16 points at a time: their rows are turned into vectors of the same four dimensions of 16 points, a multiply-add
   of bytes for each centre and half of its 16 bits, then rows are added in 16-bit halves, emptied every 256 points.

   VNNI: the processor's dot product of four bytes by inline assembly (PoCL's compiler takes it). Its second operand is
   signed, so both bytes of a centre are stored less 128: that adds the same to every score of a point. Without it the
   compiler gets products of 16-bit integers, the centre less 32768.

   Macros: K, DIMS, CENTRES (at a time), VNNI, AHEAD (points fetched ahead, because a block of 16 rows fills what the
   processor reorders). OpenCL alone: vectors of 16 integers are not in the dialect. */
#include "pass.cl"

#define WORDS (DIMS / 4)
#define MASK 0x00FF00FFu
#define PADDED ((K + CENTRES - 1) / CENTRES * CENTRES)
#define HELD 256

/* Words of a and b alternate, by 128-bit lanes: the lower two of each lane, or the upper two. The compilers of CPU runtimes
   are Clang, whose shuffles become one instruction. */
#define WORDS_LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define WORDS_HIGH(a, b) __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define PAIRS_LOW(a, b) __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define PAIRS_HIGH(a, b) __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
#define FOUR(i) vload4(0, (__global const int *)from + at[i] + w)
#define EIGHT(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7)
#define SIXTEEN(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define ROWS4(i) SIXTEEN(EIGHT(FOUR(i), FOUR(i + 4)), EIGHT(FOUR(i + 8), FOUR(i + 12)))

#if VNNI
#define MULTIPLY(acc, x, c) __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(x), "m"(c))
#endif

__kernel void pass(PARAMETERS(ushort)) {
    LOCAL_ARRAY(uint, total, K * DIMS); /* dimension 4 w + j of a cluster in row j, as in fused.cl */
    LOCAL_ARRAY(uint, pairs, K * 2 * WORDS);
    LOCAL_ARRAY(uint, count, K);
    LOCAL_ARRAY(int, half_norm, PADDED);
#if VNNI
    LOCAL_ARRAY(int, parts, WORDS * PADDED * 2); /* words of bytes: [word][centre][upper, lower] */
#else
    LOCAL_ARRAY(short, parts, DIMS * PADDED); /* [dimension][centre] */
#endif
    uint4 tile = vload4(get_group_id(0), tiles);
    uint node = tile.x, first = tile.y, length = moving[node] ? tile.z : 0;
    if (length == 0) return;

    for (uint i = 0; i < K * DIMS; ++i) total[i] = 0;
    for (uint i = 0; i < K * 2 * WORDS; ++i) pairs[i] = 0;
    for (uint k = 0; k < K; ++k) count[k] = 0;
    for (uint k = 0; k < PADDED; ++k) {
        __global const ushort *c = centres + ((size_t)node * K + k) * DIMS;
        half_norm[k] = k < K ? halves[node * K + k] : INT_MAX;
        for (uint w = 0; w < WORDS; ++w) {
#if VNNI
            uint upper = 0, lower = 0;
            if (k < K) {
                for (uint j = 0; j < 4; ++j) {
                    upper |= (uint)(c[4 * w + j] >> 8) << 8 * j;
                    lower |= (uint)(c[4 * w + j] & 255) << 8 * j;
                }
                upper ^= 0x80808080u;
                lower ^= 0x80808080u;
            }
            parts[(w * PADDED + k) * 2] = (int)upper;
            parts[(w * PADDED + k) * 2 + 1] = (int)lower;
#else
            for (uint j = 0; j < 4; ++j) parts[(4 * w + j) * PADDED + k] = k < K ? (short)((int)c[4 * w + j] - 32768) : 0;
#endif
        }
    }

    uint held = 0;
    for (uint base = 0; base < length; base += 16) {
        __global const uint *from = points + ((size_t)first + base) * WORDS;
        uint here = min(16u, length - base);
        uint at[16];
        #pragma unroll
        for (uint i = 0; i < 16; ++i) at[i] = min(i, here - 1) * WORDS;
        int16 best = -INT_MAX - 1, nearest = 0;
        for (uint k = 0; k < PADDED; k += CENTRES) {
#if VNNI
            int16 upper[CENTRES], lower[CENTRES];
            #pragma unroll
            for (int c = 0; c < CENTRES; ++c) upper[c] = lower[c] = 0;
#else
            int16 upper[CENTRES];
            #pragma unroll
            for (int c = 0; c < CENTRES; ++c) upper[c] = 0;
#endif
            for (uint w = 0; w < WORDS; w += 4) {
                int16 a = ROWS4(0), b = ROWS4(1), c = ROWS4(2), d = ROWS4(3);
                int16 ab = WORDS_LOW(a, b), cd = WORDS_LOW(c, d), x[4];
                x[0] = PAIRS_LOW(ab, cd);
                x[1] = PAIRS_HIGH(ab, cd);
                ab = WORDS_HIGH(a, b);
                cd = WORDS_HIGH(c, d);
                x[2] = PAIRS_LOW(ab, cd);
                x[3] = PAIRS_HIGH(ab, cd);
                #pragma unroll
                for (int q = 0; q < 4; ++q) {
#if VNNI
                    __local const int *part = parts + ((w + q) * PADDED + k) * 2;
                    #pragma unroll
                    for (int c = 0; c < CENTRES; ++c) {
                        MULTIPLY(upper[c], x[q], part[2 * c]);
                        MULTIPLY(lower[c], x[q], part[2 * c + 1]);
                    }
#else
                    __local const short *part = parts + 4 * (w + q) * PADDED + k;
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        int16 byte = x[q] >> 8 * j & 255;
                        #pragma unroll
                        for (int c = 0; c < CENTRES; ++c) upper[c] += byte * (int)part[j * PADDED + c];
                    }
#endif
                }
            }
            #pragma unroll
            for (int c = 0; c < CENTRES; ++c) {
#if VNNI
                int16 score = upper[c] * 256 + lower[c] - half_norm[k + c];
#else
                int16 score = upper[c] - half_norm[k + c];
#endif
                int16 better = score > best;
                best = select(best, score, better);
                int16 number = (int)k + c;
                nearest = select(nearest, number, better);
            }
        }
        int label[16];
        vstore16(nearest, 0, label);
        for (uint i = 0; i < here; ++i) {
            PREFETCH(from + (i + AHEAD) * WORDS);
            PREFETCH(from + (i + AHEAD) * WORDS + 16);
            uint k = label[i];
            labels[first + base + i] = (uchar)k;
            ++count[k];
            __local uint *pair = pairs + k * 2 * WORDS;
            __global const uint *x = from + i * WORDS;
            #pragma unroll
            for (int w = 0; w < WORDS / 4; ++w) {
                uint4 four = vload4(w, x);
                vstore4(vload4(w, pair) + (four & MASK), w, pair);
                vstore4(vload4(w, pair + WORDS) + (four >> 8 & MASK), w, pair + WORDS);
            }
        }
        held += 16;
        if (held == HELD || base + 16 >= length) {
            for (uint i = 0; i < K * 2 * WORDS; ++i) {
                uint at = i / (2 * WORDS) * DIMS + i % (2 * WORDS);
                total[at] += pairs[i] & 0xFFFFu;
                total[at + 2 * WORDS] += pairs[i] >> 16;
                pairs[i] = 0;
            }
            held = 0;
        }
    }
    for (uint i = 0; i < K * DIMS; ++i) {
        uint d = i % DIMS;
        atomic_add(sums + (size_t)node * K * DIMS + i, total[i / DIMS * DIMS + d % 4 * WORDS + d / 4]);
    }
    for (uint k = 0; k < K; ++k) atomic_add(counts + node * K + k, count[k]);
}
