// The instructions of Hopper alone (sm_90a) as small functions: the copy engine (TMA), mbarriers, wgmma's frame,
// stmatrix, register redistribution. Inline PTX belongs here, in ptx.cuh, attn_ptx.cuh and the generated wgmma.cuh
// only: tests put their own versions in place to run the kernels on a CPU. Facts and sources: the PTX ISA, chapters on
// wgmma, mbarrier and cp.async.bulk.tensor.
#ifndef HOPPER
#define HOPPER
#include "attn_ptx.cuh"
#include "wgmma.cuh"

#ifndef __CUDACC_RTC__
#define __grid_constant__
#endif

// A tensor map, filled by the driver (internal/cu, TensorMap). It must lie in a __grid_constant__ parameter, on 128
// bytes: CUDA 12 asked for 64, CUDA 13 asks for 128, and a map across two lines of a cache may be read half old and
// half new.
struct __align__(128) TensorMap {
  unsigned char bytes[128];
};

// For debugging: PREFETCH 0 leaves maps to their first use, REDISTRIBUTE 0 leaves registers as they are at the start
// (consumers spill), INDIRECT 1 reads the parameter from memory, at its field self, and therefore the maps too.
#ifndef PREFETCH
#define PREFETCH 1
#endif
#ifndef REDISTRIBUTE
#define REDISTRIBUTE 1
#endif
#ifndef INDIRECT
#define INDIRECT 0
#endif

// The dynamic shared memory of the block. Swizzled tiles need 1024-byte alignment; kernels that use this have no static
// shared memory, so the driver aligns it to 1024, and a kernel traps if it does not.
__device__ __forceinline__ u32 sharedTiles() {
  extern __shared__ __align__(1024) unsigned char hopperShared[];
  const u32 at = sharedAddr(hopperShared);
  if (at & 1023) asm volatile("trap;");
  return at;
}

// ---- mbarriers: a phase completes when `count` arrivals and all expected bytes have come ----
__device__ __forceinline__ void barInit(u32 bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
// Makes barInit visible to the copy engine; a __syncthreads makes it visible to the block.
__device__ __forceinline__ void barInitDone() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
// One arrival that also announces bytes.
__device__ __forceinline__ void barExpect(u32 bar, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void barArrive(u32 bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
// Waits for the end of the phase with this parity: phases count from 0, and before the first one ends, parity 1 passes.
__device__ __forceinline__ void barWait(u32 bar, int parity) {
  int done;
  do
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(bar), "r"(parity)
                 : "memory");
  while (!done);
}
// The same for whole warps, which continue together: the next instruction may require convergence.
__device__ __forceinline__ void barWaitWarp(u32 bar, int parity) {
  barWait(bar, parity);
  __syncwarp();
}

// ---- the copy engine: one thread asks ----
// A box of a tensor of four dimensions at (c0, c1, c2, c3); its bytes, also those outside the tensor, count at the
// barrier.
__device__ __forceinline__ void tmaLoad(u32 dst, const TensorMap* map, int c0, int c1, int c2, int c3, u32 bar) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2,%3,%4,%5}], [%6];" ::
          "r"(dst),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(bar)
      : "memory");
}
// Plain bytes, a multiple of 16, 16-byte aligned on both sides.
__device__ __forceinline__ void bulkLoad(u32 dst, const void* src, int bytes, u32 bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst),
               "l"(src), "r"(bytes), "r"(bar)
               : "memory");
}
// Bytes from shared memory to memory, stored or added as floats; both sides 16-byte aligned. The source must have been
// fenced (proxyFence) if threads wrote it. bulkWaitRead waits until the sources of this thread's committed copies may
// be overwritten, bulkWait until the copies are complete in memory.
__device__ __forceinline__ void bulkStore(float* dst, u32 src, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dst), "r"(src),
               "r"(bytes) : "memory");
}
__device__ __forceinline__ void bulkAdd(float* dst, u32 src, int bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(dst), "r"(src),
               "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void bulkCommit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ __forceinline__ void bulkWaitRead() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ __forceinline__ void bulkWait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
// Orders this thread's accesses to memory with those of the copy engine that it issues next.
__device__ __forceinline__ void proxyFenceGlobal() { asm volatile("fence.proxy.async.global;" ::: "memory"); }
__device__ __forceinline__ void tmaPrefetch(const TensorMap* map) {
  if (PREFETCH) asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// ---- wgmma's frame; the products themselves are in wgmma.cuh ----
// Before the first product, and after any other write to its accumulators or register operands.
__device__ __forceinline__ void mmaFence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void mmaCommit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most N of the youngest groups are in flight.
template <int N> __device__ __forceinline__ void mmaWait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
// Pins registers to this place in the program: reads of results stay after the wait, writes of operands before the
// fence.
template <int N> __device__ __forceinline__ void pin(float (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; i++) asm volatile("" : "+f"(x[i])::"memory");
}
template <int N> __device__ __forceinline__ void pin(u32 (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; i++) asm volatile("" : "+r"(x[i])::"memory");
}

// Makes this thread's writes to shared memory visible to wgmma and the copy engine; a barrier must follow.
__device__ __forceinline__ void proxyFence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Moves registers between warpgroups: executed by whole warpgroups, R a multiple of 8 from 24 to 256.
template <int R> __device__ __forceinline__ void registersDown() {
  if (REDISTRIBUTE) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(R));
}
template <int R> __device__ __forceinline__ void registersUp() {
  if (REDISTRIBUTE) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(R));
}

// The index of the thread's warpgroup, in a form that the compiler knows to be uniform.
__device__ __forceinline__ int warpgroup() { return __shfl_sync(0xffffffffu, (int)(threadIdx.x >> 7), 0); }

// A named barrier without waiting: counts this warp's threads.
__device__ __forceinline__ void barrierArrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Four 8×8 matrices to shared memory; lane l gives the address of row l%8 of matrix l/8, x[i] is the lane's part of
// matrix i.
__device__ __forceinline__ void stmatrix4(u32 at, const u32* x) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(x[0]), "r"(x[1]),
               "r"(x[2]), "r"(x[3])
               : "memory");
}

__device__ __forceinline__ float2 ldShared2(u32 at) {
  float2 x;
  asm volatile("ld.shared.v2.f32 {%0,%1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(at) : "memory");
  return x;
}
#endif
