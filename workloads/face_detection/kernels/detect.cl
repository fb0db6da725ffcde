/* Windows through the cascade. Techniques are macros; the README says which variant has which.

   UBERKERNEL      windows of all levels in one launch, else of one level
   PERSISTENT      a fixed number of work-groups loop over batches of BATCH windows, else one batch per work-group
   DYNAMIC         (PERSISTENT) the next batch is taken from a counter, else by the work-group's number
   GLOBAL_QUEUE    number and place of each window come from a queue in global memory, else they are computed
   LOCAL_QUEUE     survivors of the first SINGLE_ITEM_STAGES stages form a queue in local memory; COOPERATIVE_WINDOWS at a
                   time are taken from it by all work-items together (0: as many as suit the queue's length)
   TILE            (OFFSETS, not GLOBAL_QUEUE) a batch is a tile of TILE x TILE windows, whose part of the integral images is
                   brought into local memory (LOCAL_PITCH x LOCAL_LINES; TILTED: both planes; where windows are 2 pixels
                   apart, even columns first, odd ones HALF words on), else (0) windows are taken row by row.
                   The local queue of a tile has a column for each bank of local memory, as long as more than BY_BANK
                   windows wait: neighbouring work-items take windows of different banks, and because all add the same
                   offset, their corners lie in different banks too
   OFFSETS         corners of rectangles as offsets, loads grouped ahead of arithmetic, else computed from coordinates
   SHIFTS          divisions by multiply and shift, mad24
   SELECT          choices by selection, else by branches
   UNROLL          trees of a stage per step of its loop
   PER_ITEM        (LOCAL_QUEUE; 1 with COOPERATIVE_WINDOWS) windows from the queue that a work-item evaluates side by side:
                   with OFFSETS a stump is loaded once for all of them
   SUMMED          (LOCAL_QUEUE) partial sums of a window that one work-item adds up, at most
   INSTRUMENT      counts for the figures of load balance and of the stages; never in a timed build

   PACKED          (TILE, STUMPS) a stump's words are packed, and the leaf of a feature that is not below counts as 0: what a
                   load that is the same for a whole hardware thread costs is the bytes that every work-item receives

   STUMPS: every tree is one node. NODE_WORDS: see cascade.py; stumps with offsets need no more than 20.
   Decisions rest on integers and on one FP32 product each, so that no contraction or order of sums can change them. */
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#define LEVEL_WORDS 15

/* What work-groups take from the counter: tiles or windows, and the word of a level that says which is its first. */
#if TILE
#define TAKEN 1
#define FIRST_WORD 14
#define IMAGE __local const
#define BANKS 32
#define IMAGES image
#else
#define TAKEN BATCH
#define FIRST_WORD 5
#define IMAGE __global const
#define BANKS 1
#define IMAGES sums
#endif

#if CONSTANT
#define TABLE __constant
#else
#define TABLE __global const
#endif

#if WORK_GROUP <= 32
#define SYNC() HW_THREAD_SYNC()
#else
#define SYNC() barrier(CLK_LOCAL_MEM_FENCE)
#endif

#if SHIFTS
#define MAD(a, b, c) mad24((int)(a), (int)(b), (int)(c))
#else
#define MAD(a, b, c) ((int)(a) * (int)(b) + (int)(c))
#endif

/* n / divisor; with SHIFTS by the multiplier that the host chose, exact below 2^31 (T. Granlund, P. L. Montgomery, "Division
   by Invariant Integers using Multiplication", PLDI 1994). */
uint quotient(uint n, uint divisor, uint multiplier, uint shift) {
#if SHIFTS
    return divisor == 1 ? n : mul_hi(n, multiplier) >> shift;
#else
    return n / divisor;
#endif
}

uint level_of(__global const uint *levels, uint count, uint n) {
    uint low = 0, high = count;
    while (high - low > 1) {
        uint middle = (low + high) >> 1;
        if (levels[middle * LEVEL_WORDS + FIRST_WORD] <= n) low = middle; else high = middle;
    }
    return low;
}

/* Place in the atlas of a window, by its number within a frame and its level. */
uint place(__global const uint *level, uint n, uint pitch) {
    uint inside = n - level[5], columns = level[3], step = level[4];
    uint y = quotient(inside, columns, level[6], level[7]), x = inside - y * columns;
    return level[0] + (uint)MAD(y * step, pitch, x * step);
}

/* 1 / (area times standard deviation) of the window at p; 0 if the deviation is 10 or less. */
float normalisation(__global const uint *p, uint pitch, uint plane) {
    uint a = pitch + 1, b = a + WINDOW_WIDTH - 2, c = a + (WINDOW_HEIGHT - 2) * pitch, d = c + WINDOW_WIDTH - 2;
    uint sum = p[a] - p[b] - p[c] + p[d];
    __global const uint *q = p + plane;
    uint square = q[a] - q[b] - q[c] + q[d];
    ulong area = (WINDOW_WIDTH - 2) * (WINDOW_HEIGHT - 2), all = area * square, mean = (ulong)sum * sum;
    if (all <= mean) return 0.0f; /* flat: a deviation of 0 */
    float norm = (float)(1.0 / sqrt((double)(all - mean)));
    return (double)area * (double)norm < 0.1 ? norm : 0.0f;
}

#if !OFFSETS
int rectangle(IMAGE uint *p, TABLE int *r, int turned, uint pitch, uint tilted) {
    int x = r[0], y = r[1], w = r[2], h = r[3], stride = (int)pitch;
    if (turned) {
        IMAGE uint *t = p + tilted;
        return (int)(t[MAD(y, stride, x)] - t[MAD(y + h, stride, x - h)] - t[MAD(y + w, stride, x + w)] +
                     t[MAD(y + w + h, stride, x + w - h)]);
    }
    return (int)(p[MAD(y, stride, x)] - p[MAD(y, stride, x + w)] - p[MAD(y + h, stride, x)] +
                 p[MAD(y + h, stride, x + w)]);
}
#endif

#if PACKED
typedef struct { int4 corners, rest; long gain; } Node;

/* Feature of the window at p from packed corners: two to a word. */
uint four(IMAGE uint *p, uint first, uint second) {
    return p[first & 0xffffu] - p[first >> 16] - p[second & 0xffffu] + p[second >> 16];
}

#define FIRST(p, node) MAD((node).rest.z << 24 >> 24, four(p, (node).corners.x, (node).corners.y), 0)
#define SECOND(p, node, value) MAD((node).rest.z << 16 >> 24, four(p, (node).corners.z, (node).corners.w), value)
#define THIRD(p, node, value) MAD((node).rest.z << 8 >> 24, four(p, (node).rest.x, (node).rest.y), value)
#define HAS_THIRD(node) ((node).rest.z >> 16 != 0)
#define GAIN(node, value, norm) (convert_float(value) * (norm) < as_float((node).rest.w) ? (node).gain : 0)
#elif OFFSETS
/* A node as it is stored; of trees the last word is not used. */
typedef struct { int4 a, b, c, last, leaves; } Node;

Node load_node(TABLE int *node) {
    Node found;
    found.a = vload4(0, node);
    found.b = vload4(1, node);
    found.c = vload4(2, node);
    found.last = vload4(3, node);
#if STUMPS && SELECT
    found.leaves = vload4(4, node);
#endif
    return found;
}

/* Whether the node's feature is below its threshold in the window at p. */
int below(IMAGE uint *p, Node node, float norm, uint pitch, uint tilted) {
    int4 a = node.a, b = node.b, c = node.c, last = node.last;
    uint a0 = p[a.x], a1 = p[a.y], a2 = p[a.z], a3 = p[a.w], b0 = p[b.x], b1 = p[b.y], b2 = p[b.z], b3 = p[b.w];
    int value = MAD(last.x, a0 - a1 - a2 + a3, 0);
    if (last.z != 0) {
        uint c0 = p[c.x], c1 = p[c.y], c2 = p[c.z], c3 = p[c.w];
        value = MAD(last.z, c0 - c1 - c2 + c3, value);
    }
    value = MAD(last.y, b0 - b1 - b2 + b3, value);
    return convert_float(value) * norm < as_float(last.w);
}
#else
#define Node TABLE int *
#define load_node(node) (node)
int below(IMAGE uint *p, TABLE int *node, float norm, uint pitch, uint tilted) {
    int value = 0;
    for (int r = 0; r < 3; ++r) {
        int weight = node[12 + r];
        if (weight != 0) value = MAD(weight, rectangle(p, node + 4 * r, node[20], pitch, tilted), value);
    }
    return convert_float(value) * norm < as_float(node[15]);
}
#endif

#if PACKED
Node node_of(TABLE int *nodes, __global const long *gains, int tree) {
    Node found;
    found.corners = vload4(2 * tree, nodes);
    found.rest = vload4(2 * tree + 1, nodes);
    found.gain = gains[tree];
    return found;
}

long stump(IMAGE uint *p, TABLE int *node, Node loaded, float norm, uint pitch, uint tilted) {
    int value = SECOND(p, loaded, FIRST(p, loaded));
    if (HAS_THIRD(loaded)) value = THIRD(p, loaded, value);
    return GAIN(loaded, value, norm);
}
#elif STUMPS
#define node_of(nodes, leaves, tree) load_node((nodes) + (tree) * NODE_WORDS)

/* The leaf of a stump. */
long stump(IMAGE uint *p, TABLE int *node, Node loaded, float norm, uint pitch, uint tilted) {
    int first = below(p, loaded, norm, pitch, tilted);
#if SELECT
#if OFFSETS
    int4 both = loaded.leaves;
#else
    int4 both = vload4(4, node);
#endif
    int low = first ? both.x : both.z, high = first ? both.y : both.w;
    return (long)(((ulong)(uint)high << 32) | (uint)low);
#else
    if (first) return (long)(((ulong)(uint)node[17] << 32) | (uint)node[16]);
    return (long)(((ulong)(uint)node[19] << 32) | (uint)node[18]);
#endif
}
#endif

/* The leaf that the window at p reaches in one tree. */
long leaf(IMAGE uint *p, TABLE int *nodes, __global const int *roots, __global const long *leaves, int tree,
          float norm, uint pitch, uint tilted, uint *evaluated) {
#if STUMPS
    TABLE int *node = nodes + tree * NODE_WORDS;
#if INSTRUMENT
    ++*evaluated;
#endif
    return stump(p, node, node_of(nodes, leaves, tree), norm, pitch, tilted);
#else
    int at = 0, root = roots[tree];
    TABLE int *node;
    do {
        node = nodes + (root + at) * NODE_WORDS;
#if INSTRUMENT
        ++*evaluated;
#endif
#if SELECT
        int left = node[16], right = node[17];
        at = below(p, load_node(node), norm, pitch, tilted) ? left : right;
#else
        if (below(p, load_node(node), norm, pitch, tilted)) at = node[16]; else at = node[17];
#endif
    } while (at > 0);
    return leaves[node[18] - at];
#endif
}

/* Sum over the trees begin, begin + stride, ... of a stage. */
long votes(IMAGE uint *p, TABLE int *nodes, __global const int *roots, __global const long *leaves, int begin,
           int end, int stride, float norm, uint pitch, uint tilted, uint *evaluated) {
    long sum = 0;
    int tree = begin;
#if UNROLL > 1
    for (; tree + (UNROLL - 1) * stride < end; tree += UNROLL * stride) {
        sum += leaf(p, nodes, roots, leaves, tree, norm, pitch, tilted, evaluated);
        sum += leaf(p, nodes, roots, leaves, tree + stride, norm, pitch, tilted, evaluated);
#if UNROLL > 2
        sum += leaf(p, nodes, roots, leaves, tree + 2 * stride, norm, pitch, tilted, evaluated);
        sum += leaf(p, nodes, roots, leaves, tree + 3 * stride, norm, pitch, tilted, evaluated);
#endif
    }
#endif
    for (; tree < end; tree += stride) sum += leaf(p, nodes, roots, leaves, tree, norm, pitch, tilted, evaluated);
    return sum;
}

#if LOCAL_QUEUE
/* As votes, for the windows of one work-item that are `active`; `all`: for most work-items they all are. */
void all_votes(IMAGE uint *const *p, TABLE int *nodes, __global const int *roots, __global const long *leaves,
               int begin, int end, int stride, const float *norm, const int *active, int all, long *sum, uint pitch,
               uint tilted, uint *evaluated) {
    int any = 0;
    #pragma unroll
    for (int w = 0; w < PER_ITEM; ++w) any |= active[w];
    if (!any) return;
#if PER_ITEM > 1 && PACKED
    if (all) { /* the others are evaluated too, for nothing */
        for (int tree = begin; tree < end; tree += stride) {
            Node node = node_of(nodes, leaves, tree);
            int value[PER_ITEM];
            #pragma unroll
            for (int w = 0; w < PER_ITEM; ++w) value[w] = FIRST(p[w], node);
            #pragma unroll
            for (int w = 0; w < PER_ITEM; ++w) value[w] = SECOND(p[w], node, value[w]);
            if (HAS_THIRD(node)) {
                #pragma unroll
                for (int w = 0; w < PER_ITEM; ++w) value[w] = THIRD(p[w], node, value[w]);
            }
            #pragma unroll
            for (int w = 0; w < PER_ITEM; ++w) {
                sum[w] += GAIN(node, value[w], norm[w]);
#if INSTRUMENT
                *evaluated += active[w];
#endif
            }
        }
        return;
    }
#elif PER_ITEM > 1 && STUMPS
    for (int tree = begin; tree < end; tree += stride) {
        TABLE int *node = nodes + tree * NODE_WORDS;
        Node loaded = node_of(nodes, leaves, tree);
        #pragma unroll
        for (int w = 0; w < PER_ITEM; ++w) {
            if (active[w]) {
#if INSTRUMENT
                ++*evaluated;
#endif
                sum[w] += stump(p[w], node, loaded, norm[w], pitch, tilted);
            }
        }
    }
    return;
#endif
    #pragma unroll
    for (int w = 0; w < PER_ITEM; ++w)
        if (active[w]) sum[w] = votes(p[w], nodes, roots, leaves, begin, end, stride, norm[w], pitch, tilted, evaluated);
}
#endif

void found_one(__global uint *found, __global uint *count, uint capacity, uint number) {
    uint at = atomic_inc(count);
    if (at < capacity) found[at] = number;
}

__kernel void reset(__global uint *RESTRICT tickets, uint launches, __global uint *RESTRICT count) {
    for (uint i = get_global_id(0); i < launches; i += get_global_size(0)) tickets[i] = 0;
    if (get_global_id(0) == 0) count[0] = 0;
}

/* The queue of all windows: number and place of each. */
__kernel void enqueue(__global const uint *RESTRICT levels, uint level_count, uint pitch, uint frame_windows,
                      uint frame_multiplier, uint frame_shift, uint total, __global uint *RESTRICT queue) {
    uint number = get_global_id(0);
    if (number >= total) return;
    uint inside = number - quotient(number, frame_windows, frame_multiplier, frame_shift) * frame_windows;
    queue[2 * (size_t)number] = number;
    queue[2 * (size_t)number + 1] = place(levels + LEVEL_WORDS * level_of(levels, level_count, inside), inside, pitch);
}

/* Counters of an instrumented build: per work-group the features evaluated, the slots that were there for them (work-items
   times the longest work of one), windows and batches. */
#if INSTRUMENT
#define TALLY(mine)                                             \
    do {                                                        \
        work[lid] = (mine);                                     \
        SYNC();                                                 \
        if (lid == 0) {                                         \
            uint most = 0;                                      \
            for (int item = 0; item < WORK_GROUP; ++item) {     \
                tally[0] += work[item];                         \
                most = max(most, work[item]);                   \
            }                                                   \
            tally[1] += most * WORK_GROUP;                      \
        }                                                       \
        SYNC();                                                 \
    } while (0)
#define ENTERED(stage) atomic_inc(&entered[stage])
#else
#define TALLY(mine)
#define ENTERED(stage)
#endif

#if TILE
#define QUEUE_NUMBER(slot, number) /* it follows from the place */
#else
#define QUEUE_NUMBER(slot, number) queued_number[slot] = (number)
#endif

/* The local queue for a stage: emptied; one window more; how many wait, and how many in the longest column. */
#define CLEAR(stage)                                                                                    \
    for (uint bank = lid; bank < BANKS; bank += WORK_GROUP) filled[(stage) % 3 * BANKS + bank] = 0
#define QUEUE(stage, by_bank, number, place, norm)                                                      \
    do {                                                                                                \
        uint bank = (by_bank) ? (place) % BANKS : 0;                                                    \
        uint slot = atomic_inc(&filled[(stage) % 3 * BANKS + bank]);                                    \
        if (by_bank) slot = slot * BANKS + bank;                                                        \
        QUEUE_NUMBER(slot, number);                                                                     \
        queued_place[slot] = place;                                                                     \
        queued_norm[slot] = norm;                                                                       \
    } while (0)
#define COUNT(stage, by_bank)                                                                           \
    do {                                                                                                \
        waiting = longest = 0;                                                                          \
        for (uint bank = 0; bank < ((by_bank) ? BANKS : 1); ++bank) {                                   \
            uint in_bank = filled[(stage) % 3 * BANKS + bank];                                          \
            waiting += in_bank;                                                                         \
            longest = max(longest, in_bank);                                                            \
        }                                                                                               \
    } while (0)

__kernel void detect(__global const uint *RESTRICT sums, TABLE int *RESTRICT nodes, __global const int *RESTRICT roots,
                     __global const long *RESTRICT leaves, __global const int *RESTRICT stage_first,
                     __global const long *RESTRICT stage_threshold, __global const uint *RESTRICT levels,
                     uint level_count, uint known_level, uint pitch, uint plane, ulong frame_words, uint frame_windows,
                     uint frame_units, uint frame_multiplier, uint frame_shift, uint first, uint total,
                     __global const uint *RESTRICT queue, __global uint *tickets, uint launch, __global uint *count,
                     __global uint *found, uint capacity
#if INSTRUMENT
                     , __global uint *groups, uint first_group, __global uint *entered
#endif
) {
    uint lid = get_local_id(0);
#if DYNAMIC
    LOCAL_ARRAY(uint, ticket, 1);
#endif
#if TILE
    LOCAL_ARENA(uint, image, LOCAL_PITCH *LOCAL_LINES *(1 + TILTED));
    const uint row = LOCAL_PITCH, tilted = LOCAL_PITCH * LOCAL_LINES;
#else
    const uint row = pitch, tilted = 2 * plane;
#endif
#if LOCAL_QUEUE
#if !TILE
    LOCAL_ARRAY(uint, queued_number, BATCH);
#endif
    LOCAL_ARRAY(uint, queued_place, BATCH);
    LOCAL_ARRAY(float, queued_norm, BATCH);
    LOCAL_ARRAY(long, partial, WORK_GROUP);
    LOCAL_ARRAY(uint, filled, 3 * BANKS); /* of each column of the queue; for this stage, the next, the one after it in turn */
#endif
#if INSTRUMENT
    LOCAL_ARRAY(uint, work, WORK_GROUP);
    uint tally[4] = {0, 0, 0, 0};
#endif
    uint start = get_group_id(0) * TAKEN;
#if DYNAMIC
    if (lid == 0) ticket[0] = atomic_add(&tickets[launch], (uint)TAKEN);
    SYNC();
    start = ticket[0];
#endif
#if PERSISTENT
    while (start < total) {
#endif
#if LOCAL_QUEUE || TILE
        SYNC(); /* the batch before is done with local memory */
#endif
#if LOCAL_QUEUE
        CLEAR(SINGLE_ITEM_STAGES);
        CLEAR(SINGLE_ITEM_STAGES + 1);
#endif
        uint evaluated = 0;
#if TILE
        uint frame = quotient(first + start, frame_units, frame_multiplier, frame_shift);
        uint unit = first + start - frame * frame_units;
#if UBERKERNEL
        __global const uint *level = levels + LEVEL_WORDS * level_of(levels, level_count, unit);
#else
        __global const uint *level = levels + LEVEL_WORDS * known_level;
#endif
        uint across = (level[3] + TILE - 1) / TILE, tile = unit - level[14], step = level[4];
        uint left = tile % across * TILE, top = tile / across * TILE;
        uint columns = min((uint)TILE, level[3] - left), rows = min((uint)TILE, level[12] - top);
        uint first_number = frame * frame_windows + level[5] + top * level[3] + left, stride = level[3];
        __global const uint *corner = sums + frame * frame_words + level[0] + (size_t)top * step * pitch + left * step;
        uint words = (columns - 1) * step + WINDOW_WIDTH + 1, lines = (rows - 1) * step + WINDOW_HEIGHT + 1;
        for (uint y = lid / LANES; y < lines; y += WORK_GROUP / LANES) {
            for (uint x = lid % LANES; x < words; x += LANES) {
                uint to = y * LOCAL_PITCH + (step == 2 ? (x >> 1) + (x & 1) * HALF : x);
                image[to] = corner[y * pitch + x];
#if TILTED
                image[to + tilted] = corner[y * pitch + x + 2 * (size_t)plane];
#endif
            }
        }
        uint begin = 0, end = TILE * TILE;
#else
        uint begin = start, end = min(start + (uint)BATCH, total);
#endif
#if LOCAL_QUEUE || TILE
        SYNC();
#endif
#if TILE
        TABLE int *table = nodes + (step == 2 ? HALVED : 0);
#else
        TABLE int *table = nodes;
#endif
        for (uint i = begin + lid; i < end; i += WORK_GROUP) {
#if TILE
            uint x = i % TILE, y = i / TILE;
            if (x >= columns || y >= rows) continue;
            uint number = first_number + y * stride + x, at = y * step * LOCAL_PITCH + x;
            float norm = normalisation(corner + (size_t)y * step * pitch + x * step, pitch, plane);
            IMAGE uint *p = image + at;
#else
#if GLOBAL_QUEUE
            uint number = queue[2 * (size_t)(first + i)], at = queue[2 * (size_t)(first + i) + 1];
            uint frame = quotient(number, frame_units, frame_multiplier, frame_shift);
#else
            uint number = first + i, frame = quotient(number, frame_units, frame_multiplier, frame_shift);
            uint inside = number - frame * frame_windows;
#if UBERKERNEL
            __global const uint *level = levels + LEVEL_WORDS * level_of(levels, level_count, inside);
#else
            __global const uint *level = levels + LEVEL_WORDS * known_level;
#endif
            uint at = place(level, inside, pitch);
#endif
            IMAGE uint *p = sums + frame * frame_words + at;
            float norm = normalisation(p, pitch, plane);
#endif
            int alive = norm > 0.0f;
            for (int stage = 0; stage < (LOCAL_QUEUE ? SINGLE_ITEM_STAGES : STAGES) && alive; ++stage) {
                ENTERED(stage);
                alive = votes(p, table, roots, leaves, stage_first[stage], stage_first[stage + 1], 1, norm, row, tilted,
                              &evaluated) >= stage_threshold[stage];
            }
            if (alive) {
#if LOCAL_QUEUE
                QUEUE(SINGLE_ITEM_STAGES, TILE, number, at, norm);
#else
                found_one(found, count, capacity, number);
#endif
            }
        }
        TALLY(evaluated);
#if LOCAL_QUEUE
        SYNC();
        int by_bank = TILE;
        uint longest = 0, waiting = 0;
        COUNT(SINGLE_ITEM_STAGES, by_bank);
        for (int stage = SINGLE_ITEM_STAGES; stage < STAGES && waiting > 0; ++stage) {
            CLEAR(stage + 2); /* what waited for the stage before */
            uint slots = by_bank ? BANKS * longest : waiting;
            int by_bank_next = by_bank && waiting > BY_BANK;
#if COOPERATIVE_WINDOWS
            uint lanes = WORK_GROUP / COOPERATIVE_WINDOWS, together = COOPERATIVE_WINDOWS;
            uint lane = lid / COOPERATIVE_WINDOWS, mine = lid % COOPERATIVE_WINDOWS;
#else
            uint lanes = 1, together = WORK_GROUP, lane = 0, mine = lid; /* powers of two */
            while (together >= 2 * slots) {
                lanes *= 2;
                together /= 2;
                lane = 2 * lane + (mine >= together);
                mine &= together - 1;
            }
#endif
            int first_tree = stage_first[stage], last_tree = stage_first[stage + 1];
            for (uint next = 0; next < slots; next += PER_ITEM * together) {
                uint number[PER_ITEM], at[PER_ITEM];
                int active[PER_ITEM];
                float norm[PER_ITEM];
                long sum[PER_ITEM];
                IMAGE uint *window[PER_ITEM];
                evaluated = 0;
                #pragma unroll
                for (int w = 0; w < PER_ITEM; ++w) {
                    uint slot = next + w * together + mine;
                    active[w] = by_bank ? slot / BANKS < filled[stage % 3 * BANKS + slot % BANKS] : slot < waiting;
                    sum[w] = 0;
                    norm[w] = 0.0f;
                    window[w] = IMAGES;
                    if (active[w]) {
                        at[w] = queued_place[slot];
                        norm[w] = queued_norm[slot];
#if TILE
                        number[w] = 0;
                        window[w] = image + at[w];
#else
                        number[w] = queued_number[slot];
                        window[w] = sums + at[w] +
                                    quotient(number[w], frame_units, frame_multiplier, frame_shift) * frame_words;
#endif
                        if (lane == 0) ENTERED(stage);
                    }
                }
                all_votes(window, table, roots, leaves, first_tree + (int)lane, last_tree, (int)lanes, norm, active,
                          next + (PER_ITEM - 1) * together < slots, sum, row, tilted, &evaluated);
                TALLY(evaluated);
                if (lanes > 1) { /* the same for all work-items, which have one window each at most */
                    partial[lid] = sum[0];
                    SYNC();
                    if (lane < SUMMED) {
                        for (uint other = lane + SUMMED; other < lanes; other += SUMMED)
                            sum[0] += partial[other * together + mine];
                        partial[lid] = sum[0];
                    }
                    SYNC();
                    for (uint other = 1; lane == 0 && other < min(lanes, (uint)SUMMED); ++other)
                        sum[0] += partial[other * together + mine];
                }
                SYNC(); /* every work-item has read its windows: their places may be taken by survivors */
                #pragma unroll
                for (int w = 0; w < PER_ITEM; ++w) {
                    if (active[w] && lane == 0 && sum[w] >= stage_threshold[stage]) {
                        QUEUE(stage + 1, by_bank_next, number[w], at[w], norm[w]);
                    }
                }
            }
            SYNC();
            COUNT(stage + 1, by_bank_next);
            by_bank = by_bank_next;
        }
        for (uint i = lid; i < (by_bank ? BANKS * longest : waiting); i += WORK_GROUP) {
#if TILE
            if (by_bank && i / BANKS >= filled[STAGES % 3 * BANKS + i % BANKS]) continue;
            uint y = queued_place[i] / (step * LOCAL_PITCH), x = queued_place[i] - y * step * LOCAL_PITCH;
            found_one(found, count, capacity, first_number + y * stride + x);
#else
            found_one(found, count, capacity, queued_number[i]);
#endif
        }
#endif
#if INSTRUMENT
#if TILE
        tally[2] += columns * rows;
#else
        tally[2] += start < total ? min((uint)BATCH, total - start) : 0;
#endif
        tally[3] += 1;
#endif
#if DYNAMIC
        SYNC();
        if (lid == 0) ticket[0] = atomic_add(&tickets[launch], (uint)TAKEN);
        SYNC();
        start = ticket[0];
#elif PERSISTENT
        start += get_num_groups(0) * TAKEN;
#endif
#if PERSISTENT
    }
#endif
#if INSTRUMENT
    if (lid == 0) {
        for (int i = 0; i < 4; ++i) groups[4 * (first_group + get_group_id(0)) + i] = tally[i];
    }
#endif
}
