// The destination of the columns of a product of few rows (matmul_rows.cu, matmul_staged.cu), which saves the
// small kernel after it:
//	Plain   into c, optionally through Sigmoid (V2's λ)
//	Glu     gate and up projections: into c, and through SwiGLU into a
//	Turned  queries, keys and values: through Rope into c and the cache
// A block's 16 columns are a tile of whole pairs: 16 adjacent ones, or 8 and the 8 that are half a head or half of c
// further. A row's angle and destination are loaded before the kernel's turn.
//
// A target has: tile, its columns; ahead, loads for what the thread will put; and put, called by all threads of a warp,
// for one element. Turned has one tile of up to 8 rows per block, element i of row r put by thread 16·r + i. Targets of
// several tiles have skip: how many columns after the block's first its r-th is, r a multiple of 8; and putFour, for
// four adjacent columns from the i-th on, i a multiple of 4, of which `left` exist.
#include "attn_page.cuh"
#include "gate.cuh"
#include "rope.cuh"

enum { OUT_FLOAT = 1, ACCUMULATE = 2, SIGMOID = 32 };

// Columns at…at+7 and at+gap+8…at+gap+15.
struct Tile {
  int at, gap;
  __device__ __forceinline__ int column(int i) const { return at + i + (i < 8 ? 0 : gap); }
};

// Four elements, at an address of whole groups of four or at any.
__device__ __forceinline__ bool wide(const bf16* p) { return ((u64)p & 7) == 0; }
__device__ __forceinline__ void storeFour(bf16* to, const float* v) {
  *(uint2*)to = {packBf16(v[0], v[1]), packBf16(v[2], v[3])};
}
__device__ __forceinline__ void storeAny(bf16* to, const float* v) {
  if (wide(to)) return storeFour(to, v);
#pragma unroll
  for (int e = 0; e < 4; e++) to[e] = toBf16(v[e]);
}

struct Plain {
  void* c;
  i64 ldc;
  int flags;
  __device__ __forceinline__ void ahead(int) {}
  __device__ __forceinline__ Tile tile(int n0) const { return {n0, 0}; }
  __device__ __forceinline__ int skip(int r) const { return r; }
  __device__ __forceinline__ void put(float v, int row, int n0, int i, bool there) {
    if (!there) return;
    const i64 at = row * ldc + n0 + i;
    if (flags & SIGMOID) v = sigmoid(v); // of fp32 that is not accumulated
    if (flags & OUT_FLOAT) ((float*)c)[at] = flags & ACCUMULATE ? ((float*)c)[at] + v : v;
    else ((bf16*)c)[at] = toBf16(flags & ACCUMULATE ? toFloat(((bf16*)c)[at]) + v : v);
  }
  __device__ __forceinline__ void putFour(const float* v, int row, int n0, int i, int left) {
    bf16* to = (bf16*)c + row * ldc + n0 + i;
    if (left >= 4 && !(flags & (OUT_FLOAT | ACCUMULATE)) && wide(to)) return storeFour(to, v);
#pragma unroll
    for (int e = 0; e < 4; e++) put(v[e], row, n0, i + e, e < left);
  }
};

// c = [g | u], and also a = g·σ(g)·u: a tile is 8 columns of g and their partners.
struct Glu {
  bf16* c;
  i64 ldc;
  bf16* a;
  i64 lda;
  int inner; // columns of a
  __device__ __forceinline__ void ahead(int) {}
  __device__ __forceinline__ Tile tile(int n0) const { return {n0 / 2, inner - 8}; }
  __device__ __forceinline__ int skip(int r) const { return r / 16 * 8 + (r % 16 ? inner : 0); }
  __device__ __forceinline__ void put(float v, int row, int n0, int i, bool there) {
    const float x = toFloat(toBf16(v)), u = __shfl_xor_sync(0xffffffffu, x, 8);
    if (!there) return;
    const int column = tile(n0).column(i);
    c[row * ldc + column] = toBf16(x);
    if (i < 8) a[row * lda + column] = toBf16(gated(x, u));
  }
  // Four columns of up are in the lane two after that of their four of gate.
  __device__ __forceinline__ void putFour(const float* v, int row, int n0, int i, int left) {
    float x[4], y[4];
#pragma unroll
    for (int e = 0; e < 4; e++) {
      x[e] = toFloat(toBf16(v[e]));
      y[e] = gated(x[e], __shfl_xor_sync(0xffffffffu, x[e], 2));
    }
    if (left <= 0) return;
    const int column = n0 / 2 + skip(i & ~7) + (i & 7);
    storeAny(c + row * ldc + column, x);
    if (!(i & 8)) storeAny(a + row * lda + column, y);
  }
};

// c = [q | k | v]: q and k, columns up to v0, are rotated by the angles of their rows; k (at and after k0) and v also
// go to the cache.
struct Turned {
  bf16* c;
  i64 ldc;
  const float* table;
  i64 ldt;
  const int* angle;
  int positions;
  float sign;
  int dim, pairs, k0, v0;
  bf16* K;
  i64 ldK;
  bf16* V;
  i64 ldV;
  const int *slot, *pos;
  Pages cache;
  int* fault;
  int m;

  // For the thread's element, known before the kernel's turn: its row of the cache, its angle, and whether one of them
  // is missing.
  int page;
  bool turns, wrong;
  float cosine, sine;

  __device__ __forceinline__ Tile tile(int n0) const {
    if (pairs || n0 >= v0) return {n0, 0};
    return {n0 / dim * dim + n0 % dim / 2, dim / 2 - 8};
  }
  __device__ __forceinline__ bool known(int p) const { return p >= 0 && p < positions; }
  __device__ __forceinline__ void ahead(int n0) {
    const int row = threadIdx.x / 16, column = tile(n0).column(threadIdx.x % 16);
    if (row >= m) return;
    if (column >= k0) page = pageAt(cache, slot[row], pos[row]);
    const int p = angle[row], e = column % dim, j = pairs ? e / 2 : e % (dim / 2);
    wrong = !known(p) || (column >= k0 && page < 0);
    turns = known(p) && n0 < v0;
    if (turns) cosine = table[p * ldt + j], sine = sign * table[p * ldt + dim / 2 + j];
  }
  // Rope's fault comes first, as it would from two ops, even if only the cache's belongs to this block.
  __device__ __forceinline__ void tell(int row) {
    if (!known(angle[row])) report(fault, FAULT_ROPE, angle[row], positions);
    else noPage(cache, pos[row], fault);
  }
  __device__ __forceinline__ void put(float v, int row, int n0, int i, bool there) {
    const float x = toFloat(toBf16(v)), other = __shfl_xor_sync(0xffffffffu, x, pairs ? 1 : 8);
    if (!there) return;
    if (wrong) tell(row);
    const int column = tile(n0).column(i);
    float y = x;
    if (turns) {
      const bool second = pairs ? i & 1 : i >= 8;
      float a = second ? other : x, b = second ? x : other;
      rotate(a, b, cosine, sine);
      y = second ? b : a;
    }
    c[row * ldc + column] = toBf16(y);
    if (page < 0) return;
    if (column < v0) K[page * ldK + column - k0] = toBf16(y);
    else V[page * ldV + column - v0] = toBf16(y);
  }
};
