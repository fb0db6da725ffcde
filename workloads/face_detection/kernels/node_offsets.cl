/* Nodes with the corners of their rectangles as offsets from a window's own (OFFSETS): all loads of a node, and all of a
   rectangle's corners, stand ahead of the arithmetic. */

typedef struct {
    int4 rectangles[3]; /* offsets of the corners that count +, -, -, + */
    int4 weights;       /* 0: there is no such rectangle; the fourth: threshold, the bits of a float */
#if STUMPS
    int4 leaves;        /* low and high word of the leaf below the threshold, and of the other */
#else
    int left, right, first_leaf, unused;
    int tilted, padding[3]; /* offsets know of it */
#endif
} Node;

/* What a work-item holds of a node. */
typedef struct {
    int4 a, b, c, weights, leaves;
    TABLE Node *node;
} Held;
#define HELD Held

INLINE void hold(TABLE Node *node, Held *held) {
    held->a = node->rectangles[0];
    held->b = node->rectangles[1];
    held->c = node->rectangles[2];
    held->weights = node->weights;
#if STUMPS && SELECT
    held->leaves = node->leaves;
#endif
    held->node = node;
}
#define DECLARE_HELD(held, cascade, number) \
    Held held;                              \
    hold((cascade).nodes + (number), &held)

/* Whether the node's feature is below its threshold. */
INLINE int below(Window window, Held node, Grid grid) {
    IMAGE uint *p = window.corner;
    int4 a = node.a, b = node.b, c = node.c, weights = node.weights;
    uint a0 = p[a.x], a1 = p[a.y], a2 = p[a.z], a3 = p[a.w], b0 = p[b.x], b1 = p[b.y], b2 = p[b.z], b3 = p[b.w];
    int value = MAD(weights.x, a0 - a1 - a2 + a3, 0);
    if (weights.z != 0) {
        uint c0 = p[c.x], c1 = p[c.y], c2 = p[c.z], c3 = p[c.w];
        value = MAD(weights.z, c0 - c1 - c2 + c3, value);
    }
    value = MAD(weights.y, b0 - b1 - b2 + b3, value);
    return convert_float(value) * window.norm < as_float(weights.w);
}

#if STUMPS
/* The leaf of a stump. */
INLINE long stump(Window window, Held node, Grid grid) {
    int first = below(window, node, grid);
#if SELECT
    return selected(first, node.leaves);
#else
    if (first) return joined(node.node->leaves.x, node.node->leaves.y);
    return joined(node.node->leaves.z, node.node->leaves.w);
#endif
}
#endif
