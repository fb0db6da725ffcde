/* Counter-based generator: element i depends on i and the seed alone; data.py makes the same values on the host. */
__kernel void generate(__global float *out, ulong n, ulong seed) {
    for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) {
        ulong x = (i + seed) * 0x9E3779B97F4A7C15ul;
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ul;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBul;
        x = x ^ (x >> 31);
        out[i] = (float)(uint)(x >> 40) * (1.0f / 8388608.0f) - 1.0f;
    }
}
