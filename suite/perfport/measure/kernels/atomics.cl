/* Atomic additions of `value`: on counters[0] with mask = 0, else spread over mask + 1 counters (a power of two). */
#ifdef ATOMIC_GLOBAL
__kernel void atomic_global(__global uint *counters, uint mask, uint value, uint steps) {
    uint at = (uint)get_global_id(0);
    for (uint s = 0; s < steps; ++s) {
        atomic_add(&counters[at & mask], value);
        at += 4096u + 32u;
    }
}
#endif

#ifdef ATOMIC_LOCAL
#define BINS 1024
__kernel void atomic_local(__global uint *counters, uint mask, uint value, uint steps) {
    LOCAL_ARRAY(uint, bins, BINS);
    uint lane = (uint)get_local_id(0), lanes = (uint)get_local_size(0);
    for (uint i = lane; i < BINS; i += lanes) bins[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint at = lane;
    for (uint s = 0; s < steps; ++s) {
        atomic_add(&bins[at & mask], value);
        at += 32u;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = lane; i < BINS; i += lanes) counters[get_group_id(0) * BINS + i] = bins[i];
}
#endif
