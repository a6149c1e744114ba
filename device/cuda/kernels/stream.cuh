// Sixteen bytes that are read once by one thread, such as weights: they bypass L1.
#ifndef STREAM
#define STREAM
__device__ __forceinline__ uint4 stream16(const void* p) {
#ifdef __CUDA_ARCH__
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z),
               "=r"(v.w) : "l"(p));
  return v;
#else
  return *(const uint4*)p;
#endif
}
#endif
