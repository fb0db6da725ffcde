/* Vectors of WIDTH words, and the inverse root of each of their words. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
typedef JOIN(float, WIDTH) vec;
#define VLOAD JOIN(vload, WIDTH)
#define VSTORE JOIN(vstore, WIDTH)
#define SPLAT JOIN(SPLAT_FLOAT, WIDTH)

/* z^(-1/2): the builtin, or NEWTON steps from the usual first guess by integer arithmetic (3 reach rounding error), for CPUs,
   where the builtin is a division and a root. */
float inverse_root_of_word(float z) {
#if NEWTON
    float y = as_float(0x5F3759DF - (as_int(z) >> 1)), h = 0.5f * z;
    #pragma unroll
    for (int s = 0; s < NEWTON; ++s) y = y * fma(-h, y * y, 1.5f);
    return y;
#else
    return rsqrt(z);
#endif
}

vec inverse_root(vec z) {
#if WIDTH == 4
    return MAKE_FLOAT4(inverse_root_of_word(z.x), inverse_root_of_word(z.y), inverse_root_of_word(z.z),
                       inverse_root_of_word(z.w));
#elif NEWTON
    vec y = JOIN(as_float, WIDTH)(0x5F3759DF - (JOIN(as_int, WIDTH)(z) >> 1)), h = SPLAT(0.5f) * z;
    #pragma unroll
    for (int s = 0; s < NEWTON; ++s) y = y * fma(-h, y * y, SPLAT(1.5f));
    return y;
#else
    return rsqrt(z);
#endif
}
