/* Where a training has its state: two buffers, `floats` and `ints`, with an array per quantity. Every group owns CHUNK
   neighbouring points and one candidate of each kind. */
#define FULL (1 << 30) /* C */
#define UP 1           /* flags: alpha may move up y, */
#define LOW 2          /* or down */
#define NONE 0x7fffffff
#define BOTH_FENCES (CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

/* Of each point. */
#define F(i) floats[i]
#define LOST(i) floats[PADDED + (i)] /* rounding errors of f */
#define Y(i) floats[2 * PADDED + (i)]
#define ALPHA(i) ints[i]
#define FLAGS(i) ints[PADDED + (i)]
#define SLOT_OF(i) ints[2 * PADDED + (i)] /* where its kernel row lies, or -1 */

/* Of each slot of the cache: its point, or -1, and whether it was used since the clock's hand came by. */
#define OWNER (ints + 3 * PADDED)
#define RECENT (OWNER + SLOTS)

/* Of each group's candidates: f, point, alpha, slot. `low` has its gain, too; MOST is the greatest f over I_low. */
#define HIGH_F (floats + 3 * PADDED)
#define LOW_F (HIGH_F + GROUPS)
#define LOW_GAIN (LOW_F + GROUPS)
#define MOST (LOW_GAIN + GROUPS)
#define HIGH_I (RECENT + SLOTS)
#define HIGH_A (HIGH_I + GROUPS)
#define HIGH_S (HIGH_A + GROUPS)
#define LOW_I (HIGH_S + GROUPS)
#define LOW_A (LOW_I + GROUPS)
#define LOW_S (LOW_A + GROUPS)

/* Of the training: what `pick` decided, and the slots that `update` keeps for the next rows. */
#define PICKED (LOW_S + GROUPS)
#define PICKED_WORDS 24
#define KEPT (PICKED + PICKED_WORDS)
/* Arrivals at barriers of the grid, in a cache line of their own. */
#define ARRIVED ((__global uint *)(KEPT + 32))
/* With a slot for each point its row lies in the slot of its number, and none ever makes room. */
#define ROOM_FOR_ALL (SLOTS >= NPOINTS)

/* Words of PICKED; the host reads those up to STEPPED, together with B. */
enum { DONE, ITERATIONS, HITS, COMPUTED, STUCK, SETS, WALKS, STEPPED, B, P_HIGH, P_HIGH_F, P_HIGH_A, P_HIGH_S, P_LOW, P_LOW_F,
       P_LOW_A, P_LOW_S, P_V0, P_V1, P_O0, P_O1 };
/* Words of KEPT. */
enum { K_V0, K_V1, K_HAND };

#define MEMORY                                                                                              \
    __global const float *RESTRICT data, __global float *cache, __global float *floats, __global int *ints, uint vectors
/* Of a work-group: for trees of candidates, for partial sums of distances, and its points where they are staged. */
#define SCRATCH __local float *values, __local int *indices, __local float *part, __local float *staged

