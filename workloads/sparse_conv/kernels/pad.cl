/* The input with its zero border, columns sorted by their phase modulo STRIDE, so that neighbouring outputs read
   neighbouring words: out[map][row][phase][PITCH]. One work-group for each map, row and phase. */
__kernel void pad(__global const float *RESTRICT in, __global float *RESTRICT out) {
    const int line = get_group_id(0);
    const int phase = line % STRIDE, row = line / STRIDE % ROWS - PADDING, map = line / STRIDE / ROWS;
    __global const float *from = in + (size_t)map * (HEIGHT * WIDTH) + row * WIDTH + phase - PADDING;
    __global float *to = out + (size_t)line * PITCH;
    /* Columns first <= i < last are of the image. */
    const int first = row < 0 || row >= HEIGHT ? PITCH : max(PADDING - phase + STRIDE - 1, 0) / STRIDE;
    const int last = min((WIDTH + PADDING - phase + STRIDE - 1) / STRIDE, PITCH);
    for (int i = get_local_id(0); i < min(first, PITCH); i += GROUP) to[i] = 0.0f;
    for (int i = first + get_local_id(0); i < last; i += GROUP) to[i] = from[i * STRIDE];
    for (int i = max(first, last) + get_local_id(0); i < PITCH; i += GROUP) to[i] = 0.0f;
}
