/* What kernels share that find extrema with their indices: candidates, and the tree that reduces those of a work-group.
   MIN, MAX   which extrema this build finds
   INDEX      0: value alone
   TERNARY    1: branches instead of select()
   GROUP      work-items per work-group, a power of two */
#if TERNARY
#define CHOOSE(old, new, condition) ((condition) ? (new) : (old))
#else
#define CHOOSE(old, new, condition) select((old), (new), (condition))
#endif

/* Keep the candidate (v, i) if it is better; `less` orders values, equal values go by index. */
#define KEEP(better, v, i, best_v, best_i)        \
    {                                             \
        int keep_ = (better);                     \
        best_v = CHOOSE(best_v, (v), keep_);      \
        if (INDEX) best_i = CHOOSE(best_i, (i), keep_); \
    }
#define LOWER(v, i, bv, bi) ((v) < (bv) || (INDEX && (v) == (bv) && (i) < (bi)))
#define HIGHER(v, i, bv, bi) ((v) > (bv) || (INDEX && (v) == (bv) && (i) < (bi)))

#define OUTPUTS                                                                                             \
    __global float *RESTRICT min_value, __global uint *RESTRICT min_index, __global float *RESTRICT max_value, \
        __global uint *RESTRICT max_index

/* Tree in local memory: halve the number of candidates until one is left. */
#define TREE(values, indices, item, ORDER, v, i)                                                    \
    values[item] = v;                                                                               \
    indices[item] = i;                                                                              \
    for (uint half_ = GROUP / 2; half_ > 0; half_ >>= 1) {                                          \
        barrier(CLK_LOCAL_MEM_FENCE);                                                               \
        if (item < half_) {                                                                         \
            float other_v = values[item + half_];                                                   \
            uint other_i = indices[item + half_];                                                   \
            KEEP(ORDER(other_v, other_i, v, i), other_v, other_i, v, i);                            \
            values[item] = v;                                                                       \
            indices[item] = i;                                                                      \
        }                                                                                           \
    }

/* The best of the work-groups' candidates that a work-item looks at. This is for one group, which waits for what it loads: four
   are loaded before any is compared, the last one again where there are no more. */
#define REDUCE_PARTS(ORDER, part_value, part_index, best_v, best_i)                                                 \
    for (uint k_ = item; k_ < parts; k_ += 4 * GROUP) {                                                             \
        float v_[4];                                                                                                \
        uint i_[4];                                                                                                 \
        _Pragma("unroll")                                                                                           \
        for (uint j_ = 0; j_ < 4; ++j_) {                                                                           \
            uint at_ = min(k_ + j_ * GROUP, parts - 1);                                                             \
            v_[j_] = part_value[at_];                                                                               \
            i_[j_] = INDEX ? part_index[at_] : 0;                                                                   \
        }                                                                                                           \
        _Pragma("unroll")                                                                                           \
        for (uint j_ = 0; j_ < 4; ++j_) KEEP(ORDER(v_[j_], i_[j_], best_v, best_i), v_[j_], i_[j_], best_v, best_i) \
    }

/* The end of a kernel with OUTPUTS: the candidates min_v, min_i, max_v, max_i of its work-items become those of place `at`. */
#define WRITE_EXTREMA(at)                                                                           \
    if (MIN) {                                                                                      \
        TREE(values, indices, item, LOWER, min_v, min_i);                                           \
        if (item == 0) {                                                                            \
            min_value[at] = min_v;                                                                  \
            min_index[at] = min_i;                                                                  \
        }                                                                                           \
        barrier(CLK_LOCAL_MEM_FENCE);                                                               \
    }                                                                                               \
    if (MAX) {                                                                                      \
        TREE(values, indices, item, HIGHER, max_v, max_i);                                          \
        if (item == 0) {                                                                            \
            max_value[at] = max_v;                                                                  \
            max_index[at] = max_i;                                                                  \
        }                                                                                           \
    }
