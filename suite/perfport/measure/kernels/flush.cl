/* Displaces the caches: a large buffer is read, each work-group walking a chunk. Nothing is written, so that no dirty
   lines are left whose write-back would fall into the window timed next. */
__kernel void flush(__global const uint *data, uint vectors, __global uint *out) {
    uint per_group = (vectors + get_num_groups(0) - 1) / get_num_groups(0);
    uint first = get_group_id(0) * per_group;
    uint last = min(first + per_group, vectors);
    uint4 sum = MAKE_UINT4(0u, 0u, 0u, 0u);
    for (uint i = first + get_local_id(0); i < last; i += get_local_size(0)) sum = sum + vload4(i, data);
    out[get_global_id(0)] = sum.x + sum.y + sum.z + sum.w;
}
