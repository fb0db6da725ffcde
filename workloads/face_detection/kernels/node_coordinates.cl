/* Nodes as they stand in the cascade: corners of rectangles are computed from coordinates (OFFSETS 0). */

typedef struct {
    int rectangles[3][4]; /* x, y, width, height */
    int weights[3];       /* 0: there is no such rectangle */
    float threshold;
#if STUMPS
    int leaves[4];        /* low and high word of the leaf below the threshold, and of the other */
#else
    int left, right, first_leaf, unused;
#endif
    int tilted, padding[3];
} Node;

/* What a work-item holds of a node: its address. */
#define HELD TABLE Node *
#define DECLARE_HELD(held, cascade, number) HELD held = (cascade).nodes + (number)

/* Sum of the pixels in a rectangle, or in one that is turned by 45 degrees. */
INLINE int rectangle_sum(IMAGE uint *p, TABLE int *r, int turned, Grid grid) {
    int x = r[0], y = r[1], w = r[2], h = r[3], stride = (int)grid.pitch;
    if (turned) {
        IMAGE uint *t = p + grid.tilted;
        return (int)(t[MAD(y, stride, x)] - t[MAD(y + h, stride, x - h)] - t[MAD(y + w, stride, x + w)] +
                     t[MAD(y + w + h, stride, x + w - h)]);
    }
    return (int)(p[MAD(y, stride, x)] - p[MAD(y, stride, x + w)] - p[MAD(y + h, stride, x)] +
                 p[MAD(y + h, stride, x + w)]);
}

/* Whether the node's feature is below its threshold. */
INLINE int below(Window window, HELD node, Grid grid) {
    int value = 0;
    for (int r = 0; r < 3; ++r) {
        int weight = node->weights[r];
        if (weight != 0) value = MAD(weight, rectangle_sum(window.corner, node->rectangles[r], node->tilted, grid), value);
    }
    return convert_float(value) * window.norm < node->threshold;
}

#if STUMPS
/* The leaf of a stump. */
INLINE long stump(Window window, HELD node, Grid grid) {
    int first = below(window, node, grid);
#if SELECT
    return selected(first, vload4(0, node->leaves));
#else
    if (first) return joined(node->leaves[0], node->leaves[1]);
    return joined(node->leaves[2], node->leaves[3]);
#endif
}
#endif
