/* CHAINS independent recurrences per work-item. One of these macros chooses the recurrence, and with it what a step does:
   FMA      x = x a + c, or x = x x + c with QUADRATIC
   MAD32    x = x x + c, 32-bit integers
   LOGIC    x = ((x << 5) ^ x) + c: a shift, a logic operation, an addition
   DP4A     x = c + sum of the squares of x's bytes, by DOT4_U8
   EXP      x = exp(c - x); NATIVE: native_exp
   RSQRT    x = rsqrt(x + c); NATIVE: native_rsqrt
   UNROLL is how often the loop over the steps is unrolled; 0 leaves it to the compiler.
   None has a closed form that a compiler finds; all stay bounded, and every chain enters the result. */
#if defined(FMA) && QUADRATIC
#define STEP(x) fma(x, x, offset)
#elif defined(FMA)
#define STEP(x) fma(x, factor, offset)
#elif defined(MAD32)
#define STEP(x) ((x) * (x) + offset)
#elif defined(LOGIC)
#define STEP(x) ((((x) << 5) ^ (x)) + offset)
#elif defined(DP4A)
#define STEP(x) DOT4_U8(x, x, offset)
#elif defined(EXP) && NATIVE
#define STEP(x) native_exp(offset - (x))
#elif defined(EXP)
#define STEP(x) exp(offset - (x))
#elif defined(RSQRT) && NATIVE
#define STEP(x) native_rsqrt((x) + offset)
#elif defined(RSQRT)
#define STEP(x) rsqrt((x) + offset)
#endif

#if defined(FMA) || defined(EXP) || defined(RSQRT)
#define ALL(a) SPLAT(a)
#define FIRST(k) (0.3f + 0.01f * (k) + 1e-7f * (float)(get_global_id(0) & 1023))
#else
#define ALL(a) ((vec)(a)) /* vectors of integers wider than one: OpenCL alone */
#define FIRST(k) (3u + 2u * (k) + (uint)get_global_id(0))
#endif

__kernel void recurrences(__global VECTOR *out, VECTOR a, VECTOR c, int steps) {
    vec x[CHAINS];
    #pragma unroll
    for (int k = 0; k < CHAINS; ++k) x[k] = ALL(FIRST(k));
    vec factor = ALL(a), offset = ALL(c);
#if UNROLL
    #pragma unroll UNROLL
#endif
    for (int s = 0; s < steps; ++s) {
        #pragma unroll
        for (int k = 0; k < CHAINS; ++k) x[k] = STEP(x[k]);
    }
    for (int k = 1; k < CHAINS; ++k) x[0] = x[0] + x[k];
    STORE(x[0], get_global_id(0), out);
}
