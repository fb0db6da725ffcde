/* PER_ITEM windows from the local queue that a work-item evaluates side by side (1 with COOPERATIVE_WINDOWS): with offsets
   a stump is loaded once for all of them. */
typedef struct {
    Window window;
    int active; /* there is a window */
    long sum;
} Candidate;

#if PER_ITEM > 1 && PACKED
/* Without branches: where there is no window, one is evaluated for nothing. */
INLINE void sum_side_by_side(Candidate *candidates, Cascade cascade, Trees trees, Counts *counts) {
    for (int tree = trees.begin; tree < trees.end; tree += trees.stride) {
        DECLARE_HELD(node, cascade, tree);
        int value[PER_ITEM];
        #pragma unroll
        for (int w = 0; w < PER_ITEM; ++w) value[w] = with_first(candidates[w].window, node);
        #pragma unroll
        for (int w = 0; w < PER_ITEM; ++w) value[w] = with_second(candidates[w].window, node, value[w]);
        if (has_third(node)) {
            #pragma unroll
            for (int w = 0; w < PER_ITEM; ++w) value[w] = with_third(candidates[w].window, node, value[w]);
        }
        #pragma unroll
        for (int w = 0; w < PER_ITEM; ++w) {
            candidates[w].sum += gain_of(candidates[w].window, node, value[w]);
            COUNT_FEATURES(counts, candidates[w].active);
        }
    }
}
#elif PER_ITEM > 1 && STUMPS
INLINE void sum_side_by_side(Candidate *candidates, Cascade cascade, Trees trees, Counts *counts) {
    for (int tree = trees.begin; tree < trees.end; tree += trees.stride) {
        DECLARE_HELD(node, cascade, tree);
        #pragma unroll
        for (int w = 0; w < PER_ITEM; ++w) {
            if (candidates[w].active) {
                COUNT_FEATURES(counts, 1);
                candidates[w].sum += stump(candidates[w].window, node, cascade.grid);
            }
        }
    }
}
#endif

INLINE void sum_one_by_one(Candidate *candidates, Cascade cascade, Trees trees, Counts *counts) {
    #pragma unroll
    for (int w = 0; w < PER_ITEM; ++w)
        if (candidates[w].active) candidates[w].sum = votes(candidates[w].window, cascade, trees, counts);
}

/* Sums up a stage's trees for the candidates of a work-item; `full`: most work-items have all their windows. */
INLINE void sum_all(Candidate *candidates, Cascade cascade, Trees trees, int full, Counts *counts) {
    int any = 0;
    #pragma unroll
    for (int w = 0; w < PER_ITEM; ++w) any |= candidates[w].active;
    if (!any) return;
#if PER_ITEM > 1 && PACKED
    if (full) sum_side_by_side(candidates, cascade, trees, counts);
    else sum_one_by_one(candidates, cascade, trees, counts);
#elif PER_ITEM > 1 && STUMPS
    sum_side_by_side(candidates, cascade, trees, counts);
#else
    sum_one_by_one(candidates, cascade, trees, counts);
#endif
}
