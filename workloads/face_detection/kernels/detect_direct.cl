/* One work-item takes a window through all stages. */
#include "detection.cl"

__kernel DECLARED_GROUP void detect(PARAMETERS) {
    DECLARE_TICKET;
    DECLARE_IMAGE(image);
    DECLARE_COUNTS(counts);
    Atlas atlas = ATLAS(image);
    Cascade cascade = CASCADE;
    FOR_BATCHES(start) {
        Batch batch;
        find_batch(atlas, start, &batch);
        cascade.nodes = NODES_FOR(batch, nodes);
#if TILE
        SYNC(); /* the batch before is done with local memory */
        COPY_IMAGE(atlas, batch, image);
        SYNC();
#endif
        for (uint i = get_local_id(0); i < batch.count; i += WORK_GROUP) {
            Window window;
            find_window(atlas, batch, i, &window);
            if (passes(window, cascade, STAGES, &counts)) add_passing(passing, count, capacity, window.number);
        }
        tally_features(&counts);
        tally_batch(&counts, WINDOWS_IN(batch));
    }
    STORE_COUNTS(&counts);
}
