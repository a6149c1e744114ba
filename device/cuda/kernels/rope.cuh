// The arithmetic of Rope, for the op (rope.cu) and for its fusion with CacheWrite (rope_cache.cu). Fused multiply-adds
// are explicit, so that both give the same bits.
#ifndef ROTATE
#define ROTATE
// (a, b) → (a·c − b·s, a·s + b·c).
__device__ __forceinline__ void rotate(float& a, float& b, float c, float s) {
  const float t = a;
  a = fmaf(t, c, -(b * s));
  b = fmaf(t, s, b * c);
}
// 4 adjacent pairs.
__device__ __forceinline__ void rotatePairs(float* a, const float* cosine, const float* sine, float sign) {
#pragma unroll
  for (int i = 0; i < 4; i++) rotate(a[2 * i], a[2 * i + 1], cosine[i], sign * sine[i]);
}
// 8 pairs, a half head apart.
__device__ __forceinline__ void rotateHalves(float* a, float* b, const float* cosine, const float* sine, float sign) {
#pragma unroll
  for (int i = 0; i < 8; i++) rotate(a[i], b[i], cosine[i], sign * sine[i]);
}
#endif
