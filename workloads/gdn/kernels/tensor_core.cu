/* The products of fused.cl on matrix units. CUDA alone (compute capability 8.0 and later): OpenCL has no name for them,
   so that the instructions are inline PTX.

   FORMAT  0: TF32, mma.sync.m16n8k8, one value to a 32-bit word; 1: bf16, mma.sync.m16n8k16, two, the lower half first.
   TERMS   1: operands rounded; 3: each operand is split into hi = round(x) and lo = round(x - hi) while it is staged,
           and hi lo + lo hi + hi hi is summed; lo lo is below rounding. (S. Markidis et al., "NVIDIA Tensor Core
           Programmability, Performance & Precision", IPDPSW 2018; H. Ootomo, R. Yokota, "Recovering single precision
           accuracy from Tensor Cores", IJHPCA 2022.)
   PROMOTE 1: the unit's sums, which it truncates, are added to FP32 registers after each step of DEPTH.

   Operands lie in shared memory as [part][row][word], WORDS words of the inner dimension and 4 of padding to a row, so
   that eight rows of four words touch all banks once (WORDS is 8 or 16). In words both formats have one fragment
   layout; with g = lane / 4 and t = lane % 4:
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

#if NHWC
#define CHANNEL_STRIDE 1u
#define BASE(p) ((p) * channels)
#else
#define CHANNEL_STRIDE pixels
#define BASE(p) ((p) / pixels * channels * pixels + (p) % pixels)
#endif
#if INVERSE
#define POWER(d) (d)
#define SIGN 0.5f
#else
#define POWER(d) ((d) * (d) * (d))
#define SIGN -0.5f
#endif

/* Whether neighbouring values of an operand's inner dimension are neighbours in memory. */
#ifdef FORWARD
#define A_ALONG 1
#elif defined(INPUT)
#define A_ALONG 0
#else
#define A_ALONG !NHWC
#endif
#ifdef GAMMA
#define B_ALONG !NHWC
#else
#define B_ALONG NHWC
#endif

/* A slot is QUAD values of one row. Neighbouring items take what lies side by side in memory. */
#define SLOT_ROW(slot, n, along) ((along) ? (slot) / QUADS : (slot) % (n))
#define SLOT_QUAD(slot, n, along) ((along) ? (slot) % QUADS : (slot) / (n))
#define PLACE(slot, n, along) (SLOT_ROW(slot, n, along) * PITCH + 4 * SLOT_QUAD(slot, n, along))

/* QUAD values from `at` on, `stride` apart; 0 from the `left`-th value of the inner dimension on. */
template <bool ALONG>
void fetch(float *v, const float *RESTRICT x, uint at, uint stride, uint depth, uint left) {
    #pragma unroll
    for (uint e = 0; e < QUAD; e += ALONG ? VECTOR : 1) {
        bool there = depth != ~0u && depth + e < left;
        if (ALONG && VECTOR == 4) {
            float4 four = there ? vload4(0, x + at + e) : SPLAT_FLOAT4(0.0f);
            v[e] = four.x;
            v[e + 1] = four.y;
            v[e + 2] = four.z;
            v[e + 3] = four.w;
        } else {
            v[e] = there ? x[at + e * stride] : 0.0f;
        }
    }
}

uint round_one(float x) {
    uint word;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(x));
    return word;
}

uint round_two(float first, float second) {
    uint word; /* whose upper half is the instruction's first source */
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
    return word;
}

/* Rounds and splits QUAD values and stores them as words of a row, lo behind hi by `part` words. */
void put(uint *row, uint part, const float *v) {
    uint hi[4], lo[4];
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
#if FORMAT
        hi[i] = round_two(v[2 * i], v[2 * i + 1]);
        lo[i] = round_two(v[2 * i] - as_float(hi[i] << 16), v[2 * i + 1] - as_float(hi[i] & 0xFFFF0000u));
#else
        hi[i] = round_one(v[i]);
        lo[i] = round_one(v[i] - as_float(hi[i]));
#endif
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

/* What one operand's slots hold between fetching and putting: one array, or the three that t is made of. */
template <int ARRAYS, int COUNT>
struct Staged {
    float v[COUNT][ARRAYS][QUAD];

    void values(int s, float *out) const {
        #pragma unroll
        for (int e = 0; e < QUAD; ++e) {
            if (ARRAYS == 3) out[e] = SIGN * v[s][0][e] * v[s][ARRAYS / 2][e] * POWER(v[s][ARRAYS - 1][e]);
            else out[e] = v[s][0][e];
        }
    }
};

#ifdef FORWARD
__kernel void REQD_GROUP(ITEMS) forward(__global const float *RESTRICT gamma, __global const float *RESTRICT beta,
                                        __global const float *RESTRICT w, uint channels, uint positions, uint pixels,
#if SAVE
                                        __global float *RESTRICT saved,
#endif
                                        __global float *RESTRICT u) {
#elif defined(INPUT)
__kernel void REQD_GROUP(ITEMS) input_gradient(__global const float *RESTRICT gamma,
                                               __global const float *RESTRICT delta, __global const float *RESTRICT w,
                                               __global const float *RESTRICT d, uint channels, uint positions,
                                               uint pixels, __global float *RESTRICT dw) {
#else
__kernel void REQD_GROUP(ITEMS) gamma_gradient(__global const float *RESTRICT delta, __global const float *RESTRICT w,
                                               __global const float *RESTRICT d, uint channels, uint pixels, uint batch,
                                               uint steps, __global float *RESTRICT partial) {
#endif
    LOCAL_ARENA(uint, arena, 2 * BUFFER);
    uint item = get_local_id(0), lane = item % 32, warp = item / 32, g = lane / 4, t = lane % 4;
    uint warp_row = warp / WARPS_ACROSS * WARP_ROWS, warp_column = warp % WARPS_ACROSS * WARP_COLUMNS;
    uint row_tiles = (channels + ROWS - 1) / ROWS, first_row = get_group_id(0) % row_tiles * ROWS;

    uint a_at[SLOTS(ROWS)], a_depth[SLOTS(ROWS)], b_at[SLOTS(COLUMNS)], b_depth[SLOTS(COLUMNS)];
#ifdef GAMMA
    uint column_tiles = (channels + COLUMNS - 1) / COLUMNS;
    uint first_column = get_group_id(0) / row_tiles % column_tiles * COLUMNS;
    uint split = get_group_id(0) / (row_tiles * column_tiles);
    uint per_image = (pixels + DEPTH - 1) / DEPTH, step = split * steps, last = min(step + steps, batch * per_image);
    uint pixel = step % per_image * DEPTH, image = step / per_image * channels * pixels;
    const uint limit = channels, a_stride = NHWC ? channels : 1, b_stride = a_stride;
#define A_START(row, depth) ((row) * CHANNEL_STRIDE + (depth) * a_stride)
#define B_START(row, depth) A_START(row, depth)
    Staged<3, SLOTS(ROWS)> a;
    Staged<1, SLOTS(COLUMNS)> b;
    float row_sum[SLOTS(ROWS)];
    #pragma unroll
    for (int s = 0; s < SLOTS(ROWS); ++s) row_sum[s] = 0.0f;
#else
    uint first_column = get_group_id(0) / row_tiles * COLUMNS;
    uint step = 0, last = (channels + DEPTH - 1) / DEPTH, channel = 0;
    const uint limit = positions, b_stride = CHANNEL_STRIDE;
#define B_START(row, depth) (BASE(row) + (depth) * CHANNEL_STRIDE)
    Staged<1, SLOTS(ROWS)> a;
#ifdef FORWARD
    const uint a_stride = 1;
#define A_START(row, depth) ((row) * channels + (depth))
    Staged<1, SLOTS(COLUMNS)> b;
#else
    const uint a_stride = channels;
#define A_START(row, depth) ((depth) * channels + (row))
    Staged<3, SLOTS(COLUMNS)> b;
#endif
#endif
    #pragma unroll
    for (int s = 0; s < SLOTS(ROWS); ++s) {
        uint slot = item + s * ITEMS, row = first_row + SLOT_ROW(slot, ROWS, A_ALONG);
        uint depth = QUAD * SLOT_QUAD(slot, ROWS, A_ALONG);
        a_at[s] = A_START(row, depth);
        a_depth[s] = row < channels && FITS(slot, ROWS) ? depth : ~0u;
    }
    #pragma unroll
    for (int s = 0; s < SLOTS(COLUMNS); ++s) {
        uint slot = item + s * ITEMS, row = first_column + SLOT_ROW(slot, COLUMNS, B_ALONG);
        uint depth = QUAD * SLOT_QUAD(slot, COLUMNS, B_ALONG);
        b_at[s] = B_START(row, depth);
        b_depth[s] = row < limit && FITS(slot, COLUMNS) ? depth : ~0u;
    }

    auto fetch_all = [&] {
#ifdef GAMMA
        uint at = image + pixel * a_stride, left = pixels - pixel;
        #pragma unroll
        for (int s = 0; s < SLOTS(ROWS); ++s) {
            fetch<A_ALONG>(a.v[s][0], delta, at + a_at[s], a_stride, a_depth[s], left);
            fetch<A_ALONG>(a.v[s][1], w, at + a_at[s], a_stride, a_depth[s], left);
            fetch<A_ALONG>(a.v[s][2], d, at + a_at[s], a_stride, a_depth[s], left);
        }
        #pragma unroll
        for (int s = 0; s < SLOTS(COLUMNS); ++s) fetch<B_ALONG>(b.v[s][0], w, at + b_at[s], b_stride, b_depth[s], left);
#else
        uint a_from = channel * a_stride, b_from = channel * b_stride, left = channels - channel;
        #pragma unroll
        for (int s = 0; s < SLOTS(ROWS); ++s)
            fetch<A_ALONG>(a.v[s][0], gamma, a_from + a_at[s], a_stride, a_depth[s], left);
        #pragma unroll
        for (int s = 0; s < SLOTS(COLUMNS); ++s) {
#ifdef FORWARD
            fetch<B_ALONG>(b.v[s][0], w, b_from + b_at[s], b_stride, b_depth[s], left);
#else
            fetch<B_ALONG>(b.v[s][0], delta, b_from + b_at[s], b_stride, b_depth[s], left);
            fetch<B_ALONG>(b.v[s][1], w, b_from + b_at[s], b_stride, b_depth[s], left);
            fetch<B_ALONG>(b.v[s][2], d, b_from + b_at[s], b_stride, b_depth[s], left);
#endif
        }
#endif
    };
    auto put_all = [&](uint buffer) {
        uint *to = arena + buffer * BUFFER;
        float v[QUAD];
        #pragma unroll
        for (int s = 0; s < SLOTS(ROWS); ++s) {
            uint slot = item + s * ITEMS;
            if (FITS(slot, ROWS)) {
                a.values(s, v);
#ifdef GAMMA
                #pragma unroll
                for (int e = 0; e < QUAD; ++e) row_sum[s] += v[e];
#endif
                put(to + PLACE(slot, ROWS, A_ALONG), ROWS * PITCH, v);
            }
        }
        to += PARTS * ROWS * PITCH;
        #pragma unroll
        for (int s = 0; s < SLOTS(COLUMNS); ++s) {
            uint slot = item + s * ITEMS;
            if (FITS(slot, COLUMNS)) {
                b.values(s, v);
#ifndef INPUT
                #pragma unroll
                for (int e = 0; e < QUAD; ++e) v[e] *= v[e];
#endif
                put(to + PLACE(slot, COLUMNS, B_ALONG), COLUMNS * PITCH, v);
            }
        }
    };

    float sum[TILES_DOWN][TILES_ACROSS][4];
    #pragma unroll
    for (int i = 0; i < TILES_DOWN; ++i) {
        #pragma unroll
        for (int r = 0; r < 4; ++r) {
            float start = 0.0f;
#ifdef FORWARD
            uint row = first_row + warp_row + 16 * i + r / 2 * 8 + g;
            if (r % 2 == 0 && row < channels) start = beta[row];
#endif
            #pragma unroll
            for (int j = 0; j < TILES_ACROSS; ++j) sum[i][j][r] = r % 2 ? sum[i][j][r - 1] : start;
        }
    }

    fetch_all();
    put_all(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint buffer = 0; step < last; ++step, buffer ^= 1) {
        bool more = step + 1 < last;
        if (more) {
#ifdef GAMMA
            pixel += DEPTH;
            if (pixel >= pixels) {
                pixel = 0;
                image += channels * pixels;
            }
#else
            channel += DEPTH;
#endif
            fetch_all();
        }
#if PROMOTE
        float part[TILES_DOWN][TILES_ACROSS][4] = {};
#else
        float (&part)[TILES_DOWN][TILES_ACROSS][4] = sum;
#endif
        /* Lanes address the rows of four matrices in turn: A down, then along; B along, then down. */
        const uint *a_row = arena + buffer * BUFFER + (warp_row + lane % 16) * PITCH + lane / 16 * 4;
        const uint *b_row = arena + buffer * BUFFER + PARTS * ROWS * PITCH +
                            (warp_column + lane % 8 + lane / 16 * 8) * PITCH + lane / 8 % 2 * 4;
        #pragma unroll
        for (int k = 0; k < WORDS; k += 8) {
            uint x[PARTS][TILES_DOWN][4];
            #pragma unroll
            for (int q = 0; q < PARTS; ++q) {
                #pragma unroll
                for (int i = 0; i < TILES_DOWN; ++i) load_matrices(x[q][i], a_row + (q * ROWS + 16 * i) * PITCH + k);
            }
            #pragma unroll
            for (int j = 0; j < TILES_ACROSS; j += 2) {
                uint y[PARTS][4];
                #pragma unroll
                for (int q = 0; q < PARTS; ++q) load_matrices(y[q], b_row + (q * COLUMNS + 8 * j) * PITCH + k);
                #pragma unroll
                for (int i = 0; i < TILES_DOWN; ++i) {
                    #pragma unroll
                    for (int h = 0; h < 2; ++h) {
                        if (PARTS == 2) {
                            multiply(part[i][j + h], x[0][i], y[PARTS - 1] + 2 * h);
                            multiply(part[i][j + h], x[PARTS - 1][i], y[0] + 2 * h);
                        }
                        multiply(part[i][j + h], x[0][i], y[0] + 2 * h);
                    }
                }
            }
        }
#if PROMOTE
        #pragma unroll
        for (int i = 0; i < TILES_DOWN; ++i) {
            #pragma unroll
            for (int j = 0; j < TILES_ACROSS; ++j) {
                #pragma unroll
                for (int r = 0; r < 4; ++r) sum[i][j][r] += part[i][j][r];
            }
        }
#endif
        if (more) put_all(buffer ^ 1);
        barrier(CLK_LOCAL_MEM_FENCE);
    }

#ifdef GAMMA
    partial += (size_t)split * channels * (channels + BETA);
    #pragma unroll
    for (int i = 0; i < TILES_DOWN; ++i) {
        #pragma unroll
        for (int j = 0; j < TILES_ACROSS; ++j) {
            #pragma unroll
            for (int r = 0; r < 4; ++r) {
                uint row = first_row + warp_row + 16 * i + r / 2 * 8 + g;
                uint column = first_column + warp_column + 8 * j + 2 * t + r % 2;
                if (row < channels && column < channels) partial[row * channels + column] = sum[i][j][r];
            }
        }
    }
#if BETA
    if (first_column == 0) { /* the sums of a row's quads, in their order */
        float *sums = reinterpret_cast<float *>(arena);
        #pragma unroll
        for (int s = 0; s < SLOTS(ROWS); ++s) {
            uint slot = item + s * ITEMS;
            uint row = SLOT_ROW(slot, ROWS, A_ALONG), quad = SLOT_QUAD(slot, ROWS, A_ALONG);
            if (FITS(slot, ROWS)) sums[quad * ROWS + row] = row_sum[s];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint row = item; row < ROWS; row += ITEMS) {
            float total = 0.0f;
            for (uint q = 0; q < QUADS; ++q) total += sums[q * ROWS + row];
            if (first_row + row < channels) partial[channels * channels + first_row + row] = total;
        }
    }
#endif
#else
    auto finish = [&](uint at, float s) {
        float x = w[at];
#ifdef FORWARD
        float root = rsqrt(s);
#if SAVE
        saved[at] = root;
#endif
        u[at] = x * (INVERSE ? s * root : root);
#else
        float slope = INVERSE ? 1.0f / d[at] : d[at];
        dw[at] = delta[at] * slope + 2.0f * x * s;
#endif
    };
    auto finish_two = [&](uint at, float2 s) {
        float2 x = vload2(0, w + at);
#ifdef FORWARD
        float2 root = MAKE_FLOAT2(rsqrt(s.x), rsqrt(s.y));
#if SAVE
        vstore2(root, 0, saved + at);
#endif
        vstore2(x * (INVERSE ? s * root : root), 0, u + at);
#else
        float2 slope = vload2(0, d + at);
        if (INVERSE) slope = 1.0f / slope;
        vstore2(vload2(0, delta + at) * slope + 2.0f * x * s, 0, dw + at);
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
                uint row = first_row + warp_row + 16 * i + 8 * h + g;
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
#endif
}
