/* Survivors of the first SINGLE_ITEM_STAGES stages form a queue in local memory, from which all work-items together take
   windows; after each stage it is packed again. */
#include "detection.cl"
#include "local_queue.cl"
#include "team.cl"
#include "side_by_side.cl"

INLINE void find_candidate(Atlas atlas, Queue queue, Waiting waiting, int stage, uint slot, Candidate *candidate) {
    candidate->active = is_filled(queue, waiting, stage, slot);
    candidate->sum = 0;
    candidate->window.norm = 0.0f;
    candidate->window.number = candidate->window.place = 0;
    candidate->window.corner = atlas.image;
    if (candidate->active) {
        candidate->window.place = queue.place[slot];
        candidate->window.norm = queue.norm[slot];
#if !TILE
        candidate->window.number = queue.number[slot];
#endif
        candidate->window.corner = corner_of(atlas, candidate->window.number, candidate->window.place);
    }
}

/* One stage: the windows that wait for it are evaluated, and survivors put into the queue for the next. */
void pass_stage(Atlas atlas, Cascade cascade, Queue queue, Waiting *next_waiting, int stage, __local long *partial,
                Counts *counts) {
    Waiting waiting = *next_waiting;
    empty_queue(queue, stage + 2); /* what waited for the stage before */
    uint slots = slots_of(waiting);
    int by_bank_next = waiting.by_bank && waiting.all > BY_BANK;
    Team team;
    form_team(slots, &team);
    Trees trees = {cascade.stage_first[stage] + (int)team.lane, cascade.stage_first[stage + 1], (int)team.lanes};
    for (uint next = 0; next < slots; next += PER_ITEM * team.together) {
        Candidate candidates[PER_ITEM];
        #pragma unroll
        for (int w = 0; w < PER_ITEM; ++w) {
            uint slot = next + w * team.together + team.window;
            find_candidate(atlas, queue, waiting, stage, slot, &candidates[w]);
            if (candidates[w].active && team.lane == 0) COUNT_WINDOW(counts, stage);
        }
        sum_all(candidates, cascade, trees, next + (PER_ITEM - 1) * team.together < slots, counts);
        tally_features(counts);
        /* The same for all work-items, which have one window each at most. */
        if (team.lanes > 1) candidates[0].sum = team_sum(team, partial, candidates[0].sum);
        SYNC(); /* every work-item has read its windows: their places may be taken by survivors */
        #pragma unroll
        for (int w = 0; w < PER_ITEM; ++w) {
            if (candidates[w].active && team.lane == 0 && candidates[w].sum >= cascade.stage_threshold[stage])
                put(queue, stage + 1, by_bank_next, candidates[w].window);
        }
    }
    SYNC();
    count_waiting(queue, stage + 1, by_bank_next, next_waiting);
}

__kernel DECLARED_GROUP void detect(PARAMETERS) {
    DECLARE_TICKET;
    DECLARE_IMAGE(image);
    DECLARE_QUEUE(queue);
    LOCAL_ARRAY(long, partial, WORK_GROUP);
    DECLARE_COUNTS(counts);
    Atlas atlas = ATLAS(image);
    Cascade cascade = CASCADE;
    FOR_BATCHES(start) {
        SYNC(); /* the batch before is done with local memory */
        empty_queue(queue, SINGLE_ITEM_STAGES);
        empty_queue(queue, SINGLE_ITEM_STAGES + 1);
        Batch batch;
        find_batch(atlas, start, &batch);
        cascade.nodes = NODES_FOR(batch, nodes);
        COPY_IMAGE(atlas, batch, image);
        SYNC();
        for (uint i = get_local_id(0); i < batch.count; i += WORK_GROUP) {
            Window window;
            find_window(atlas, batch, i, &window);
            if (passes(window, cascade, SINGLE_ITEM_STAGES, &counts)) put(queue, SINGLE_ITEM_STAGES, BANKS > 1, window);
        }
        tally_features(&counts);
        SYNC();
        Waiting waiting;
        count_waiting(queue, SINGLE_ITEM_STAGES, BANKS > 1, &waiting);
        for (int stage = SINGLE_ITEM_STAGES; stage < STAGES && waiting.all > 0; ++stage)
            pass_stage(atlas, cascade, queue, &waiting, stage, partial, &counts);
        for (uint slot = get_local_id(0); slot < slots_of(waiting); slot += WORK_GROUP) {
#if TILE
            if (!is_filled(queue, waiting, STAGES, slot)) continue;
            add_passing(passing, count, capacity, number_at(batch, queue.place[slot]));
#else
            add_passing(passing, count, capacity, queue.number[slot]);
#endif
        }
        tally_batch(&counts, WINDOWS_IN(batch));
    }
    STORE_COUNTS(&counts);
}
