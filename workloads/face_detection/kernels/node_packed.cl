/* Stumps in as few words as they fit into (PACKED): what a load that is the same for a whole hardware thread costs is the
   bytes that every work-item receives. The leaf of a feature that is not below its threshold counts as 0, the other as
   the gain over it; thresholds of stages are those of such sums. */

typedef struct {
    int4 corners; /* offsets of the corners of two rectangles, 16 bits each, the lower one first */
    int4 rest;    /* of the third rectangle; weights, 8 bits each; threshold, the bits of a float */
} Node;

/* What a work-item holds of a stump. */
typedef struct {
    int4 corners, rest;
    long gain;
} Held;
#define HELD Held

INLINE void hold(TABLE Node *node, long gain, Held *held) {
    held->corners = node->corners;
    held->rest = node->rest;
    held->gain = gain;
}
#define DECLARE_HELD(held, cascade, number) \
    Held held;                              \
    hold((cascade).nodes + (number), (cascade).leaves[number], &held)

uint corners_sum(IMAGE uint *p, uint first, uint second) {
    return p[first & 0xffffu] - p[first >> 16] - p[second & 0xffffu] + p[second >> 16];
}

/* A feature is summed rectangle by rectangle, so that windows side by side take the same rectangle at a time. */
INLINE int with_first(Window window, Held node) {
    return MAD(node.rest.z << 24 >> 24, corners_sum(window.corner, node.corners.x, node.corners.y), 0);
}

INLINE int with_second(Window window, Held node, int value) {
    return MAD(node.rest.z << 16 >> 24, corners_sum(window.corner, node.corners.z, node.corners.w), value);
}

INLINE int has_third(Held node) {
    return node.rest.z >> 16 != 0;
}

INLINE int with_third(Window window, Held node, int value) {
    return MAD(node.rest.z << 8 >> 24, corners_sum(window.corner, node.rest.x, node.rest.y), value);
}

INLINE long gain_of(Window window, Held node, int value) {
    return convert_float(value) * window.norm < as_float(node.rest.w) ? node.gain : 0;
}

/* The gain of a stump. */
INLINE long stump(Window window, Held node, Grid grid) {
    int value = with_second(window, node, with_first(window, node));
    if (has_third(node)) value = with_third(window, node, value);
    return gain_of(window, node, value);
}
