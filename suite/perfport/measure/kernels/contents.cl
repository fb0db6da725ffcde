/* The contents of buffers, whatever they mean. Each work-group walks a chunk; the bytes behind the last whole word are
   taken one by one, by the first work-items. */
#define TAKE(nbytes)                                                                    \
    ulong words = (nbytes) / 4, per_group = (words + get_num_groups(0) - 1) / get_num_groups(0); \
    ulong begin = get_group_id(0) * per_group;                                          \
    ulong end = begin + per_group < words ? begin + per_group : words;                  \
    ulong tail = 4 * words + get_global_id(0);

__kernel void exchange(__global uint *a, __global uint *b, ulong nbytes) {
    TAKE(nbytes)
    for (ulong i = begin + get_local_id(0); i < end; i += get_local_size(0)) {
        uint kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
    for (; tail < nbytes; tail += get_global_size(0)) {
        __global uchar *x = (__global uchar *)a, *y = (__global uchar *)b;
        uchar kept = x[tail];
        x[tail] = y[tail];
        y[tail] = kept;
    }
}

/* A word and its place, mixed by the finaliser of MurmurHash3 (A. Appleby): every bit of them changes half of the result's,
   so that of two changes one undoes the other once in 2^32 times. The sum over all words tells them in any order of
   addition, exchanged ones too. Who does not know `key` cannot choose contents of one sum. */
INLINE uint term(uint word, uint place, uint key) {
    uint h = word ^ key ^ (place * 0x9e3779b9u);
    h = (h ^ (h >> 16)) * 0x85ebca6bu;
    h = (h ^ (h >> 13)) * 0xc2b2ae35u;
    return h ^ (h >> 16);
}

__kernel void checksum(__global const uint *a, ulong nbytes, uint key, __global ulong *sums) {
    TAKE(nbytes)
    ulong sum = 0;
    for (ulong i = begin + get_local_id(0); i < end; i += get_local_size(0)) sum += term(a[i], (uint)i, key);
    for (; tail < nbytes; tail += get_global_size(0)) sum += term(((__global const uchar *)a)[tail], (uint)tail, key);
    sums[get_global_id(0)] = sum;
}

/* `out` has each run of 16 bytes from `a` or from `b`, as the place and `key` say; a shorter run at the end is from `a`. */
__kernel void blend(__global const uint *a, __global const uint *b, __global uint *out, ulong nbytes, uint key) {
    TAKE(nbytes)
    for (ulong i = begin + get_local_id(0); i < end; i += get_local_size(0)) {
        int whole = i / 4 < nbytes / 16;
        out[i] = whole && term(0, (uint)(i / 4), key) & 1 ? b[i] : a[i];
    }
    for (; tail < nbytes; tail += get_global_size(0))
        ((__global uchar *)out)[tail] = ((__global const uchar *)a)[tail];
}

/* How many bytes of `mixed` neither `a` nor `b` has at their place. */
__kernel void strangers(__global const uint *mixed, __global const uint *a, __global const uint *b, ulong nbytes,
                        __global ulong *sums) {
    TAKE(nbytes)
    ulong sum = 0;
    for (ulong i = begin + get_local_id(0); i < end; i += get_local_size(0)) {
        uint x = mixed[i] ^ a[i], y = mixed[i] ^ b[i];
        for (uint byte = 0xff; byte && x && y; byte <<= 8) sum += (x & byte) && (y & byte);
    }
    for (; tail < nbytes; tail += get_global_size(0)) {
        uchar value = ((__global const uchar *)mixed)[tail];
        sum += value != ((__global const uchar *)a)[tail] && value != ((__global const uchar *)b)[tail];
    }
    sums[get_global_id(0)] = sum;
}
