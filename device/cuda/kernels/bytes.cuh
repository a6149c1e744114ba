// The bytes of an int8 cache, for CacheWrite (cache_bytes.cu) and its fusion with Rope (rope_bytes.cu).
// What an element of a head is multiplied by, from the head's largest magnitude, before it is rounded.
__device__ __forceinline__ float byteFactor(float top) { return top > 0.f ? 127.f / top : 0.f; }
// 1.5·2^23 + x rounds to nearest and leaves the integer in the low bits. The product is rounded first, so that no fused
// multiply-add decides ties differently.
__device__ __forceinline__ u32 byteOf(float x, float factor) {
  return (u32)(128 + (int)(__float_as_uint(__fmul_rn(x, factor) + 12582912.f) - 0x4b400000u));
}
