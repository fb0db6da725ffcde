/* How every training begins and ends. */
#define CHUNK_OF_GROUP                                        \
    uint item = get_local_id(0), group = get_group_id(0);     \
    uint first = group * CHUNK, last = min(first + CHUNK, (uint)PADDED);

/* alpha = 0, f = -y, empty cache, first candidates. */
__kernel void reset(MEMORY) {
    LOCAL_ARRAY(float, values, 2 * GROUP);
    LOCAL_ARRAY(int, indices, 2 * GROUP);
    CHUNK_OF_GROUP
    for (uint i = first + item; i < last; i += GROUP) {
        float y = Y(i);
        F(i) = -y;
        LOST(i) = 0.0f;
        ALPHA(i) = 0;
        FLAGS(i) = y > 0.0f ? UP : y < 0.0f ? LOW : 0; /* y = 0: padding */
        SLOT_OF(i) = -1;
    }
    for (uint s = get_global_id(0); s < SLOTS; s += get_global_size(0)) {
        OWNER[s] = -1;
        RECENT[s] = 0;
    }
    if (group == 0 && item == 0) {
        for (int w = 0; w < PICKED_WORDS; ++w) PICKED[w] = 0;
        KEPT[K_V0] = 0;
        KEPT[K_V1] = 1;
        KEPT[K_HAND] = 2 % SLOTS;
        ARRIVED[0] = 0;
    }
    barrier(BOTH_FENCES);
    pass(floats, ints, floats, floats, 0.0f, first, last, group, values, indices);
}

/* The model so far: alpha in its own units, b, and the words for the host. */
__kernel void model(MEMORY, __global int *RESTRICT status, __global float *RESTRICT alpha, __global float *RESTRICT b) {
    for (uint i = get_global_id(0); i < NPOINTS; i += get_global_size(0)) alpha[i] = (float)ALPHA(i) * (PENALTY / FULL);
    if (get_global_id(0) == 0) {
        for (int w = 0; w <= STEPPED; ++w) status[w] = PICKED[w];
        b[0] = as_float(PICKED[B]);
    }
}
