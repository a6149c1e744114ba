// The bytes of an int8 cache, for CacheWrite (cache_bytes.cu) and its fusion with Rope (rope_bytes.cu).
// A head's largest magnitude is that of the bits, over LANES lanes: with a NaN it is one, which fmaxf would hide, and
// so is the head's scale.
__device__ __forceinline__ int magnitude(float x) { return __float_as_int(fabsf(x)); }
template <int LANES> __device__ __forceinline__ float topOf(int mine) {
#pragma unroll
  for (int o = LANES / 2; o > 0; o >>= 1) mine = max(mine, __shfl_xor_sync(0xffffffffu, mine, o));
  return __int_as_float(mine);
}
// What an element of a head is multiplied by, from the head's largest magnitude, before it is rounded.
__device__ __forceinline__ float byteFactor(float top) { return top > 0.f ? 127.f / top : 0.f; }
// 1.5·2^23 + x rounds to nearest and leaves the integer in the low bits. The product is rounded first, so that no fused
// multiply-add decides ties differently.
__device__ __forceinline__ u32 byteOf(float x, float factor) {
  return (u32)(128 + (int)(__float_as_uint(__fmul_rn(x, factor) + 12582912.f) - 0x4b400000u));
}
