/* The products of fused.cl on matrix units. CUDA C++ (compute capability 8.0 and later): OpenCL has no name for them,
   so that the instructions are inline PTX.

   FORMAT  0: TF32, mma.sync.m16n8k8, one value to a 32-bit word; 1: bf16, mma.sync.m16n8k16, two, the lower half first.
   TERMS   1: operands rounded; 3: each operand is split into hi = round(x) and lo = round(x - hi) while it is staged,
           and hi lo + lo hi + hi hi is summed; lo lo is below rounding. (S. Markidis et al., "NVIDIA Tensor Core
           Programmability, Performance & Precision", IPDPSW 2018; H. Ootomo, R. Yokota, "Recovering single precision
           accuracy from Tensor Cores", IJHPCA 2022.)

   FORWARD, INPUT: gamma is rounded, split and put into the order of fragments ahead (PACK), so that warps take it from
   the cache without any staging; what stands for all channels of a tile of positions is staged at once (WORDS words, in
   several turns where there are more), and between two barriers nothing but fragments and products is left.
   GAMMA: both operands are staged, WORDS words at a time, twice: the next are fetched while the present are multiplied.
   The units truncate what they add to, which adds up over a long inner dimension: GAMMA's products, and with APART the
   others', are summed apart and added to FP32 registers.

   Operands lie in shared memory as [part][row][word], 4 words of padding to a row: WORDS is a multiple of 8, so that
   eight rows of four words touch all banks once. In words both formats have one fragment layout; with g = lane / 4
   and t = lane % 4:
     A (16 rows x 8 words)    a0 (g, t)   a1 (g + 8, t)   a2 (g, t + 4)   a3 (g + 8, t + 4)
     B (8 columns x 8 words)  b0 (g, t)   b1 (g, t + 4)
     sums (16 x 8)            c0 (g, 2t)  c1 (g, 2t + 1)  c2 (g + 8, 2t)  c3 (g + 8, 2t + 1)
   ldmatrix gives each lane word t of row g of up to four 8 x 4-word matrices: a whole fragment of A, or two of B. */
#define PER_WORD (FORMAT ? 2 : 1)
#define DEPTH (WORDS * PER_WORD)
#define QUAD (4 * PER_WORD) /* values to 16 bytes of a staged row */
#define QUADS (WORDS / 4)
#define PITCH (WORDS + 4)
#define PARTS (TERMS == 3 ? 2 : 1)
#define WARPS_ACROSS (COLUMNS / WARP_COLUMNS)
#define ITEMS (32 * (ROWS / WARP_ROWS) * WARPS_ACROSS)
#define SLOTS(n) ((QUADS * (n) + ITEMS - 1) / ITEMS)
#define TILES_DOWN (WARP_ROWS / 16)
#define TILES_ACROSS (WARP_COLUMNS / 8)
#define FITS(slot, n) (QUADS * (n) % ITEMS == 0 || (slot) < QUADS * (n))
#define BUFFER (PARTS * (ROWS + COLUMNS) * PITCH)

#include "products.h"

/* A slot is QUAD values of one row. Neighbouring items take what lies side by side in memory. */
#define SLOT_ROW(slot, n) (ALONG ? (slot) / QUADS : (slot) % (n))
#define SLOT_QUAD(slot, n) (ALONG ? (slot) % QUADS : (slot) / (n))
#define PLACE(slot, n) (SLOT_ROW(slot, n) * PITCH + 4 * SLOT_QUAD(slot, n))

/* One word of an operand, and what rounding left of it: of TF32 the first value alone. */
uint round_word(float first, float second) {
    uint word;
#if FORMAT /* whose upper half is the instruction's first source */
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
#else
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(first));
#endif
    return word;
}

uint round_rest(float first, float second, uint word) {
#if FORMAT
    return round_word(first - as_float(word << 16), second - as_float(word & 0xFFFF0000u));
#else
    return round_word(first - as_float(word), 0.0f);
#endif
}

#ifdef PACK
/* Gamma (INPUT: its transpose) as operand A: [16 rows][8 words][part][lane] of the four words of a fragment; zeros beyond
   the channels. One work-item to `count` fragments of a lane, all parts. */
__kernel void pack(__global const float *RESTRICT gamma, uint channels, uint steps, uint count,
                   __global uint4 *RESTRICT packed) {
    uint i = get_global_id(0);
    if (i >= count) return;
    uint lane = i % 32, row = i / 32 / steps * 16 + lane / 4, word = i / 32 % steps * 8 + lane % 4;
    uint hi[4], lo[4];
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        uint m = row + r % 2 * 8, k = PER_WORD * (word + r / 2 * 4);
        float v[2] = {0.0f, 0.0f};
        #pragma unroll
        for (int e = 0; e < PER_WORD; ++e) {
            if (m < channels && k + e < channels) v[e] = gamma[OF_TRANSPOSE ? (k + e) * channels + m : m * channels + k + e];
        }
        hi[r] = round_word(v[0], v[1]);
        lo[r] = round_rest(v[0], v[1], hi[r]);
    }
    packed += i / 32 * 32 * PARTS + lane;
    packed[0] = make_uint4(hi[0], hi[1], hi[2], hi[3]);
    if (PARTS == 2) packed[32] = make_uint4(lo[0], lo[1], lo[2], lo[3]);
}
#else
/* Where a quad's values begin in the inner dimension, and how far apart they are. The order of positions does not matter to
   their sum, as long as both operands have the same: single words are dealt out so that neighbours take neighbours. */
#if defined(GAMMA) && !NHWC && VECTOR == 1
#define QUAD_DEPTH(quad) (quad)
#define NEXT QUADS
#else
#define QUAD_DEPTH(quad) (QUAD * (quad))
#define NEXT 1
#endif

/* QUAD values from `at` on, `stride` apart; 0 from the `left`-th value of the inner dimension on. */
void fetch(float *v, const float *RESTRICT x, uint at, uint stride, uint depth, uint left) {
    #pragma unroll
    for (uint e = 0; e < QUAD; e += ALONG ? VECTOR : 1) {
        bool there = depth != ~0u && depth + e * NEXT < left;
        if (ALONG && VECTOR == 4) {
            float4 four = there ? vload4(0, x + at + e) : SPLAT_FLOAT4(0.0f);
            v[e] = four.x;
            v[e + 1] = four.y;
            v[e + 2] = four.z;
            v[e + 3] = four.w;
        } else {
            v[e] = there ? x[at + e * NEXT * stride] : 0.0f;
        }
    }
}

/* Rounds and splits QUAD values and stores them as words of a row, lo behind hi by `part` words. */
void put(uint *row, uint part, const float *v) {
    uint hi[4], lo[4];
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        float first = v[PER_WORD * i], second = v[PER_WORD * i + PER_WORD - 1];
        hi[i] = round_word(first, second);
        lo[i] = round_rest(first, second, hi[i]);
    }
    *reinterpret_cast<uint4 *>(row) = make_uint4(hi[0], hi[1], hi[2], hi[3]);
    if (PARTS == 2) *reinterpret_cast<uint4 *>(row + part) = make_uint4(lo[0], lo[1], lo[2], lo[3]);
}

void load_matrices(uint *words, const uint *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"((uint)__cvta_generic_to_shared(row)) : "memory");
}

#if FORMAT
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
#else
#define MMA "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
#endif
void multiply(float *c, const uint *a, const uint *b) {
    asm volatile(MMA " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Adds to the sums what A's fragments make with TURNS x 8 words of the columns whose staged rows begin at `b_row`; with OWN
   by way of sums of their own. */
template <bool OWN, int TURNS>
void multiply_words(float (*sum)[TILES_ACROSS][4], const uint (*x)[PARTS][TILES_DOWN][4], const uint *b_row) {
    #pragma unroll
    for (int j = 0; j < TILES_ACROSS; j += 2) {
        uint y[TURNS][PARTS][4];
        #pragma unroll
        for (int k = 0; k < TURNS; ++k) {
            #pragma unroll
            for (int q = 0; q < PARTS; ++q) load_matrices(y[k][q], b_row + (q * COLUMNS + 8 * j) * PITCH + 8 * k);
        }
        #pragma unroll
        for (int i = 0; i < TILES_DOWN; ++i) {
            #pragma unroll
            for (int h = 0; h < 2; ++h) {
                float own[4] = {}, *to = OWN ? own : sum[i][j + h];
                #pragma unroll
                for (int k = 0; k < TURNS; ++k) {
                    if (PARTS == 2) {
                        multiply(to, x[k][0][i], y[k][PARTS - 1] + 2 * h);
                        multiply(to, x[k][PARTS - 1][i], y[k][0] + 2 * h);
                    }
                    multiply(to, x[k][0][i], y[k][0] + 2 * h);
                }
                #pragma unroll
                for (int r = 0; OWN && r < 4; ++r) sum[i][j + h][r] += own[r];
            }
        }
    }
}

#if defined(FORWARD) || defined(INPUT)
__kernel void REQD_GROUP_RESIDENT(ITEMS, RESIDENT) PRODUCT(PRODUCT_PARAMETERS(uint4)) {
    LOCAL_ARENA(uint, staged, PARTS * COLUMNS * PITCH);
    uint item = get_local_id(0), lane = item % 32, warp = item / 32, g = lane / 4, t = lane % 4;
    uint row_tiles = (channels + ROWS - 1) / ROWS, first_column = get_group_id(0) / row_tiles * COLUMNS;
    uint warp_row = get_group_id(0) % row_tiles * ROWS + warp / WARPS_ACROSS * WARP_ROWS;
    uint warp_column = warp % WARPS_ACROSS * WARP_COLUMNS;
    uint steps = (channels + 8 * PER_WORD - 1) / (8 * PER_WORD);
    packed += warp_row / 16 * steps * PARTS * 32 + lane;
    /* Lanes address the rows of four matrices in turn: along, then down. */
    const uint *b_row = staged + (warp_column + lane % 8 + lane / 16 * 8) * PITCH + lane / 8 % 2 * 4;

    float sum[TILES_DOWN][TILES_ACROSS][4];
    #pragma unroll
    for (int i = 0; i < TILES_DOWN; ++i) {
        #pragma unroll
        for (int r = 0; r < 4; ++r) {
            float start = 0.0f;
#ifdef FORWARD
            uint row = warp_row + 16 * i + r / 2 * 8 + g;
            if (r % 2 == 0 && row < channels) start = beta[row];
#endif
            #pragma unroll
            for (int j = 0; j < TILES_ACROSS; ++j) sum[i][j][r] = r % 2 ? sum[i][j][r - 1] : start;
        }
    }

    for (uint first = 0; first < steps; first += WORDS / 8) {
        if (first) barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll FETCHES
        for (uint s = 0; s < SLOTS(COLUMNS); ++s) {
            uint slot = item + s * ITEMS, p = first_column + SLOT_ROW(slot, COLUMNS);
            uint channel = first * 8 * PER_WORD + QUAD * SLOT_QUAD(slot, COLUMNS);
            uint depth = p < positions && FITS(slot, COLUMNS) ? channel : ~0u;
            uint at = BASE(p) + channel * CHANNEL_STRIDE;
            float v[QUAD];
            fetch(v, w, at, CHANNEL_STRIDE, depth, channels);
#ifdef FORWARD
            #pragma unroll
            for (int e = 0; e < QUAD; ++e) v[e] *= v[e];
#else
            float from[QUAD], root[QUAD];
            fetch(from, delta, at, CHANNEL_STRIDE, depth, channels);
            fetch(root, d, at, CHANNEL_STRIDE, depth, channels);
            #pragma unroll
            for (int e = 0; e < QUAD; ++e) v[e] = TERM(from[e], v[e], root[e]);
#endif
            if (FITS(slot, COLUMNS)) put(staged + PLACE(slot, COLUMNS), COLUMNS * PITCH, v);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        uint turns = min((uint)WORDS / 8, steps - first);
        uint next[PARTS][TILES_DOWN][4];
        auto fetch_rows = [&](uint k) {
            #pragma unroll
            for (int i = 0; i < TILES_DOWN; ++i) {
                #pragma unroll
                for (int q = 0; q < PARTS; ++q) {
                    uint4 four = packed[((i * steps + first + k) * PARTS + q) * 32];
                    next[q][i][0] = four.x;
                    next[q][i][1] = four.y;
                    next[q][i][2] = four.z;
                    next[q][i][3] = four.w;
                }
            }
        };
        fetch_rows(0);
        #pragma unroll UNROLL
        for (uint k = 0; k < turns; ++k) {
            uint x[1][PARTS][TILES_DOWN][4];
            #pragma unroll
            for (int i = 0; i < PARTS * TILES_DOWN * 4; ++i) (&x[0][0][0][0])[i] = (&next[0][0][0])[i];
            if (k + 1 < turns) fetch_rows(k + 1);
            multiply_words<APART, 1>(sum, x, b_row + 8 * k);
        }
    }

    /* Results are stored as what is not needed again (__stcs), so that the operands, which are, stay in the cache. */
    auto finish = [&](uint at, float s) {
        float x = w[at];
#ifdef FORWARD
        float root = native_rsqrt(s);
#if SAVE
        __stcs(saved + at, root);
#endif
        __stcs(u + at, x * (INVERSE ? s * root : root));
#else
        float slope = INVERSE ? 1.0f / d[at] : d[at];
        __stcs(dw + at, delta[at] * slope + 2.0f * x * s);
#endif
    };
    auto finish_two = [&](uint at, float2 s) {
        float2 x = vload2(0, w + at);
#ifdef FORWARD
        float2 root = MAKE_FLOAT2(native_rsqrt(s.x), native_rsqrt(s.y));
#if SAVE
        __stcs(reinterpret_cast<float2 *>(saved + at), root);
#endif
        __stcs(reinterpret_cast<float2 *>(u + at), x * (INVERSE ? s * root : root));
#else
        float2 slope = vload2(0, d + at);
        if (INVERSE) slope = 1.0f / slope;
        __stcs(reinterpret_cast<float2 *>(dw + at), vload2(0, delta + at) * slope + 2.0f * x * s);
#endif
    };
    #pragma unroll
    for (int j = 0; j < TILES_ACROSS; ++j) {
        uint p = first_column + warp_column + 8 * j + 2 * t;
        if (p >= positions) continue;
        uint base = BASE(p), next = BASE(p + 1);
        #pragma unroll
        for (int i = 0; i < TILES_DOWN; ++i) {
            #pragma unroll
            for (int h = 0; h < 2; ++h) {
                uint row = warp_row + 16 * i + 8 * h + g;
                if (row >= channels) continue;
                float first = sum[i][j][2 * h], second = sum[i][j][2 * h + 1];
                if (VECTOR == 4 && !NHWC) {
                    finish_two(base + row * CHANNEL_STRIDE, MAKE_FLOAT2(first, second));
                } else {
                    finish(base + row * CHANNEL_STRIDE, first);
                    if (p + 1 < positions) finish(next + row * CHANNEL_STRIDE, second);
                }
            }
        }
    }
}
#endif

#ifdef GAMMA
__kernel void REQD_GROUP_RESIDENT(ITEMS, RESIDENT) gamma_gradient(GAMMA_PARAMETERS) {
    LOCAL_ARENA(uint, arena, 2 * BUFFER);
    uint item = get_local_id(0), lane = item % 32, warp = item / 32, g = lane / 4, t = lane % 4;
    uint warp_row = warp / WARPS_ACROSS * WARP_ROWS, warp_column = warp % WARPS_ACROSS * WARP_COLUMNS;
    const uint stride = NHWC ? channels : 1;
    Split at = split_of_group(channels, pixels, batch, steps);

    uint a_at[SLOTS(ROWS)], a_depth[SLOTS(ROWS)], b_at[SLOTS(COLUMNS)], b_depth[SLOTS(COLUMNS)];
    float a[SLOTS(ROWS)][3][QUAD], b[SLOTS(COLUMNS)][QUAD], row_sum[SLOTS(ROWS)]; /* between fetching and putting */
    #pragma unroll
    for (int s = 0; s < SLOTS(ROWS); ++s) {
        uint slot = item + s * ITEMS, row = at.first_row + SLOT_ROW(slot, ROWS), depth = QUAD_DEPTH(SLOT_QUAD(slot, ROWS));
        a_at[s] = row * CHANNEL_STRIDE + depth * stride;
        a_depth[s] = row < channels && FITS(slot, ROWS) ? depth : ~0u;
        row_sum[s] = 0.0f;
    }
    #pragma unroll
    for (int s = 0; s < SLOTS(COLUMNS); ++s) {
        uint slot = item + s * ITEMS, row = at.first_column + SLOT_ROW(slot, COLUMNS);
        uint depth = QUAD_DEPTH(SLOT_QUAD(slot, COLUMNS));
        b_at[s] = row * CHANNEL_STRIDE + depth * stride;
        b_depth[s] = row < channels && FITS(slot, COLUMNS) ? depth : ~0u;
    }
    auto fetch_all = [&] {
        uint start = at.image + at.pixel * stride, left = pixels - at.pixel;
        #pragma unroll
        for (int s = 0; s < SLOTS(ROWS); ++s) {
            fetch(a[s][0], delta, start + a_at[s], stride, a_depth[s], left);
            fetch(a[s][1], w, start + a_at[s], stride, a_depth[s], left);
            fetch(a[s][2], d, start + a_at[s], stride, a_depth[s], left);
        }
        #pragma unroll
        for (int s = 0; s < SLOTS(COLUMNS); ++s) fetch(b[s], w, start + b_at[s], stride, b_depth[s], left);
    };
    auto put_all = [&](uint buffer) {
        uint *to = arena + buffer * BUFFER;
        float v[QUAD];
        #pragma unroll
        for (int s = 0; s < SLOTS(ROWS); ++s) {
            uint slot = item + s * ITEMS;
            if (FITS(slot, ROWS)) {
                #pragma unroll
                for (int e = 0; e < QUAD; ++e) {
                    v[e] = TERM(a[s][0][e], a[s][1][e], a[s][2][e]);
                    row_sum[s] += v[e];
                }
                put(to + PLACE(slot, ROWS), ROWS * PITCH, v);
            }
        }
        to += PARTS * ROWS * PITCH;
        #pragma unroll
        for (int s = 0; s < SLOTS(COLUMNS); ++s) {
            uint slot = item + s * ITEMS;
            if (FITS(slot, COLUMNS)) {
                #pragma unroll
                for (int e = 0; e < QUAD; ++e) v[e] = b[s][e] * b[s][e];
                put(to + PLACE(slot, COLUMNS), COLUMNS * PITCH, v);
            }
        }
    };

    float sum[TILES_DOWN][TILES_ACROSS][4] = {};
    fetch_all();
    put_all(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint buffer = 0; at.step < at.last; ++at.step, buffer ^= 1) {
        bool more = at.step + 1 < at.last;
        if (more) {
            next_positions(&at, channels, pixels);
            fetch_all();
        }
        /* Lanes address the rows of four matrices in turn: A down, then along; B along, then down. */
        const uint *a_row = arena + buffer * BUFFER + (warp_row + lane % 16) * PITCH + lane / 16 * 4;
        const uint *b_row = arena + buffer * BUFFER + PARTS * ROWS * PITCH +
                            (warp_column + lane % 8 + lane / 16 * 8) * PITCH + lane / 8 % 2 * 4;
        uint x[WORDS / 8][PARTS][TILES_DOWN][4];
        #pragma unroll
        for (int k = 0; k < WORDS / 8; ++k) {
            #pragma unroll
            for (int q = 0; q < PARTS; ++q) {
                #pragma unroll
                for (int i = 0; i < TILES_DOWN; ++i)
                    load_matrices(x[k][q][i], a_row + (q * ROWS + 16 * i) * PITCH + 8 * k);
            }
        }
        multiply_words<true, WORDS / 8>(sum, x, b_row);
        if (more) put_all(buffer ^ 1);
        barrier(CLK_LOCAL_MEM_FENCE);
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
    if (at.first_column == 0) { /* the sums of a row's quads, in their order */
        float *sums = reinterpret_cast<float *>(arena);
        #pragma unroll
        for (int s = 0; s < SLOTS(ROWS); ++s) {
            uint slot = item + s * ITEMS;
            if (FITS(slot, ROWS)) sums[SLOT_QUAD(slot, ROWS) * ROWS + SLOT_ROW(slot, ROWS)] = row_sum[s];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint row = item; row < ROWS; row += ITEMS) {
            float total = 0.0f;
            for (uint q = 0; q < QUADS; ++q) total += sums[q * ROWS + row];
            if (at.first_row + row < channels) partial[channels * channels + at.first_row + row] = total;
        }
    }
#endif
}
#endif
#endif
