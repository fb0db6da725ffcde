/* Reads of random words of a table of `mask` + 1 words, a power of two. A work-item draws a number with a xorshift generator
   and reads the UNROLL words at (number ^ SALT(u)) & mask: places of neighbouring work-items and of successive reads are
   unrelated, none depends on what was read, and the generator costs little beside UNROLL reads. The sum of all words read is
   the result, which the host computes too. (G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8(14), 2003.) */
#define SALT(u) (0x9E3779B9u * (u))
#define SUM_OF_GATHERS(sum, table)                                                       \
    uint number = 0x9E3779B9u * ((uint)get_global_id(0) + 1u), sum = 0;                  \
    for (uint s = 0; s < steps; ++s) {                                                   \
        number ^= number << 13;                                                          \
        number ^= number >> 17;                                                          \
        number ^= number << 5;                                                           \
        _Pragma("unroll")                                                                \
        for (uint u = 0; u < UNROLL; ++u) sum += (table)[(number ^ SALT(u)) & mask];     \
    }

#ifdef GATHER_GLOBAL
/* The barrier begins a region of its own, without which PoCL does not merge work-items into vectors: a third of the rate. */
__kernel void gather_global(__global const uint *RESTRICT data, __global uint *RESTRICT out, uint mask, uint steps) {
    barrier(CLK_LOCAL_MEM_FENCE);
    SUM_OF_GATHERS(sum, data);
    out[get_global_id(0)] = sum;
}
#endif

#ifdef GATHER_LOCAL
__kernel void gather_local(__global const uint *RESTRICT data, __global uint *RESTRICT out, uint mask, uint steps) {
    LOCAL_ARRAY(uint, tile, TILE);
    for (uint i = (uint)get_local_id(0); i < TILE; i += (uint)get_local_size(0)) tile[i] = data[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    SUM_OF_GATHERS(sum, tile);
    out[get_global_id(0)] = sum;
}
#endif
