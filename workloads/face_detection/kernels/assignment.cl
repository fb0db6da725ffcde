/* How batches come to work-groups: one to each; or a fixed number of work-groups loop over them (PERSISTENT), each in its
   turn or as it asks a counter for the next (DYNAMIC). */
#if DYNAMIC
uint next_start(__global uint *taken, __local uint *ticket) {
    if (get_local_id(0) == 0) ticket[0] = atomic_add(taken, (uint)TAKEN);
    SYNC();
    return ticket[0];
}

#define DECLARE_TICKET LOCAL_ARRAY(uint, ticket, 1)
#define FOR_BATCHES(start)                                                     \
    for (uint start = next_start(&tickets[launch], ticket); start < total;     \
         SYNC(), start = next_start(&tickets[launch], ticket))
#elif PERSISTENT
#define DECLARE_TICKET
#define FOR_BATCHES(start) \
    for (uint start = get_group_id(0) * TAKEN; start < total; start += get_num_groups(0) * TAKEN)
#else
#define DECLARE_TICKET
#define FOR_BATCHES(start) uint start = get_group_id(0) * TAKEN;
#endif

__kernel void reset(__global uint *RESTRICT tickets, uint launches, __global uint *RESTRICT count) {
    for (uint i = get_global_id(0); i < launches; i += get_global_size(0)) tickets[i] = 0;
    if (get_global_id(0) == 0) count[0] = 0;
}

/* A window passes all stages. `count` may exceed the capacity of the list. */
void add_passing(__global uint *passing, __global uint *count, uint capacity, uint number) {
    uint at = atomic_inc(count);
    if (at < capacity) passing[at] = number;
}
