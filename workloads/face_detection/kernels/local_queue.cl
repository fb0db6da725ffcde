/* A queue in local memory of the windows that wait for a stage.

   That of a tile has a column for each bank of local memory, as long as more than BY_BANK windows wait: neighbouring
   work-items take windows of different banks, and because all add the same offset, their corners lie in different banks
   too. */
typedef struct {
    __local uint *number; /* not of a tile's windows: it follows from the place */
    __local uint *place;
    __local float *norm;
    __local uint *filled; /* of each column; for this stage, the next, the one after it in turn */
} Queue;

#if TILE
#define DECLARE_NUMBERS(numbers) __local uint *numbers = 0
#else
#define DECLARE_NUMBERS(numbers) LOCAL_ARRAY(uint, numbers, BATCH)
#endif
#define DECLARE_QUEUE(queue)                 \
    DECLARE_NUMBERS(numbers);                \
    LOCAL_ARRAY(uint, places, BATCH);        \
    LOCAL_ARRAY(float, norms, BATCH);        \
    LOCAL_ARRAY(uint, filled, 3 * BANKS);    \
    Queue queue = {numbers, places, norms, filled}

/* How many windows wait in all, and in the longest column; whether columns are banks. */
typedef struct {
    uint all, longest;
    int by_bank;
} Waiting;

INLINE void empty_queue(Queue queue, int stage) {
    for (uint bank = get_local_id(0); bank < BANKS; bank += WORK_GROUP) queue.filled[stage % 3 * BANKS + bank] = 0;
}

INLINE void put(Queue queue, int stage, int by_bank, Window window) {
    uint bank = by_bank ? window.place % BANKS : 0;
    uint slot = atomic_inc(&queue.filled[stage % 3 * BANKS + bank]);
    if (by_bank) slot = slot * BANKS + bank;
#if !TILE
    queue.number[slot] = window.number;
#endif
    queue.place[slot] = window.place;
    queue.norm[slot] = window.norm;
}

INLINE void count_waiting(Queue queue, int stage, int by_bank, Waiting *waiting) {
    waiting->all = waiting->longest = 0;
    waiting->by_bank = by_bank;
    for (uint bank = 0; bank < (by_bank ? BANKS : 1); ++bank) {
        uint in_bank = queue.filled[stage % 3 * BANKS + bank];
        waiting->all += in_bank;
        waiting->longest = max(waiting->longest, in_bank);
    }
}

INLINE uint slots_of(Waiting waiting) {
    return waiting.by_bank ? BANKS * waiting.longest : waiting.all;
}

INLINE int is_filled(Queue queue, Waiting waiting, int stage, uint slot) {
    return waiting.by_bank ? slot / BANKS < queue.filled[stage % 3 * BANKS + slot % BANKS] : slot < waiting.all;
}
