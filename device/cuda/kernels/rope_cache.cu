// Rope and CacheWrite of its result in one kernel: x [rows, heads·dim] is rotated in place; its columns at and after k0
// are the keys, which go to (slot[n], pos[n]) of the cache as stored, and so do the values, which are in another
// tensor. A thread has 8 adjacent elements (4 pairs, or the first halves of 8 and 8 more half a head further) of x, or
// 8 of v. A few rows are all latency, which one kernel halves, and a prompt's keys and values are read once instead of
// twice. The row's destination and its angle's address are known before the kernel's turn.
#include "attn_page.cuh"
#include "early.cuh"
#include "rope.cuh"

template <bool INTERLEAVED>
__device__ __forceinline__ void turnAndKeep(bf16* x, i64 ldx, const float* table, i64 ldt, const int* angle,
                                            int rows, int heads, int dim, int positions, float sign, bf16* K, i64 ldK,
                                            int k0, bf16* V, i64 ldV, const bf16* v, i64 ldv, int vw, const int* slot,
                                            const int* pos, const Pages& cache, int* fault) {
  beginNext();
  // Threads of a head, of a row.
  const int half = dim / 2, each = half / (INTERLEAVED ? 4 : 8), turns = heads * each, per = turns + vw / 8;
  const int at = blockIdx.x * blockDim.x + threadIdx.x, r = at / per, unit = at % per;
  if (r >= rows) {
    waitEarlier();
    return;
  }
  const int p = angle[r], row = pageAt(cache, slot[r], pos[r]);
  const bool known = p >= 0 && p < positions;
  waitEarlier();
  if (!known) report(fault, FAULT_ROPE, p, positions); // by all threads, and first, as Rope would report it
  if (row < 0) noPage(cache, pos[r], fault);
  if (unit >= turns) {
    const int c = (unit - turns) * 8;
    if (row >= 0) *(uint4*)(V + row * ldV + c) = *(const uint4*)(v + r * ldv + c);
    return;
  }
  const int j = unit % each * (INTERLEAVED ? 4 : 8), c = unit / each * dim + (INTERLEAVED ? 2 * j : j);
  bf16 *to = x + r * ldx + c, *key = row >= 0 && c >= k0 ? K + row * ldK + c - k0 : 0;
  float a[8], b[8];
  load8(a, to, 8, true);
  if (!INTERLEAVED) load8(b, to + half, 8, true);
  if (known) {
    const float *cosine = table + p * ldt + j, *sine = cosine + half;
    if (INTERLEAVED) rotatePairs(a, cosine, sine, sign);
    else rotateHalves(a, b, cosine, sine, sign);
    store8(to, a, 8, true);
    if (!INTERLEAVED) store8(to + half, b, 8, true);
  }
  if (key) store8(key, a, 8, true);
  if (key && !INTERLEAVED) store8(key + half, b, 8, true);
}

#define ROPE_CACHE(name, INTERLEAVED)                                                                                  \
  extern "C" __global__ void __launch_bounds__(128)                                                                    \
  name(bf16* x, i64 ldx, const float* table, i64 ldt, const int* angle, int rows, int heads, int dim, int positions,   \
       float sign, bf16* K, i64 ldK, int k0, bf16* V, i64 ldV, const bf16* v, i64 ldv, int vw, const int* slot,        \
       const int* pos, const int* pages, i64 ldp, int slots, int perSlot, int size, int lines, int* fault) {           \
    turnAndKeep<INTERLEAVED>(x, ldx, table, ldt, angle, rows, heads, dim, positions, sign, K, ldK, k0, V, ldV, v, ldv, \
                             vw, slot, pos, {pages, ldp, slots, perSlot, size, lines}, fault);                         \
  }
ROPE_CACHE(rope_cache_half, false)
ROPE_CACHE(rope_cache_pairs, true)
