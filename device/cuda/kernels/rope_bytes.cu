// Rope of some rows and CacheWrite of its result into an int8 cache in one kernel, as rope_cache.cu for bf16: x [rows,
// heads·dim] is rotated in place; its heads at and after k0 are the keys, which go to (slot[n], pos[n]) of the cache as
// stored, rounded to bytes (bytes.cuh), and so do the values. 16 lanes take a head of a row, 8 adjacent elements each
// or, if pairs are half a head apart or a value has more than 128 columns, twice 8. The same bits as the two kernels.
#include "attn_page.cuh"
#include "bytes.cuh"
#include "early.cuh"
#include "rope.cuh"

// A lane's elements of a head: 8 at c[0] and 8 at c[1], as far as they are there.
struct Part {
  float x[2][8];
  int c[2];
  bool there[2];
  __device__ __forceinline__ void load(const bf16* from) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
      for (int e = 0; e < 8; e++) x[i][e] = 0.f;
      if (there[i]) load8(x[i], from + c[i], 8, true);
    }
  }
  // As a store and a load would leave them.
  __device__ __forceinline__ void store(bf16* to) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      if (there[i]) store8(to + c[i], x[i], 8, true);
#pragma unroll
      for (int e = 0; e < 8; e++) x[i][e] = toFloat(toBf16(x[i][e]));
    }
  }
  // The head's largest magnitude, by 16 lanes.
  __device__ __forceinline__ float top() const {
    int mine = 0;
#pragma unroll
    for (int i = 0; i < 16; i++) mine = max(mine, magnitude(x[i / 8][i % 8]));
    return topOf<16>(mine);
  }
  __device__ __forceinline__ void keep(unsigned char* to, float factor) const {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      u32 y[2] = {0, 0};
#pragma unroll
      for (int e = 0; e < 8; e++) y[e / 4] |= byteOf(x[i][e], factor) << (e % 4 * 8);
      if (there[i]) *(uint2*)(to + c[i]) = {y[0], y[1]};
    }
  }
};

template <bool INTERLEAVED>
__device__ __forceinline__ void turnAndKeep(bf16* x, i64 ldx, const float* table, i64 ldt, const int* angle, int rows,
                                            int heads, int dim, int positions, float sign, unsigned char* K, i64 ldK,
                                            int k0, unsigned char* V, i64 ldV, bf16* v, i64 ldv, int vheads, int dv,
                                            const int* slot, const int* pos, const Pages& cache, int* fault) {
  beginNext();
  const int item = blockIdx.x * 8 + threadIdx.x / 16, lane = threadIdx.x & 15, per = heads + vheads, r = item / per,
      h = item % per;
  const bool in = r < rows, value = h >= heads; // lanes of items beyond the last take part in the maxima
  const int p = in ? angle[r] : 0, row = in ? pageAt(cache, slot[r], pos[r]) : -1;
  const bool known = p >= 0 && p < positions;
  waitEarlier();
  if (in && !known) report(fault, FAULT_ROPE, p, positions);
  if (in && row < 0) noPage(cache, pos[r], fault);
  Part a;
  a.c[0] = 8 * lane, a.c[1] = value ? 128 + 8 * lane : dim / 2 + 8 * lane;
  a.there[0] = in && a.c[0] < (value ? dv : INTERLEAVED ? dim : dim / 2);
  a.there[1] = in && (value ? a.c[1] < dv : !INTERLEAVED && a.there[0]);
  bf16* at = value ? v + r * ldv + (i64)(h - heads) * dv : x + r * ldx + (i64)h * dim;
  a.load(at);
  if (!value && known && a.there[0]) {
    const float *cosine = table + p * ldt + (INTERLEAVED ? 4 : 8) * lane, *sine = cosine + dim / 2;
    if (INTERLEAVED) rotatePairs(a.x[0], cosine, sine, sign);
    else rotateHalves(a.x[0], a.x[1], cosine, sine, sign);
    a.store(at);
  }
  const float top = a.top();
  if (!in || row < 0 || (!value && h < k0)) return;
  const int keys = heads - k0, head = value ? h - heads : h - k0, width = value ? dv : dim, all = value ? vheads : keys;
  unsigned char* to = value ? V + row * ldV : K + row * ldK;
  a.keep(to + head * width, byteFactor(top));
  if (lane == 0) ((float*)(to + (all * width + 15) / 16 * 16))[head] = top / 127.f;
}

#define ROPE_BYTES(name, INTERLEAVED)                                                                                  \
  extern "C" __global__ void __launch_bounds__(128)                                                                    \
  name(bf16* x, i64 ldx, const float* table, i64 ldt, const int* angle, int rows, int heads, int dim, int positions,   \
       float sign, unsigned char* K, i64 ldK, int k0, unsigned char* V, i64 ldV, bf16* v, i64 ldv, int vheads, int dv, \
       const int* slot, const int* pos, const int* pages, i64 ldp, int slots, int perSlot, int size, int lines,        \
       int* fault) {                                                                                                   \
    turnAndKeep<INTERLEAVED>(x, ldx, table, ldt, angle, rows, heads, dim, positions, sign, K, ldK, k0, V, ldV, v, ldv, \
                             vheads, dv, slot, pos, {pages, ldp, slots, perSlot, size, lines}, fault);                 \
  }
ROPE_BYTES(rope_bytes_half, false)
ROPE_BYTES(rope_bytes_pairs, true)
