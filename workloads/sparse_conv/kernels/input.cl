/* An element of an image's maps[CHANNELS][HEIGHT][WIDTH], zero outside of it. */
float input_at(__global const float *RESTRICT maps, int channel, int y, int x) {
    float value = 0.0f;
    if (y >= 0 && y < HEIGHT && x >= 0 && x < WIDTH) value = maps[(channel * HEIGHT + y) * WIDTH + x];
    return value;
}
