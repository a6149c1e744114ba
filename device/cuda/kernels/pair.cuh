// Hopper's clusters of two blocks. Each may write to the other's shared memory once both have begun and until one of them
// ends: a pairSync before and after.
#ifndef __CUDACC_RTC__
#define __cluster_dims__(...)
#endif
__device__ __forceinline__ int pairRank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// The address of the same place in the other block, for the functions below.
__device__ __forceinline__ u32 peerOf(u32 at) {
  u32 there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(pairRank() ^ 1));
  return there;
}
__device__ __forceinline__ void stPeer(u32 at, u32 x) {
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(at), "r"(x) : "memory");
}
__device__ __forceinline__ u32 ldPeer(u32 at) {
  u32 x;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
  return x;
}
__device__ __forceinline__ void barArrivePeer(u32 bar) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory");
}
// barWaitWarp at a barrier of this block at which the other arrives.
__device__ __forceinline__ void barWaitPeer(u32 bar, int parity) {
  int done;
  do
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(bar), "r"(parity)
                 : "memory");
  while (!done);
  __syncwarp();
}
// proxyFence for writes to the other block's shared memory.
__device__ __forceinline__ void proxyFencePeer() { asm volatile("fence.proxy.async.shared::cluster;" ::: "memory"); }
__device__ __forceinline__ void pairSync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
