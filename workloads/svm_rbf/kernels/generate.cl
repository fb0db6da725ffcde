/* Counter-based generator: element i depends on i and the seed alone; data.py makes the same values on the host. */
uint mix32(uint h) {
    h ^= h >> 16;
    h *= 0x85EBCA6Bu;
    h ^= h >> 13;
    h *= 0xC2B2AE35u;
    return h ^ (h >> 16);
}

__kernel void generate(__global float *out, ulong n, uint seed, float mean, uint bits, int exponent) {
    float scale = 2.0f / (float)(1u << bits);
    for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) {
        uint h = mix32((uint)i ^ mix32((uint)(i >> 32) ^ seed));
        out[i] = ldexp(bits ? (float)(h >> (32u - bits)) * scale - 1.0f + mean : 1.0f + mean, exponent);
    }
}
