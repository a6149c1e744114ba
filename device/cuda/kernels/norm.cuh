// The arithmetic of RMSNorm, for the op (rmsnorm.cu) and for products that compute their rows with it (left.cuh): one
// order of summation, so that a row has the same bits in both. Squares of 8 adjacent elements are added in order, then
// 32 such sums by warpSum, then up to 32 of those by warpSum: this depends on the row's width, not on the number of
// threads. Fused multiply-adds are explicit, so that the compiler has no choice.
#ifndef NORM
#define NORM
__device__ __forceinline__ float addSquares(float ss, const float* s) {
#pragma unroll
  for (int i = 0; i < 8; i++) ss = fmaf(s[i], s[i], ss);
  return ss;
}
// s + d, rounded as stored.
__device__ __forceinline__ void addRounded(float* s, const float* d) {
#pragma unroll
  for (int i = 0; i < 8; i++) s[i] = toFloat(toBf16(s[i] + d[i]));
}
__device__ __forceinline__ float normRstd(float squares, int cols, float eps) {
  return 1.f / sqrtf(squares / (float)cols + eps);
}
#endif
