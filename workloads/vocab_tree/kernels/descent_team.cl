/* The nearest centre by a team of LANES work-items of one hardware thread, which share a descriptor and go through its tree
   together: what they load of a centre at a time lies side by side, where a work-item with a descriptor of its own loads from as
   many lines as there are neighbours. Centres are split in upper and lower bytes for DOT4_U8: of each node and class a row of
   upper ones, then one of lower ones.

   Partial sums of a team's lanes lie in local memory, those of a class side by side. PITCH keeps the teams of a hardware
   thread, and the order of additions a team's lanes, in different banks.

   Macros: LANES (a power of two). */
#define DESCENT REQD_GROUP(GROUP)
#define TEAM LANES
#define UNITS (DIMS / 16) /* 16 dimensions, the bytes of a load */
#define EACH ((UNITS + LANES - 1) / LANES)
#define PITCH (K * LANES + 8)

typedef uint Points;
typedef uint Centres;
typedef struct {
    uint lane;
    __local uint *sums;    /* of each class and lane */
    __local int *scores;   /* of each lane, the best */
    __local uint *classes; /* which that is */
} Team;
#define TEAM_MEMORY(team) \
    LOCAL_ARRAY(uint, partial, GROUP / LANES * PITCH); \
    LOCAL_ARRAY(int, scores, GROUP); \
    LOCAL_ARRAY(uint, classes, GROUP); \
    const uint lane_ = get_local_id(0) % LANES, first_ = get_local_id(0) - lane_; \
    const Team team = {lane_, partial + get_local_id(0) / LANES * PITCH, scores + first_, classes + first_}

typedef struct {
    uint4 units[EACH];
} Descriptor;

INLINE void take(Descriptor *x, const Team *team, __global const uint *points, uint i) {
    #pragma unroll
    for (uint e = 0; e < EACH; ++e)
        x->units[e] = vload4((size_t)i * UNITS + min(team->lane + e * LANES, (uint)(UNITS - 1)), points);
}

INLINE uint dot16(uint4 a, uint4 b, uint sum) {
    return DOT4_U8(a.w, b.w, DOT4_U8(a.z, b.z, DOT4_U8(a.y, b.y, DOT4_U8(a.x, b.x, sum))));
}

/* The score of a class is formed by one lane; the largest of the team's, the lowest class of equal ones. */
INLINE uint nearest_of(const Descriptor *x, const Team *team, __global const uint *centres, __global const int *halves,
                       uint node) {
    const uint lane = team->lane;
    if (node != UINT_MAX) {
        #pragma unroll
        for (uint k = 0; k < K; ++k) {
            uint upper = 0, lower = 0;
            #pragma unroll
            for (uint e = 0; e < EACH; ++e) {
                uint unit = lane + e * LANES;
                if (UNITS % LANES == 0 || unit < UNITS) {
                    size_t row = 2 * ((size_t)node * K + k) * UNITS + unit;
                    upper = dot16(x->units[e], vload4(row, centres), upper);
                    lower = dot16(x->units[e], vload4(row + UNITS, centres), lower);
                }
            }
            team->sums[k * LANES + lane] = (upper << 8) + lower;
        }
    }
    HW_THREAD_SYNC();
    int best = -INT_MAX - 1;
    uint nearest = 0;
    if (node != UINT_MAX) {
        for (uint k = lane; k < K; k += LANES) {
            uint product = 0;
            #pragma unroll
            for (uint j = 0; j < LANES; ++j) product += team->sums[k * LANES + (j + lane) % LANES];
            int score = (int)(product - (uint)halves[(size_t)node * K + k]);
            if (score > best || k == lane) {
                best = score;
                nearest = k;
            }
        }
    }
    team->scores[lane] = best;
    team->classes[lane] = nearest;
    HW_THREAD_SYNC();
    if (node != UINT_MAX) {
        for (uint j = 0; j < min((uint)LANES, (uint)K); ++j) {
            int score = team->scores[j];
            uint k = team->classes[j];
            if (score > best || (score == best && k < nearest)) {
                best = score;
                nearest = k;
            }
        }
    }
    return nearest;
}
