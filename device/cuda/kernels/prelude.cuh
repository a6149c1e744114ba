// What every kernel begins with. The text is put before each .cu, so no CUDA header is needed: NVRTC knows the
// qualifiers and built-in variables, clang (which only checks the syntax) is told about them here.
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
__device__ int __float_as_int(float);
__device__ float __int_as_float(int);
__device__ float __fdividef(float, float);
__device__ int min(int, int);
__device__ int max(int, int);
#endif

typedef unsigned short bf16;     // the upper half of a float32
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

// The GPU's faults: code, the value that was wrong, its bound. The first one stays until Sync has told it.
enum { FAULT_EMBED = 1, FAULT_EMBED_BACKWARD = 2, FAULT_ROPE = 3, FAULT_CLASSIFY = 4, FAULT_CACHE = 5 };

__device__ __forceinline__ void report(int* fault, int code, int value, int bound) {
  if (atomicCAS(fault, 0, code) == 0) { fault[1] = value; fault[2] = bound; }
}

// ---- bf16 ----
__device__ __forceinline__ float toFloat(bf16 x) { return __uint_as_float((u32)x << 16); }
__device__ __forceinline__ float toFloat(float x) { return x; }

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
__device__ __forceinline__ float lowBf16(u32 x) { return __uint_as_float(x << 16); }
__device__ __forceinline__ float highBf16(u32 x) { return __uint_as_float(x & 0xffff0000u); }

__device__ __forceinline__ void put(bf16* p, float x) { *p = toBf16(x); }
__device__ __forceinline__ void put(float* p, float x) { *p = x; }

// Eight elements from p, of which the first n exist (others read as 0). vec says that p lies on 16 bytes.
__device__ __forceinline__ void load8(float* x, const bf16* p, int n, bool vec) {
  if (vec && n >= 8) {
    uint4 v = *(const uint4*)p;
    x[0] = lowBf16(v.x); x[1] = highBf16(v.x); x[2] = lowBf16(v.y); x[3] = highBf16(v.y);
    x[4] = lowBf16(v.z); x[5] = highBf16(v.z); x[6] = lowBf16(v.w); x[7] = highBf16(v.w);
  } else {
#pragma unroll
    for (int i = 0; i < 8; i++) x[i] = i < n ? toFloat(p[i]) : 0.f;
  }
}
__device__ __forceinline__ void load8(float* x, const float* p, int n, bool vec) {
  if (vec && n >= 8) {
    float4 a = *(const float4*)p, b = *(const float4*)(p + 4);
    x[0] = a.x; x[1] = a.y; x[2] = a.z; x[3] = a.w; x[4] = b.x; x[5] = b.y; x[6] = b.z; x[7] = b.w;
  } else {
#pragma unroll
    for (int i = 0; i < 8; i++) x[i] = i < n ? p[i] : 0.f;
  }
}
__device__ __forceinline__ void store8(bf16* p, const float* x, int n, bool vec) {
  if (vec && n >= 8) {
    uint4 v;
    v.x = packBf16(x[0], x[1]); v.y = packBf16(x[2], x[3]); v.z = packBf16(x[4], x[5]); v.w = packBf16(x[6], x[7]);
    *(uint4*)p = v;
  } else {
#pragma unroll
    for (int i = 0; i < 8; i++) if (i < n) p[i] = toBf16(x[i]);
  }
}
__device__ __forceinline__ void store8(float* p, const float* x, int n, bool vec) {
  if (vec && n >= 8) {
    float4 a, b;
    a.x = x[0]; a.y = x[1]; a.z = x[2]; a.w = x[3]; b.x = x[4]; b.y = x[5]; b.z = x[6]; b.w = x[7];
    *(float4*)p = a; *(float4*)(p + 4) = b;
  } else {
#pragma unroll
    for (int i = 0; i < 8; i++) if (i < n) p[i] = x[i];
  }
}

// ---- reductions: a fixed tree, the same bits each time, the result in every thread ----
template <typename T> __device__ __forceinline__ T warpSum(T x) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) x += __shfl_xor_sync(0xffffffffu, x, o);
  return x;
}
__device__ __forceinline__ float warpMax(float x) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, o));
  return x;
}
// The block is whole warps; room holds 32 values of shared memory. Two calls need no barrier between them.
template <typename T> __device__ __forceinline__ T blockSum(T x, T* room) {
  int warps = blockDim.x >> 5, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  x = warpSum(x);
  __syncthreads();
  if (lane == 0) room[warp] = x;
  __syncthreads();
  return warpSum(lane < warps ? room[lane] : (T)0);
}
__device__ __forceinline__ float blockMax(float x, float* room) {
  int warps = blockDim.x >> 5, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  x = warpMax(x);
  __syncthreads();
  if (lane == 0) room[warp] = x;
  __syncthreads();
  return warpMax(lane < warps ? room[lane] : __uint_as_float(0xff800000u));
}

// ---- tensor cores: D[16,8] += A[16,16]·B[16,8], bf16 with fp32 sums; from sm_80 on ----
// With g = lane/4 and t = lane%4: a0 (g,2t) a1 (g+8,2t) a2 (g,2t+8) a3 (g+8,2t+8); b0 (2t,g) b1 (2t+8,g);
// d0 d1 (g,2t…2t+1), d2 d3 (g+8,2t…2t+1).
__device__ __forceinline__ void mma16816(float* d, const u32* a, const u32* b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// The 32-bit address of shared memory that PTX wants.
__device__ __forceinline__ u32 sharedAddr(const void* p) {
  u32 r;
  asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(r) : "l"(p));
  return r;
}
// Four 8×8 matrices of bf16; lane l gives the address of row l%8 of matrix l/8. Trans hands them out transposed.
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
__device__ __forceinline__ void cpCommit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most N of the youngest groups are still under way.
template <int N> __device__ __forceinline__ void cpWait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

// ---- elementwise walks: r over rows, c over columns in steps of 8, a thread 8 neighbours at a time ----
#define FOR_EACH_8(r, c, rows, cols)                          \
  for (i64 r = blockIdx.y; r < (rows); r += gridDim.y)        \
    for (i64 c = ((i64)blockIdx.x * blockDim.x + threadIdx.x) * 8; c < (cols); c += (i64)gridDim.x * blockDim.x * 8)

// How many of the 8 elements at c exist.
__device__ __forceinline__ int left8(i64 c, i64 cols) { return cols - c < 8 ? (int)(cols - c) : 8; }
