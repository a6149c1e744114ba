// What every kernel begins with: the text is put before each .cu, so no CUDA header is needed.
#include "ptx.cuh"

enum { ELSEWHERE = -2 };  // an id or a target that another rank holds

// Faults of kernels: code, wrong value, its bound. The first one stays until Sync has reported it.
enum { FAULT_EMBED = 1, FAULT_EMBED_BACKWARD = 2, FAULT_ROPE = 3, FAULT_CLASSIFY = 4, FAULT_CACHE = 5 };

__device__ __forceinline__ void report(int* fault, int code, int value, int bound) {
  if (atomicCAS(fault, 0, code) == 0) { fault[1] = value; fault[2] = bound; }
}

// ---- bf16 ----
__device__ __forceinline__ float toFloat(bf16 x) { return __uint_as_float((u32)x << 16); }
__device__ __forceinline__ float toFloat(float x) { return x; }

__device__ __forceinline__ float lowBf16(u32 x) { return __uint_as_float(x << 16); }
__device__ __forceinline__ float highBf16(u32 x) { return __uint_as_float(x & 0xffff0000u); }

__device__ __forceinline__ void put(bf16* p, float x) { *p = toBf16(x); }
__device__ __forceinline__ void put(float* p, float x) { *p = x; }

// Eight elements at p, of which the first n exist (others read as 0). vec: p is 16-byte aligned.
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

// Eight elements in memory format, for loads that should be issued early and use few registers.
struct Raw { u32 x[4]; };
__device__ __forceinline__ Raw loadRaw(const bf16* p, int n, bool vec) {
  if (vec && n >= 8) {
    uint4 v = *(const uint4*)p;
    return {{v.x, v.y, v.z, v.w}};
  }
  Raw r = {};
#pragma unroll
  for (int i = 0; i < 8; i++) if (i < n) r.x[i / 2] |= (u32)p[i] << 16 * (i % 2);
  return r;
}
__device__ __forceinline__ void storeRaw(bf16* p, const Raw& r, int n, bool vec) {
  if (vec && n >= 8) {
    uint4 v;
    v.x = r.x[0]; v.y = r.x[1]; v.z = r.x[2]; v.w = r.x[3];
    *(uint4*)p = v;
  } else {
#pragma unroll
    for (int i = 0; i < 8; i++) if (i < n) p[i] = (bf16)(r.x[i / 2] >> 16 * (i % 2));
  }
}
__device__ __forceinline__ float element(const Raw& r, int i) {
  return i % 2 == 0 ? lowBf16(r.x[i / 2]) : highBf16(r.x[i / 2]);
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

// ---- elementwise walks: r over rows, c over columns in steps of 8, a thread 8 neighbours at a time ----
#define FOR_EACH_8(r, c, rows, cols)                          \
  for (i64 r = blockIdx.y; r < (rows); r += gridDim.y)        \
    for (i64 c = ((i64)blockIdx.x * blockDim.x + threadIdx.x) * 8; c < (cols); c += (i64)gridDim.x * blockDim.x * 8)

// How many of the 8 elements at c exist.
__device__ __forceinline__ int left8(i64 c, i64 cols) { return cols - c < 8 ? (int)(cols - c) : 8; }
