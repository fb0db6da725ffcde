/* Where a point's words of four dimensions lie. INTERLEAVED: the same word of RUN neighbouring points side by side, then
   the next word of these points; else row by row. */
#define WORDS (DIMS / 4)
#define RUN 32
#if INTERLEAVED
#define WORD_AT(i, w) ((i) + (size_t)((i) / RUN) * (RUN * (WORDS - 1)) + (w) * RUN)
#else
#define WORD_AT(i, w) ((size_t)(i) * WORDS + (w))
#endif
#define BYTE_AT(i, d) (4 * WORD_AT(i, (d) / 4) + (d) % 4)
