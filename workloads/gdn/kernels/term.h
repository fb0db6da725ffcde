/* t = -1/2 delta w D^3, for the inverse 1/2 delta w D: what all gradients are made of. Of words or of vectors. */
#if INVERSE
#define TERM(delta, w, d) (0.5f * (delta) * (w) * (d))
#else
#define TERM(delta, w, d) (-0.5f * (delta) * (w) * ((d) * (d) * (d)))
#endif
