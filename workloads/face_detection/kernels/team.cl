/* Work-items that share windows from the local queue: each window's trees are dealt out to `lanes` of them.

   COOPERATIVE_WINDOWS  windows at a time; 0: as many as suit the queue's length
   SUMMED               partial sums of a window that one work-item adds up, at most */
typedef struct {
    uint lanes, together; /* work-items to a window, windows at a time */
    uint lane, window;    /* of this work-item */
} Team;

#if COOPERATIVE_WINDOWS
Team team_for(uint slots) {
    uint lid = get_local_id(0);
    Team team = {WORK_GROUP / COOPERATIVE_WINDOWS, COOPERATIVE_WINDOWS, lid / COOPERATIVE_WINDOWS,
                 lid % COOPERATIVE_WINDOWS};
    return team;
}
#else
/* All work-items find work, in powers of two. */
Team team_for(uint slots) {
    Team team = {1, WORK_GROUP, 0, (uint)get_local_id(0)};
    while (team.together >= 2 * slots) {
        team.lanes *= 2;
        team.together /= 2;
        team.lane = 2 * team.lane + (team.window >= team.together);
        team.window &= team.together - 1;
    }
    return team;
}
#endif

/* The sum over a team's lanes, for the first of them: two barriers in place of one for each doubling. */
long team_sum(Team team, __local long *partial, long sum) {
    uint lid = get_local_id(0);
    partial[lid] = sum;
    SYNC();
    if (team.lane < SUMMED) {
        for (uint other = team.lane + SUMMED; other < team.lanes; other += SUMMED)
            sum += partial[other * team.together + team.window];
        partial[lid] = sum;
    }
    SYNC();
    for (uint other = 1; team.lane == 0 && other < min(team.lanes, (uint)SUMMED); ++other)
        sum += partial[other * team.together + team.window];
    return sum;
}
