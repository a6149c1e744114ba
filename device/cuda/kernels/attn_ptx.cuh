// The instructions that attention needs besides the prelude's; valid for sm_80 and later.
#ifndef ATTN_PTX
#define ATTN_PTX

#ifndef __CUDACC_RTC__
#define __align__(n) __attribute__((aligned(n)))
#endif

// 2^x and log2 x by the special function unit: relative error 2^-22, and 2^-inf = 0.
__device__ __forceinline__ float ex2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float lg2(float x) {
  float y;
  asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Hides the origin of an address, so that derived addresses are computed where they are used and do not occupy
// registers for the whole loop.
__device__ __forceinline__ u32 fresh(u32 x) {
  asm volatile("" : "+r"(x));
  return x;
}
template <typename T> __device__ __forceinline__ const T* fresh(const T* x) {
  asm volatile("" : "+l"(x));
  return x;
}

// The dynamic shared memory of the block, 128-byte aligned, as swizzled tiles require.
__device__ __forceinline__ u32 sharedBase() {
  extern __shared__ __align__(128) unsigned char attnShared[];
  return sharedAddr(attnShared);
}

__device__ __forceinline__ void stShared(u32 at, u32 x) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(x) : "memory");
}
__device__ __forceinline__ void stShared(u32 at, float x) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(x) : "memory");
}
__device__ __forceinline__ void stShared4(u32 at, const u32* x) {
  asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(x[0]), "r"(x[1]), "r"(x[2]),
               "r"(x[3]) : "memory");
}
__device__ __forceinline__ float ldShared(u32 at) {
  float x;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(at) : "memory");
  return x;
}
__device__ __forceinline__ void ldShared4(u32* x, u32 at) {
  asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]),
               "=r"(x[3]) : "r"(at) : "memory");
}

// A barrier of some warps of the block: id 1…15, threads a multiple of 32.
__device__ __forceinline__ void barrierOf(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Whether p holds in any lane of the warp.
__device__ __forceinline__ bool anyLane(bool p) {
  int r;
  asm volatile("{ .reg .pred a, b; setp.ne.b32 a, %1, 0; vote.sync.any.pred b, a, 0xffffffff; selp.b32 %0, 1, 0, b; }"
               : "=r"(r) : "r"((int)p));
  return r != 0;
}

// *p += x for four adjacent floats, without a result. Callers order these adds themselves (see loadAcquire).
__device__ __forceinline__ void redAdd4(float* p, const float* x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(p), "f"(x[0]), "f"(x[1]), "f"(x[2]),
               "f"(x[3]) : "memory");
#else
#pragma unroll
  for (int i = 0; i < 4; i++)
    asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(p + i), "f"(x[i]) : "memory");
#endif
}

// A counter that passes memory from one block to another: what was written before addRelease is visible after
// loadAcquire.
__device__ __forceinline__ int loadAcquire(const int* p) {
  int x;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
  return x;
}
__device__ __forceinline__ int loadRelaxed(const int* p) {
  int x;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
  return x;
}
__device__ __forceinline__ void addRelease(int* p, int x) {
  asm volatile("fence.acq_rel.gpu; red.release.gpu.global.add.s32 [%0], %1;" ::"l"(p), "r"(x) : "memory");
}
#endif
