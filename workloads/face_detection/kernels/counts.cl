/* What an instrumented build counts for the figures of load balance and of the stages (INSTRUMENT; never in a timed build).
   Elsewhere all of it is nothing. */
#if INSTRUMENT

/* Of a work-group: features evaluated, slots that were there for them (work-items times the longest work of one), windows,
   batches. The host has the same names (TALLY in variants/layout.py). */
typedef struct {
    uint features, slots, windows, batches;
} Tally;

typedef struct {
    uint evaluated;           /* features, by this work-item since the last tally */
    __global uint *entered;   /* windows by stage */
    __local uint *evaluated_by; /* by work-item */
    Tally tally;
} Counts;

#define COUNTERS , __global Tally *tallies, uint first_group, __global uint *entered
#define DECLARE_COUNTS(counts)                   \
    LOCAL_ARRAY(uint, evaluated_by, WORK_GROUP); \
    Counts counts = {0, entered, evaluated_by, {0, 0, 0, 0}}
#define COUNT_FEATURES(counts, number) ((counts)->evaluated += (number))
#define COUNT_WINDOW(counts, stage) atomic_inc(&(counts)->entered[stage])
#define STORE_COUNTS(counts) \
    if (get_local_id(0) == 0) tallies[first_group + get_group_id(0)] = (counts)->tally

/* Sums up what the work-items of a group have evaluated side by side. */
void tally_features(Counts *counts) {
    counts->evaluated_by[get_local_id(0)] = counts->evaluated;
    SYNC();
    if (get_local_id(0) == 0) {
        uint most = 0;
        for (int item = 0; item < WORK_GROUP; ++item) {
            counts->tally.features += counts->evaluated_by[item];
            most = max(most, counts->evaluated_by[item]);
        }
        counts->tally.slots += most * WORK_GROUP;
    }
    SYNC();
    counts->evaluated = 0;
}

void tally_batch(Counts *counts, uint windows) {
    counts->tally.windows += windows;
    counts->tally.batches += 1;
}

#else

typedef struct {
    uint none;
} Counts;

#define COUNTERS
#define DECLARE_COUNTS(counts) Counts counts
#define COUNT_FEATURES(counts, number)
#define COUNT_WINDOW(counts, stage)
#define STORE_COUNTS(counts)
#define tally_features(counts)
#define tally_batch(counts, windows)

#endif
