/* Descriptors through all levels of a tree. LANES work-items of one hardware thread share a descriptor and go through its
   tree together: what they load of a centre at a time lies side by side, where a work-item with a descriptor of its own
   loads from as many lines as there are neighbours. Centres are split in upper and lower bytes for DOT4_U8: of each node and
   class a row of upper ones, then one of lower ones.

   Partial sums of a team's lanes lie in local memory, those of a class side by side. PITCH keeps the teams of a hardware
   thread, and the order of additions a team's lanes, in different banks.

   Macros: K, DIMS, GROUP, LANES (a power of two), DEPTH (of the tree). */
#define UNITS (DIMS / 16) /* 16 dimensions, the bytes of a load */
#define EACH ((UNITS + LANES - 1) / LANES)
#define PITCH (K * LANES + 8)

INLINE uint dot16(uint4 a, uint4 b, uint sum) {
    return DOT4_U8(a.w, b.w, DOT4_U8(a.z, b.z, DOT4_U8(a.y, b.y, DOT4_U8(a.x, b.x, sum))));
}

/* The score of a class is formed by one lane; the largest of the team's, the lowest class of equal ones. */
__kernel void REQD_GROUP(GROUP) descend_teams(__global const uint *RESTRICT points, __global const uint *RESTRICT centres,
                                              __global const int *RESTRICT halves, __global const uint *RESTRICT children,
                                              __global const uint *RESTRICT leaves, uint count,
                                              __global uint *RESTRICT words) {
    LOCAL_ARRAY(uint, partial, GROUP / LANES * PITCH);
    LOCAL_ARRAY(int, scores, GROUP);
    LOCAL_ARRAY(uint, classes, GROUP);
    uint lane = get_local_id(0) % LANES, first = get_local_id(0) - lane, i = get_global_id(0) / LANES;
    __local uint *own = partial + get_local_id(0) / LANES * PITCH;
    uint node = i < count ? 0 : UINT_MAX, word = UINT_MAX;
    uint4 x[EACH];
    #pragma unroll
    for (uint e = 0; e < EACH; ++e)
        x[e] = vload4((size_t)min(i, count - 1) * UNITS + min(lane + e * LANES, (uint)(UNITS - 1)), points);
    for (uint level = 0; level < DEPTH; ++level) {
        if (node != UINT_MAX) {
            #pragma unroll
            for (uint k = 0; k < K; ++k) {
                uint upper = 0, lower = 0;
                #pragma unroll
                for (uint e = 0; e < EACH; ++e) {
                    uint unit = lane + e * LANES;
                    if (UNITS % LANES == 0 || unit < UNITS) {
                        size_t row = 2 * ((size_t)node * K + k) * UNITS + unit;
                        upper = dot16(x[e], vload4(row, centres), upper);
                        lower = dot16(x[e], vload4(row + UNITS, centres), lower);
                    }
                }
                own[k * LANES + lane] = (upper << 8) + lower;
            }
        }
        HW_THREAD_SYNC();
        int best = -INT_MAX - 1;
        uint nearest = 0;
        if (node != UINT_MAX) {
            for (uint k = lane; k < K; k += LANES) {
                uint product = 0;
                #pragma unroll
                for (uint j = 0; j < LANES; ++j) product += own[k * LANES + (j + lane) % LANES];
                int score = (int)(product - (uint)halves[(size_t)node * K + k]);
                if (score > best || k == lane) {
                    best = score;
                    nearest = k;
                }
            }
        }
        scores[first + lane] = best;
        classes[first + lane] = nearest;
        HW_THREAD_SYNC();
        if (node != UINT_MAX) {
            for (uint j = 0; j < min((uint)LANES, (uint)K); ++j) {
                int score = scores[first + j];
                uint k = classes[first + j];
                if (score > best || (score == best && k < nearest)) {
                    best = score;
                    nearest = k;
                }
            }
            word = leaves[(size_t)node * K + nearest];
            node = children[(size_t)node * K + nearest];
        }
    }
    if (lane == 0 && i < count) words[i] = word;
}
