/* Vectors of WIDTH words: their type, load, store, broadcast and sum. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
typedef JOIN(float, WIDTH) vec;
#define VLOAD JOIN(vload, WIDTH)
#define VSTORE JOIN(vstore, WIDTH)
#define SPLAT JOIN(SPLAT_FLOAT, WIDTH)
#define SUM JOIN(hsum, WIDTH)
