/* perfport kernel dialect, OpenCL C 1.2 side (docs/kernel-dialect.md). */
#pragma OPENCL FP_CONTRACT ON

#define MAKE_FLOAT2(a, b) ((float2)((a), (b)))
#define MAKE_FLOAT4(a, b, c, d) ((float4)((a), (b), (c), (d)))
#define SPLAT_FLOAT4(a) ((float4)(a))
#define SPLAT_FLOAT8(a) ((float8)(a))
#define SPLAT_FLOAT16(a) ((float16)(a))
#define MAKE_INT2(a, b) ((int2)((a), (b)))
#define MAKE_INT4(a, b, c, d) ((int4)((a), (b), (c), (d)))
#define MAKE_UINT4(a, b, c, d) ((uint4)((a), (b), (c), (d)))

/* Local memory: arrays are declared at kernel scope; `__local` is written only in front of pointers. */
#define LOCAL_ARRAY(type, name, count) __local type name[count]
#define LOCAL_ARENA(type, name, count) __local type name[count]

/* A table in constant memory at file scope, followed by its initialiser; 64 KiB in all. zero is a kernel's argument
   of that value: a compiler that knew the index would fold the value into the code. */
#define CONSTANT_TABLE(type, name, count) __constant type name[count]
#define CONSTANT_AT(name, i, zero) (name[(i) + (zero)])

/* Words in global memory that other work-items change meanwhile. */
#define ATOMIC_LOAD(p) atomic_or((p), 0u)
#define ATOMIC_STORE(p, v) atomic_xchg((p), (v))

/* The kernel is written in vectors of this type: work-items need not be merged into vectors, which Intel's compiler tries
   for minutes on long straight code. */
#define EXPLICIT_VECTORS(type) __attribute__((vec_type_hint(type)))

/* Work-items of one hardware thread are not in lock step on CPUs. */
#define HW_THREAD_SYNC() barrier(CLK_LOCAL_MEM_FENCE)

/* A hint to fetch the line at p into the second-level cache; p may lie past the end of a buffer. PoCL's prefetch() made
   no difference and Intel's less than the builtin, so compilers for CPUs get the builtin; for others it is nothing. */
#if defined(__x86_64__) || defined(__aarch64__) || defined(__INTEL_LLVM_COMPILER)
#define PREFETCH(p) __builtin_prefetch((const void *)(size_t)(p), 0, 2)
#else
#define PREFETCH(p)
#endif

/* A load that the first-level cache does not serve, where the compiler can be told so: NVIDIA's takes PTX. */
#ifdef __NV_CL_C_VERSION
float4 LOAD_PAST_L1_4(size_t i, __global const float *p) {
    float4 v;
    asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p + 4 * i));
    return v;
}
#else
#define LOAD_PAST_L1_4(i, p) vload4((i), (p))
#endif

/* Loads and stores of floats that are not used again soon. Compilers for CPUs get the builtin, whose stores need not read
   the line first (PoCL 3.1 and Intel's have it); it wants pointers aligned to the vector. Elsewhere they are plain. */
#define STREAM_LOAD1(i, p) ((p)[i])
#define STREAM_LOAD4(i, p) vload4((i), (p))
#define STREAM_LOAD8(i, p) vload8((i), (p))
#define STREAM_LOAD16(i, p) vload16((i), (p))
#if defined(__x86_64__) || defined(__aarch64__) || defined(__INTEL_LLVM_COMPILER)
#define STREAM_STORE1(v, i, p) __builtin_nontemporal_store((v), (p) + (i))
#define STREAM_STORE4(v, i, p) __builtin_nontemporal_store((v), (__global float4 *)(p) + (i))
#define STREAM_STORE8(v, i, p) __builtin_nontemporal_store((v), (__global float8 *)(p) + (i))
#define STREAM_STORE16(v, i, p) __builtin_nontemporal_store((v), (__global float16 *)(p) + (i))
#else
#define STREAM_STORE1(v, i, p) ((p)[i] = (v))
#define STREAM_STORE4(v, i, p) vstore4((v), (i), (p))
#define STREAM_STORE8(v, i, p) vstore8((v), (i), (p))
#define STREAM_STORE16(v, i, p) vstore16((v), (i), (p))
#endif

#define RESTRICT restrict
#define INLINE __attribute__((always_inline))
#define REQD_GROUP(x) __attribute__((reqd_work_group_size(x, 1, 1)))
#define REQD_GROUP_RESIDENT(x, groups) REQD_GROUP(x)

uint dot4_u8(uint a, uint b, uint c) {
    return c + (a & 0xffu) * (b & 0xffu) + ((a >> 8) & 0xffu) * ((b >> 8) & 0xffu) +
           ((a >> 16) & 0xffu) * ((b >> 16) & 0xffu) + (a >> 24) * (b >> 24);
}
#define DOT4_U8(a, b, c) dot4_u8((a), (b), (c))

float hsum4(float4 v) { return (v.x + v.y) + (v.z + v.w); }
float hsum8(float8 v) { return hsum4(v.lo + v.hi); }
float hsum16(float16 v) { return hsum8(v.lo + v.hi); }

/* The lower and the higher of two floats or of each component, neither of which is NaN: the first where they are equal. */
#define LOWER_OF(a, b) ((b) < (a) ? (b) : (a))
#define HIGHER_OF(a, b) ((b) > (a) ? (b) : (a))
float hmin4(float4 v) { return LOWER_OF(LOWER_OF(v.x, v.y), LOWER_OF(v.z, v.w)); }
float hmin8(float8 v) { return hmin4(LOWER_OF(v.lo, v.hi)); }
float hmin16(float16 v) { return hmin8(LOWER_OF(v.lo, v.hi)); }
float hmax4(float4 v) { return HIGHER_OF(HIGHER_OF(v.x, v.y), HIGHER_OF(v.z, v.w)); }
float hmax8(float8 v) { return hmax4(HIGHER_OF(v.lo, v.hi)); }
float hmax16(float16 v) { return hmax8(HIGHER_OF(v.lo, v.hi)); }
