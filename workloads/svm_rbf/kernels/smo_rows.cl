#include "vector.cl"
#define PITCH (vectors * WIDTH)

/* Rows of one or two points for the group's chunk; `two` is a literal. */
#if LANES == 1
void rows(__global const float *RESTRICT data, __global float *out_a, __global float *out_b, int a, int b, int two,
          uint first, uint last, uint vectors, __local float *part) {
    __global const float *pa = data + (size_t)a * PITCH, *pb = data + (size_t)b * PITCH;
    for (uint tile = first + 16 * get_local_id(0); tile < last; tile += 16 * GROUP) {
        float ta[16], tb[16];
        #pragma unroll 1
        for (uint r0 = 0; r0 < 16; r0 += ROWS) {
            vec sa[ROWS], sb[ROWS];
            __global const float *x[ROWS];
            #pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                sa[r] = SPLAT(0.0f);
                sb[r] = SPLAT(0.0f);
                x[r] = data + (size_t)min(tile + r0 + r, (uint)(NPOINTS - 1)) * PITCH;
            }
            for (uint v = 0; v < vectors; ++v) {
                vec va = VLOAD(v, pa), vb = VLOAD(v, pb);
                #pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    vec value = VLOAD(v, x[r]);
                    vec diff = value - va;
                    sa[r] = fma(diff, diff, sa[r]);
                    if (two) {
                        diff = value - vb;
                        sb[r] = fma(diff, diff, sb[r]);
                    }
                }
            }
            #pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                ta[r0 + r] = SUM(sa[r]);
                if (two) tb[r0 + r] = SUM(sb[r]);
            }
        }
        float16 scale = SPLAT_FLOAT16(-GAMMA);
        vstore16(exp(scale * vload16(0, ta)), 0, out_a + tile);
        if (two) vstore16(exp(scale * vload16(0, tb)), 0, out_b + tile);
    }
}
#define PART_WORDS 1
#else
/* Teams of LANES work-items read rows side by side; their partial sums meet in local memory. */
#define TEAMS (GROUP / LANES)
#define BLOCK (TEAMS * ROWS)
#define PART_WORDS (2 * BLOCK * (LANES + 1))
void rows(__global const float *RESTRICT data, __global float *out_a, __global float *out_b, int a, int b, int two,
          uint first, uint last, uint vectors, __local float *part) {
    uint item = get_local_id(0), lane = item % LANES, team = item / LANES;
    __global const float *pa = data + (size_t)a * PITCH, *pb = data + (size_t)b * PITCH;
    __local float *part_b = part + BLOCK * (LANES + 1);
    for (uint block = first; block < last; block += BLOCK) {
        vec sa[ROWS], sb[ROWS];
        __global const float *x[ROWS];
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            sa[r] = SPLAT(0.0f);
            sb[r] = SPLAT(0.0f);
            x[r] = data + (size_t)min(block + team * ROWS + r, (uint)(NPOINTS - 1)) * PITCH;
        }
        #pragma unroll 2
        for (uint v = lane; v < vectors; v += LANES) {
            vec va = VLOAD(v, pa), vb = VLOAD(v, pb);
            #pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                vec value = VLOAD(v, x[r]);
                vec diff = value - va;
                sa[r] = fma(diff, diff, sa[r]);
                if (two) {
                    diff = value - vb;
                    sb[r] = fma(diff, diff, sb[r]);
                }
            }
        }
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            part[(team * ROWS + r) * (LANES + 1) + lane] = SUM(sa[r]);
            if (two) part_b[(team * ROWS + r) * (LANES + 1) + lane] = SUM(sb[r]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = item; k < (two ? 2 : 1) * BLOCK; k += GROUP) {
            __local const float *p = part + k * (LANES + 1);
            float total = 0.0f;
            for (uint l = 0; l < LANES; ++l) total += p[l];
            uint i = block + k % BLOCK;
            if (i < last) (k < BLOCK ? out_a : out_b)[i] = exp(-GAMMA * total);
        }
        barrier(BOTH_FENCES);
    }
}
#endif

/* The row of one point. */
#if STAGED
/* The group's points lie in local memory, behind them a place for the point. Teams take rows in turn. */
void row_of(MEMORY, __global float *out, int point, uint first, uint last, __local float *part, __local float *staged) {
    uint item = get_local_id(0), lane = item % LANES, team = item / LANES;
    __local float *own = staged + CHUNK * PITCH;
    for (uint v = item; v < vectors; v += GROUP) VSTORE(VLOAD(v, data + (size_t)point * PITCH), v, own);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint block = first; block < last; block += BLOCK) {
        vec sums[ROWS];
        __local const float *x[ROWS];
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            sums[r] = SPLAT(0.0f);
            x[r] = staged + (min(block + team + r * TEAMS, min(last, (uint)NPOINTS) - 1) - first) * PITCH;
        }
        #pragma unroll 2
        for (uint v = lane; v < vectors; v += LANES) {
            vec p = VLOAD(v, own);
            #pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                vec diff = VLOAD(v, x[r]) - p;
                sums[r] = fma(diff, diff, sums[r]);
            }
        }
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) part[(team + r * TEAMS) * (LANES + 1) + lane] = SUM(sums[r]);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = item; k < BLOCK; k += GROUP) {
            __local const float *p = part + k * (LANES + 1);
            float total = 0.0f;
            for (uint l = 0; l < LANES; ++l) total += p[l];
            if (block + k < last) out[block + k] = exp(-GAMMA * total);
        }
        barrier(BOTH_FENCES);
    }
}
#else
void row_of(MEMORY, __global float *out, int point, uint first, uint last, __local float *part, __local float *staged) {
    rows(data, out, out, point, point, 0, first, last, vectors, part);
}
#endif
