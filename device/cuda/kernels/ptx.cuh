// The instructions that C++ has no name for, as small functions, and (for clang, which checks the syntax without a
// toolkit) what NVRTC knows by itself: qualifiers, built-in variables and functions. Everything is valid from sm_80 on.
// A test puts its own version of this file in place to run the kernels on a CPU, so inline PTX belongs here (or in
// attn_ptx.cuh) only.
#ifndef __CUDACC_RTC__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ __attribute__((always_inline)) inline
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __restrict__ __restrict
struct uint3 { unsigned x, y, z; };
struct __attribute__((aligned(16))) uint4 { unsigned x, y, z, w; };
struct __attribute__((aligned(8))) uint2 { unsigned x, y; };
struct __attribute__((aligned(16))) float4 { float x, y, z, w; };
struct __attribute__((aligned(8))) float2 { float x, y; };
extern const __device__ uint3 threadIdx, blockIdx, blockDim, gridDim;
__device__ void __syncthreads();
__device__ void __syncwarp(unsigned mask = 0xffffffffu);
__device__ int atomicAdd(int*, int);
__device__ int atomicCAS(int*, int, int);
__device__ float __shfl_xor_sync(unsigned, float, int, int = 32);
__device__ double __shfl_xor_sync(unsigned, double, int, int = 32);
__device__ int __shfl_xor_sync(unsigned, int, int, int = 32);
__device__ float __shfl_sync(unsigned, float, int, int = 32);
__device__ int __shfl_sync(unsigned, int, int, int = 32);
__device__ float expf(float);
__device__ float exp2f(float);
__device__ float logf(float);
__device__ float sqrtf(float);
__device__ float rsqrtf(float);
__device__ float fabsf(float);
__device__ float fmaxf(float, float);
__device__ float fminf(float, float);
__device__ float fmaf(float, float, float);
__device__ float __expf(float);
__device__ float __logf(float);
__device__ double exp(double);
__device__ double sqrt(double);
__device__ float __uint_as_float(unsigned);
__device__ unsigned __float_as_uint(float);
__device__ float __fmul_rn(float, float);
__device__ unsigned __byte_perm(unsigned, unsigned, unsigned);
__device__ int __float_as_int(float);
__device__ float __int_as_float(int);
__device__ float __fdividef(float, float);
__device__ int __clz(int);
__device__ int min(int, int);
__device__ int max(int, int);
#endif

typedef unsigned short bf16;     // the upper half of a float32
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

// ---- bf16 ----
// Round to nearest even.
__device__ __forceinline__ bf16 toBf16(float x) {
  bf16 r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x));
  return r;
}

// Two at once: lo in the lower half.
__device__ __forceinline__ u32 packBf16(float lo, float hi) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}

// x, moved by an instruction that ptxas does not take for a move: id selects all bytes in order, 0x3210, and must not
// be known to the compiler.
__device__ __forceinline__ u32 moved(u32 x, u32 id) {
  asm("prmt.b32 %0, %0, 0, %1;" : "+r"(x) : "r"(id));
  return x;
}

// ---- tensor cores: D[16,8] += A[16,16]·B[16,8], bf16 with fp32 sums; from sm_80 on ----
// With g = lane/4 and t = lane%4: a0 (g,2t) a1 (g+8,2t) a2 (g,2t+8) a3 (g+8,2t+8); b0 (2t,g) b1 (2t+8,g);
// d0 d1 (g,2t…2t+1), d2 d3 (g+8,2t…2t+1).
__device__ __forceinline__ void mma16816(float* d, const u32* a, const u32* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
      "r"(b[0]), "r"(b[1]));
}

// The same of fp16.
__device__ __forceinline__ void mma16816Half(float* d, const u32* a, const u32* b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// D[16,8] += A[16,32]·B[32,8] of bytes, unsigned and signed, with int32 sums. A word has four adjacent k: a0 (g,4t)
// a1 (g+8,4t) a2 (g,4t+16) a3 (g+8,4t+16); b0 (4t,g) b1 (4t+16,g); d as above.
__device__ __forceinline__ void mma16832(int* d, const u32* a, const u32* b) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Two halves (fp16) in a word: 11 bits of mantissa instead of 8, up to 65504.
__device__ __forceinline__ u32 packHalf(float lo, float hi) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
__device__ __forceinline__ float lowHalf(u32 x) {
  float r;
  asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l; }" : "=f"(r) : "r"(x));
  return r;
}
__device__ __forceinline__ float highHalf(u32 x) {
  float r;
  asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, h; }" : "=f"(r) : "r"(x));
  return r;
}
// a − b of two halves each.
__device__ __forceinline__ u32 subHalf(u32 a, u32 b) {
  u32 r;
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}

// The 32-bit shared-memory address for PTX.
__device__ __forceinline__ u32 sharedAddr(const void* p) {
  u32 r;
  asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(r) : "l"(p));
  return r;
}
// Four 8×8 matrices of bf16; lane l gives the address of row l%8 of matrix l/8. Trans returns them transposed.
__device__ __forceinline__ void ldmatrix4(u32* r, u32 addr) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(addr) : "memory");
}
__device__ __forceinline__ void ldmatrix4t(u32* r, u32 addr) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(addr) : "memory");
}

// ---- asynchronous copies of 16 bytes, both sides on 16 bytes; bytes (0…16) are read, the rest becomes 0 ----
__device__ __forceinline__ void cpAsync16(u32 dst, const void* src, int bytes = 16) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}
// The same of 4 or 8 bytes.
template <int N> __device__ __forceinline__ void cpAsyncFew(u32 dst, const void* src) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(dst), "l"(src), "n"(N) : "memory");
}
__device__ __forceinline__ void cpCommit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most N of the youngest groups are in flight.
template <int N> __device__ __forceinline__ void cpWait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
