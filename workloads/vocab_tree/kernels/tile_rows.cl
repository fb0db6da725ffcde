/* Blocks whose rows lie in local memory: how a team of 32 work-items brings them there, STAGES of them in flight where copies
   are asynchronous, and adds them up. */
#include "tile.cl"

#if !VECTOR
#if MATRIX
#define WORDS_PUT ((UNITS + 1) / 2 * 8) /* matrix units take 32 dimensions: zeros fill them up */
#define COPY_UNIT(to, from) copy_async(to, from)
#define COPIES_BEGUN() commit_copies()
#define AWAIT_COPIES() await_copies<STAGES - 1>()
#else
#define WORDS_PUT WORDS
#define COPY_UNIT(to, from) vstore4(vload4(0, from), 0, to)
#define COPIES_BEGUN()
#define AWAIT_COPIES()
#endif
#define PADDING 0

typedef struct {
    __local uint *rows;
} Block;

INLINE void put_centre(__local uint *parts, uint k, uint w, uint a, uint b) {
    parts[CENTRE_AT(k, w / 4) + w % 4] = UPPER(a, b);
    parts[CENTRE_AT(RESIDENT + k, w / 4) + w % 4] = LOWER(a, b);
}

/* Rows behind the last point of the run are that point's. */
INLINE void stage(const Run *run, uint step) {
    uint start = (step * TEAMS + run->team) * ROWS;
    __local uint *rows = run->rows + step % STAGES * (ROWS * ROW_WORDS);
    if (start < run->length) {
        for (uint i = run->lane; i < ROWS * UNITS; i += TEAM) {
            uint row = i / UNITS, unit = i % UNITS;
            size_t point = min(start + row, run->length - 1);
            COPY_UNIT(rows + UNIT_AT(row, unit), run->points + (point * UNITS + unit) * 4);
        }
    }
    COPIES_BEGUN();
}

INLINE void begin(const Run *run) {
    for (uint step = 0; step + 1 < STAGES; ++step) stage(run, step);
}

INLINE void take(const Run *run, Block *block, uint step) {
    stage(run, step + STAGES - 1);
    AWAIT_COPIES();
    TEAM_SYNC();
    block->rows = run->rows + step % STAGES * (ROWS * ROW_WORDS);
}

/* Labels of a block to global memory, and its classes counted. */
INLINE void put_labels(const Run *run, uint start, uint here) {
    #pragma unroll
    for (int p = 0; p < POINTS_EACH; ++p) {
        uint row = run->lane + p * TEAM;
        if (row < here) {
            uint k = run->label[row];
            run->labels[start + row] = (uchar)k;
            atomic_inc(run->counts + k);
        }
    }
}

/* A work-item owns a word of rows. */
INLINE void add_words(const Run *run, const Block *block, uint here) {
    uint word = run->lane % WORDS, row = run->lane / WORDS;
    if (row >= TEAM / WORDS) return;
    for (; row < here; row += TEAM / WORDS) {
        add_word(run, run->label[row], word, block->rows[UNIT_AT(row, word / 4) + word % 4]);
    }
}
#endif
