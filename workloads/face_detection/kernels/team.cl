/* Work-items that share windows from the local queue: each window's trees are dealt out to `lanes` of them.

   COOPERATIVE_WINDOWS  windows at a time; 0: as many as suit the queue's length
   SUMMED               partial sums of a window that one work-item adds up, at most */
typedef struct {
    uint lanes, together; /* work-items to a window, windows at a time */
    uint lane, window;    /* of this work-item */
} Team;

#if COOPERATIVE_WINDOWS
void form_team(uint slots, Team *team) {
    uint lid = get_local_id(0);
    team->lanes = WORK_GROUP / COOPERATIVE_WINDOWS;
    team->together = COOPERATIVE_WINDOWS;
    team->lane = lid / COOPERATIVE_WINDOWS;
    team->window = lid % COOPERATIVE_WINDOWS;
}
#else
/* All work-items find work, in powers of two. Never INLINE: Intel's CPU runtime (2026.2.0) then loses windows. */
void form_team(uint slots, Team *team) {
    team->lanes = 1;
    team->together = WORK_GROUP;
    team->lane = 0;
    team->window = (uint)get_local_id(0);
    while (team->together >= 2 * slots) {
        team->lanes *= 2;
        team->together /= 2;
        team->lane = 2 * team->lane + (team->window >= team->together);
        team->window &= team->together - 1;
    }
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
