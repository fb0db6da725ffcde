/* perfport kernel dialect, OpenCL C 1.2 side (docs/kernel-dialect.md). PERFPORT_DP4A, PERFPORT_WARP_SYNC and PERFPORT_WIDE_LOADS
   are defined where a trial has shown that the runtime's compiler takes what they stand for (opencl_trials.py). */
#pragma OPENCL FP_CONTRACT ON

#define MAKE_FLOAT2(a, b) ((float2)((a), (b)))
#define MAKE_FLOAT4(a, b, c, d) ((float4)((a), (b), (c), (d)))
#define SPLAT_FLOAT4(a) ((float4)(a))
#define SPLAT_FLOAT8(a) ((float8)(a))
#define SPLAT_FLOAT16(a) ((float16)(a))
#define MAKE_INT2(a, b) ((int2)((a), (b)))
#define MAKE_INT4(a, b, c, d) ((int4)((a), (b), (c), (d)))
#define MAKE_UINT4(a, b, c, d) ((uint4)((a), (b), (c), (d)))

/* Local memory: arrays are declared at kernel scope; `__local` is written only in front of pointers. Aligned as the widest
   vectors are, for vector loads. */
#define LOCAL_ARRAY(type, name, count) __local type name[count] __attribute__((aligned(16)))
#define LOCAL_ARENA(type, name, count) LOCAL_ARRAY(type, name, count)

/* A table in constant memory at file scope, followed by its initialiser; 64 KiB in all. zero is a kernel's argument
   of that value: a compiler that knew the index would fold the value into the code. */
#define CONSTANT_TABLE(type, name, count) __constant type name[count]
#define CONSTANT_AT(name, i, zero) (name[(i) + (zero)])

/* Words in global memory that other work-items change meanwhile. */
#define ATOMIC_LOAD(p) atomic_or((p), 0u)
#define ATOMIC_STORE(p, v) atomic_xchg((p), (v))

/* On both sides of a barrier of the grid: what a work-group wrote is seen by all that come after. OpenCL C 1.2 promises it
   within a work-group only, which on CPUs is as good; NVIDIA's compiler takes the fence of the whole device in PTX. */
#ifdef __NV_CL_C_VERSION
void device_fence(void) { asm volatile("membar.gl;" ::: "memory"); }
#define DEVICE_FENCE() device_fence()
#else
#define DEVICE_FENCE() mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif

/* The kernel is written in vectors of this type: work-items need not be merged into vectors, which Intel's compiler tries
   for minutes on long straight code. */
#define EXPLICIT_VECTORS(type) __attribute__((vec_type_hint(type)))

/* Work-items of one hardware thread are not in lock step on CPUs. AMD's wavefronts are, of 64 up to GCN and CDNA, later of 32
   mostly: only the order of accesses is to be kept. HW_THREAD_ITEMS: how many work-items HW_THREAD_SYNC() is meant for. */
#ifdef __AMDGCN_WAVEFRONT_SIZE
#define HW_THREAD_ITEMS __AMDGCN_WAVEFRONT_SIZE
#else
#define HW_THREAD_ITEMS 32
#endif
#if defined(PERFPORT_WARP_SYNC)
void hw_thread_sync(void) { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }
#define HW_THREAD_SYNC() hw_thread_sync()
#elif defined(__AMDGCN_WAVEFRONT_SIZE)
#define HW_THREAD_SYNC() mem_fence(CLK_LOCAL_MEM_FENCE)
#else
#define HW_THREAD_SYNC() barrier(CLK_LOCAL_MEM_FENCE)
#endif

/* vloadN and vstoreN ask for the alignment of one element, and NVIDIA's compiler makes N accesses of one. Through pointers to
   vectors it makes accesses of 16 bytes, which want addresses that are a multiple of that: the variants see to it where the
   device lacks the capability unaligned_vload, as on CUDA. Private memory is left as it is. */
#ifdef PERFPORT_WIDE_LOADS
#define PP_OVERLOAD __attribute__((overloadable))
#define PP_LOAD(space, type, n) \
    type##n PP_OVERLOAD pp_load##n(size_t i, space const type *p) { return ((space const type##n *)p)[i]; }
#define PP_STORE(space, type, n) \
    void PP_OVERLOAD pp_store##n(type##n v, size_t i, space type *p) { ((space type##n *)p)[i] = v; }
#define PP_WIDER(space)                                                                                                       \
    float8 PP_OVERLOAD pp_load8(size_t i, space const float *p) {                                                             \
        return (float8)(pp_load4(2 * i, p), pp_load4(2 * i + 1, p));                                                          \
    }                                                                                                                         \
    float16 PP_OVERLOAD pp_load16(size_t i, space const float *p) {                                                           \
        return (float16)(pp_load8(2 * i, p), pp_load8(2 * i + 1, p));                                                         \
    }
#define PP_WIDER_STORES(space)                                                                                                \
    void PP_OVERLOAD pp_store8(float8 v, size_t i, space float *p) {                                                          \
        pp_store4(v.lo, 2 * i, p); pp_store4(v.hi, 2 * i + 1, p);                                                             \
    }                                                                                                                         \
    void PP_OVERLOAD pp_store16(float16 v, size_t i, space float *p) {                                                        \
        pp_store8(v.lo, 2 * i, p); pp_store8(v.hi, 2 * i + 1, p);                                                             \
    }
#define PP_LOADS(space) PP_LOAD(space, float, 2) PP_LOAD(space, float, 4) PP_LOAD(space, int, 4) PP_LOAD(space, uint, 4) \
    PP_WIDER(space)
#define PP_STORES(space) PP_STORE(space, float, 2) PP_STORE(space, float, 4) PP_STORE(space, int, 4) PP_STORE(space, uint, 4) \
    PP_WIDER_STORES(space)
PP_LOADS(__global) PP_LOADS(__local) PP_LOADS(__constant)
PP_STORES(__global) PP_STORES(__local)
float2 PP_OVERLOAD pp_load2(size_t i, const float *p) { return vload2(i, p); }
float4 PP_OVERLOAD pp_load4(size_t i, const float *p) { return vload4(i, p); }
int4 PP_OVERLOAD pp_load4(size_t i, const int *p) { return vload4(i, p); }
uint4 PP_OVERLOAD pp_load4(size_t i, const uint *p) { return vload4(i, p); }
float8 PP_OVERLOAD pp_load8(size_t i, const float *p) { return vload8(i, p); }
float16 PP_OVERLOAD pp_load16(size_t i, const float *p) { return vload16(i, p); }
void PP_OVERLOAD pp_store2(float2 v, size_t i, float *p) { vstore2(v, i, p); }
void PP_OVERLOAD pp_store4(float4 v, size_t i, float *p) { vstore4(v, i, p); }
void PP_OVERLOAD pp_store4(int4 v, size_t i, int *p) { vstore4(v, i, p); }
void PP_OVERLOAD pp_store4(uint4 v, size_t i, uint *p) { vstore4(v, i, p); }
void PP_OVERLOAD pp_store8(float8 v, size_t i, float *p) { vstore8(v, i, p); }
void PP_OVERLOAD pp_store16(float16 v, size_t i, float *p) { vstore16(v, i, p); }
#define vload2 pp_load2
#define vload4 pp_load4
#define vload8 pp_load8
#define vload16 pp_load16
#define vstore2 pp_store2
#define vstore4 pp_store4
#define vstore8 pp_store8
#define vstore16 pp_store16
#endif

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
/* What REQD_GROUP_RESIDENT says, again, as a statement of the kernel's body: a comment in NVIDIA's PTX (ptx.py). */
#ifdef __NV_CL_C_VERSION
#define RESIDENT_GROUPS(x, groups) asm volatile("// perfport.resident %0 %1" ::"n"(x), "n"(groups))
#else
#define RESIDENT_GROUPS(x, groups)
#endif

uint dot4_u8(uint a, uint b, uint c) {
#ifdef PERFPORT_DP4A
    uint d;
    asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
#else
    return c + (a & 0xffu) * (b & 0xffu) + ((a >> 8) & 0xffu) * ((b >> 8) & 0xffu) +
           ((a >> 16) & 0xffu) * ((b >> 16) & 0xffu) + (a >> 24) * (b >> 24);
#endif
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
