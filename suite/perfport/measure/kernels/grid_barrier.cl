/* `rounds` barriers of the whole grid: one work-item of each work-group adds to a counter, and polls it until all groups have
   arrived. A group polls `polls` times at most in all its rounds, and waits no longer after that: where groups do not run at
   the same time, the kernel ends all the same. early[group] counts the rounds that the group left before all had arrived. */
__kernel void grid_barrier(__global uint *counter, __global uint *RESTRICT early, uint rounds, uint polls) {
    uint left = polls, failed = 0, everyone = (uint)get_num_groups(0);
    for (uint round = 1; round <= rounds; ++round) {
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (get_local_id(0) == 0) {
            mem_fence(CLK_GLOBAL_MEM_FENCE);
            atomic_inc(counter);
            uint arrived = ATOMIC_LOAD(counter);
            for (; arrived < round * everyone && left > 0; --left) arrived = ATOMIC_LOAD(counter);
            mem_fence(CLK_GLOBAL_MEM_FENCE);
            failed += arrived < round * everyone;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
    if (get_local_id(0) == 0) early[get_group_id(0)] = failed;
}
