// The arithmetic of RMSNorm, for the op (rmsnorm.cu) and for products that make their rows by it (left.cuh): one order of adding, so that a row has
// the same bits in both. Squares are added by 8 neighbours in order, then 32 such by warpSum, then up to 32 of those by warpSum: the row's width
// decides, the number of threads takes no part. Fused multiply-adds are spelled out: the compiler has no choice left.
#ifndef NORM
#define NORM
__device__ __forceinline__ float addSquares(float ss, const float* s) {
#pragma unroll
  for (int i = 0; i < 8; i++) ss = fmaf(s[i], s[i], ss);
  return ss;
}
// s + d as it is stored.
__device__ __forceinline__ void addRounded(float* s, const float* d) {
#pragma unroll
  for (int i = 0; i < 8; i++) s[i] = toFloat(toBf16(s[i] + d[i]));
}
__device__ __forceinline__ float normRstd(float squares, int cols, float eps) { return 1.f / sqrtf(squares / (float)cols + eps); }
#endif
