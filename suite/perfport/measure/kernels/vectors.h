/* Stands before the kernels of ceilings. WIDTH is the vector width (1, 4, 8, 16), VECTOR the type's stem (float, uint). */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if WIDTH == 1
typedef VECTOR vec;
#define LOAD(i, p) ((p)[i])
#define STORE(v, i, p) ((p)[i] = (v))
#define SPLAT(a) (a)
#define SUM(v) (v)
#else
typedef JOIN(VECTOR, WIDTH) vec;
#define LOAD(i, p) JOIN(vload, WIDTH)((i), (p))
#define STORE(v, i, p) JOIN(vstore, WIDTH)((v), (i), (p))
#define SPLAT(a) JOIN(SPLAT_FLOAT, WIDTH)(a)
#define SUM(v) JOIN(hsum, WIDTH)(v)
#endif
