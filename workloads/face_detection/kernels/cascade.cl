/* A cascade's stages: the sum of what the trees of a stage give, held against its threshold. Decisions rest on integers and
   on one FP32 product each, so that no contraction or order of sums can change them.

   STUMPS    every tree is one node
   SELECT    choices by selection, else by branches
   UNROLL    trees of a stage per step of its loop
   CONSTANT  nodes in constant memory
   Nodes are the host's of the same names (variants/layout.py; a test holds the two together). */
#if CONSTANT
#define TABLE __constant
#else
#define TABLE __global const
#endif

/* The integral image that features are read from: words from line to line, and where the tilted one begins. */
typedef struct {
    uint pitch, tilted;
} Grid;

/* A leaf from its two words. */
long joined(int low, int high) {
    return (long)(((ulong)(uint)high << 32) | (uint)low);
}

/* One of two leaves that have been loaded both. */
long selected(int first, int4 leaves) {
    return joined(first ? leaves.x : leaves.z, first ? leaves.y : leaves.w);
}

#if PACKED
#include "node_packed.cl"
#elif OFFSETS
#include "node_offsets.cl"
#else
#include "node_coordinates.cl"
#endif

typedef struct {
    TABLE Node *nodes;
    __global const int *roots;            /* first node of each tree */
    __global const long *leaves;          /* of trees; PACKED: gains of stumps */
    __global const int *stage_first;      /* first tree of each stage */
    __global const long *stage_threshold;
    Grid grid;
} Cascade;

/* Trees begin, begin + stride, ... of a stage. */
typedef struct {
    int begin, end, stride;
} Trees;

#if STUMPS
INLINE long leaf(Window window, Cascade cascade, int tree, Counts *counts) {
    COUNT_FEATURES(counts, 1);
    DECLARE_HELD(held, cascade, tree);
    return stump(window, held, cascade.grid);
}
#else
/* The leaf that a window reaches from node to node. */
INLINE long leaf(Window window, Cascade cascade, int tree, Counts *counts) {
    int at = 0, root = cascade.roots[tree];
    TABLE Node *node;
    do {
        node = cascade.nodes + (root + at);
        COUNT_FEATURES(counts, 1);
#if SELECT
        int left = node->left, right = node->right;
        DECLARE_HELD(held, cascade, root + at);
        at = below(window, held, cascade.grid) ? left : right;
#else
        DECLARE_HELD(held, cascade, root + at);
        if (below(window, held, cascade.grid)) at = node->left; else at = node->right;
#endif
    } while (at > 0);
    return cascade.leaves[node->first_leaf - at];
}
#endif

/* Sum of the leaves that a window reaches. */
INLINE long votes(Window window, Cascade cascade, Trees trees, Counts *counts) {
    long sum = 0;
    int tree = trees.begin, stride = trees.stride;
#if UNROLL > 1
    for (; tree + (UNROLL - 1) * stride < trees.end; tree += UNROLL * stride) {
        sum += leaf(window, cascade, tree, counts);
        sum += leaf(window, cascade, tree + stride, counts);
#if UNROLL > 2
        sum += leaf(window, cascade, tree + 2 * stride, counts);
        sum += leaf(window, cascade, tree + 3 * stride, counts);
#endif
    }
#endif
    for (; tree < trees.end; tree += stride) sum += leaf(window, cascade, tree, counts);
    return sum;
}

/* Whether a window passes the first stages of a cascade, by one work-item. */
INLINE int passes(Window window, Cascade cascade, int stages, Counts *counts) {
    int alive = window.norm > 0.0f;
    for (int stage = 0; stage < stages && alive; ++stage) {
        Trees trees = {cascade.stage_first[stage], cascade.stage_first[stage + 1], 1};
        COUNT_WINDOW(counts, stage);
        alive = votes(window, cascade, trees, counts) >= cascade.stage_threshold[stage];
    }
    return alive;
}
