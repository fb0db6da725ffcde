/* Survivors of the first SINGLE_ITEM_STAGES stages form a queue in local memory, from which all work-items together take
   windows; after each stage it is packed again. */
#include "detection.cl"
#include "local_queue.cl"
#include "team.cl"
#include "side_by_side.cl"

Candidate candidate_at(Atlas atlas, Queue queue, Waiting waiting, int stage, uint slot) {
    Candidate candidate;
    candidate.active = is_filled(queue, waiting, stage, slot);
    candidate.sum = 0;
    candidate.window.norm = 0.0f;
    candidate.window.corner = atlas.image;
    if (candidate.active) {
        candidate.window.place = queue.place[slot];
        candidate.window.norm = queue.norm[slot];
#if !TILE
        candidate.window.number = queue.number[slot];
#endif
        candidate.window.corner = corner_of(atlas, candidate.window.number, candidate.window.place);
    }
    return candidate;
}

/* One stage: the windows that wait for it are evaluated, and survivors put into the queue for the next. */
Waiting pass_stage(Atlas atlas, Cascade cascade, Queue queue, Waiting waiting, int stage, __local long *partial,
                   Counts *counts) {
    empty_queue(queue, stage + 2); /* what waited for the stage before */
    uint slots = slots_of(waiting);
    int by_bank_next = waiting.by_bank && waiting.all > BY_BANK;
    Team team = team_for(slots);
    Trees trees = {cascade.stage_first[stage] + (int)team.lane, cascade.stage_first[stage + 1], (int)team.lanes};
    for (uint next = 0; next < slots; next += PER_ITEM * team.together) {
        Candidate candidates[PER_ITEM];
        #pragma unroll
        for (int w = 0; w < PER_ITEM; ++w) {
            candidates[w] = candidate_at(atlas, queue, waiting, stage, next + w * team.together + team.window);
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
    return waiting_for(queue, stage + 1, by_bank_next);
}

__kernel void detect(PARAMETERS) {
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
        Batch batch = batch_at(atlas, start);
        cascade.nodes = NODES_FOR(batch, nodes);
        COPY_IMAGE(atlas, batch, image);
        SYNC();
        for (uint i = batch.begin + get_local_id(0); i < batch.end; i += WORK_GROUP) {
            Window window = window_at(atlas, batch, i);
            if (passes(window, cascade, SINGLE_ITEM_STAGES, &counts)) put(queue, SINGLE_ITEM_STAGES, BANKS > 1, window);
        }
        tally_features(&counts);
        SYNC();
        Waiting waiting = waiting_for(queue, SINGLE_ITEM_STAGES, BANKS > 1);
        for (int stage = SINGLE_ITEM_STAGES; stage < STAGES && waiting.all > 0; ++stage)
            waiting = pass_stage(atlas, cascade, queue, waiting, stage, partial, &counts);
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
