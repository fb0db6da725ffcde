/* Matrix units by inline PTX, in the dialect (compute capability 8.0 and later), where TERMS is not 0.

   FORMAT  0: TF32, mma.sync.m16n8k8, one value to a 32-bit word; 1: bf16, mma.sync.m16n8k16, two, the lower half first.
   TERMS   1: operands rounded; 3: each operand is split into hi = round(x) and lo = round(x - hi), and hi lo + lo hi + hi hi is
           summed; lo lo is below rounding. (S. Markidis et al., "NVIDIA Tensor Core Programmability, Performance & Precision",
           IPDPSW 2018; H. Ootomo, R. Yokota, "Recovering single precision accuracy from Tensor Cores", IJHPCA 2022.)

   In words both formats have one fragment layout; with g = lane / 4 and t = lane % 4:
     A (16 rows x 8 words)    a0 (g, t)   a1 (g + 8, t)   a2 (g, t + 4)   a3 (g + 8, t + 4)
     B (8 columns x 8 words)  b0 (g, t)   b1 (g, t + 4)
     sums (16 x 8)            c0 (g, 2t)  c1 (g, 2t + 1)  c2 (g + 8, 2t)  c3 (g + 8, 2t + 1)

   The units truncate what they add to, which adds up over a long inner dimension: there products are summed apart and added to
   FP32 registers. */
#if TERMS
#define PER_WORD (FORMAT ? 2 : 1)
#define PARTS (TERMS == 3 ? 2 : 1)

/* One word of an operand, and what rounding left of it: of TF32 the first value alone. */
uint round_word(float first, float second) {
    uint word;
#if FORMAT /* whose upper half is the instruction's first source */
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
#else
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(first));
#endif
    return word;
}

uint round_rest(float first, float second, uint word) {
#if FORMAT
    return round_word(first - as_float(word << 16), second - as_float(word & 0xFFFF0000u));
#else
    return round_word(first - as_float(word), 0.0f);
#endif
}

#if FORMAT
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
#else
#define MMA "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
#endif
void multiply(float *c, const uint *a, const uint *b) {
    asm volatile(MMA " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif
