/* Asynchronous copies into local memory by parts of 16 bytes, by inline PTX (cp.async): every device that has the matrix units has them. */
#ifdef __OPENCL_C_VERSION__
#define LOCAL_ADDRESS(p) ((uint)(size_t)(p))
#define GLOBAL_ADDRESS(p) (p)
#else
#define LOCAL_ADDRESS(p) ((uint)__cvta_generic_to_shared(p))
#define GLOBAL_ADDRESS(p) __cvta_generic_to_global(p)
#endif

/* Begins to copy 16 bytes, of which so many are read and the others 0. */
INLINE void copy_part(__local float *to, __global const float *from, uint bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(LOCAL_ADDRESS(to)), "l"(GLOBAL_ADDRESS(from)), "r"(bytes) : "memory");
}

#ifdef SANITIZED
INLINE void copy_word(__local float *to, __global const float *from, uint bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(LOCAL_ADDRESS(to)), "l"(GLOBAL_ADDRESS(from)), "r"(bytes) : "memory");
}
#endif

/* Begins to copy 4 words of maps of `end` words, of which the first `count` from `from` on are read and the others 0. Nothing is read past
   the end, but to a sanitizer an access is as wide as its instruction: for it, the words of such a part are copied one by one. */
INLINE void copy_words(__local float *to, __global const float *maps, uint from, uint count, uint end) {
    const uint first = count ? from : 0;
#ifdef SANITIZED
    if (first + 4 > end) {
        for (uint n = 0; n < 4; ++n) copy_word(to + n, maps + (n < count ? first + n : 0), n < count ? 4 : 0);
        return;
    }
#endif
    copy_part(to, maps + first, 4 * count);
}
