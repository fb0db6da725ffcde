/* Maps that are asked for before they are staged.

   On matrix units: copies of what later steps of dgamma's product take, into local memory and as it lies in memory: asynchronously, by
   inline PTX (cp.async), which every device has that has the matrix units (mma.h). COPIES steps are on their way, or there, at a time.
   A line of a copy is what is contiguous in the maps: a channel's positions (NHWC: a position's channels). It is copied by parts of 16
   bytes, which begin at the last multiple of 4 words ahead of it: planes of any size are copied so. The 4 words more that a line has for
   this also keep lines out of each other's banks. Words beyond the maps become 0.

   On CPUs (fetch_share): of all three products, lines are fetched into a cache. */
#define COPY_LINES(n) (NHWC ? DEPTH : (n))
#define COPY_SPAN(n) (NHWC ? (n) : DEPTH)
#define COPY_PITCH(n) (COPY_SPAN(n) + 4)
#define COPY_WORDS(n) (COPY_LINES(n) * COPY_PITCH(n))
#define STEP_WORDS (3 * COPY_WORDS(LINES) + (SHARED ? 0 : COPY_WORDS(COLUMN_LINES)))
#define ALIGNED (ACCESS == 4 && !TAILS)
#define BEFORE_LINE(at) (ALIGNED ? 0 : (at) % 4) /* words of a copy ahead of a line that begins there */

/* Inner index of a lane's value r * PER_WORD + e of a fragment that is made of a copy: any order is right that both operands have, and
   in this one a warp takes a word of each bank. */
#if ALONG
#define COPY_INNER(lane, r, e) ((lane) % 4 + 4 * ((r) / 2 + 2 * (e)))
#else
#define COPY_INNER(lane, r, e) (2 * ((lane) % 4) + (PER_WORD == 2 ? 8 * ((r) / 2) + (e) : (r) / 2))
#endif

#if GROUP_ITEMS == 1
/* Fetches a share of the lines that are staged next: so many words each, `stride` apart; in NCHW they are a plane apart, where no
   processor foresees them. What lies past an image's last positions is another channel's, or nobody's, and only a hint. */
INLINE void fetch_share(__global const float *delta, __global const float *w, __global const float *d, uint start, uint stride,
                        uint lines, uint words, uint share, uint shares) {
    for (uint line = share * lines / shares; line < (share + 1) * lines / shares; ++line) {
        for (uint n = 0; n < words; n += 16) {
            const size_t at = start + (size_t)line * stride + n;
            PREFETCH(w + at);
#ifndef FORWARD
            PREFETCH(delta + at);
            PREFETCH(d + at);
#endif
        }
    }
}
#endif

#if defined(GAMMA) && COPIES
#include "copies.h"

/* What was begun since the last call is a step's. */
void copies_begun(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }

/* Waits for the work-item's own copies of the oldest step on its way. */
void copies_there(void) { asm volatile("cp.async.wait_group %0;" ::"n"(COPIES - 1) : "memory"); }

/* Begins to copy a map of `count` channels and DEPTH positions; `lines` lines, which begin at `start`, have `words` words inside the
   maps, which have `end`. */
INLINE void copy_map(__local float *to, __global const float *x, uint count, uint start, uint stride, uint lines, uint words, uint end,
                     uint item) {
    const uint parts = COPY_SPAN(count) / 4 + !ALIGNED, span = min(words, (uint)(COPY_SPAN(count)));
    #pragma unroll 2
    for (uint slot = item; slot < COPY_LINES(count) * parts; slot += GROUP_ITEMS) {
        uint line = slot / parts, part = 4 * (slot % parts), at = start + line * stride, from = at - BEFORE_LINE(at) + part;
        uint inside = line < lines && from < at + span ? min(at + span - from, 4u) : 0;
        copy_words(to + line * COPY_PITCH(count) + part, x, from, inside, end);
    }
}

/* Begins to copy the step at which `at` is, if it is one of the split's, and takes it to the next. */
INLINE void copy_step(__local float *to, __global const float *delta, __global const float *w, __global const float *d, Split *at,
                      uint channels, uint pixels, uint end, uint item) {
    if (at->step < at->last) {
        const uint start = at->image + at->pixel * (NHWC ? channels : 1), stride = NHWC ? channels : pixels;
        const uint positions = pixels - at->pixel, rows = channels - at->first_row, first = start + at->first_row * CHANNEL_STRIDE;
        const uint lines = NHWC ? positions : rows, words = NHWC ? rows : positions;
        copy_map(to, delta, LINES, first, stride, lines, words, end, item);
        copy_map(to + COPY_WORDS(LINES), w, LINES, first, stride, lines, words, end, item);
        copy_map(to + 2 * COPY_WORDS(LINES), d, LINES, first, stride, lines, words, end, item);
#if !SHARED
        const uint columns = channels - at->first_column;
        copy_map(to + 3 * COPY_WORDS(LINES), w, COLUMN_LINES, start + at->first_column * CHANNEL_STRIDE, stride, NHWC ? positions : columns,
                 NHWC ? columns : positions, end, item);
#endif
        ++at->step;
        next_positions(at, channels, pixels);
    }
    copies_begun();
}
#endif
