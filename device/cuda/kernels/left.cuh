// The source of the rows of x in a product of few rows (matmul_rows.cu). They are in memory, or the product computes
// them itself: for one or two rows RMSNorm is bound by latency, about 2 µs as a separate kernel (H200) and a fraction
// of that here, while the weights are in flight. Every block computes all rows, rounded to bf16 as the op would have
// stored them, in the memory of the warps' sums (matmul_rows.go checks that they fit), so that as many blocks as before
// share an SM; block 0 also writes the op's outputs for later readers. Bound: for each block (2m+1)·k elements from L2
// next to its 16·k of weights.
//
// A source has: ahead, loads that may be issued before the kernel's turn; make, called by all threads after it; at,
// eight elements of a row, 0 beyond the rows and beyond k; and done, before the memory is reused for the sums.
#include "norm.cuh"

enum { VEC_X = 4, EARLY_W = 8, EARLY_GAIN = 16 };
constexpr int PIECE = 64, WARPS = 8;

// Rows that are not 16-byte aligned are read element by element.
__device__ __forceinline__ uint4 fetchRow(const bf16* p, bool there, bool vec) {
  uint4 v = {0, 0, 0, 0};
  if (!there) return v;
  if (vec) return *(const uint4*)p;
  v.x = p[0] | (u32)p[1] << 16, v.y = p[2] | (u32)p[3] << 16, v.z = p[4] | (u32)p[5] << 16,
      v.w = p[6] | (u32)p[7] << 16;
  return v;
}

// Eight elements, 16-byte aligned, as floats, or zeros.
__device__ __forceinline__ void unpack8(float* x, const uint4& v) {
  x[0] = lowBf16(v.x), x[1] = highBf16(v.x), x[2] = lowBf16(v.y), x[3] = highBf16(v.y);
  x[4] = lowBf16(v.z), x[5] = highBf16(v.z), x[6] = lowBf16(v.w), x[7] = highBf16(v.w);
}
__device__ __forceinline__ void take8(float* x, const bf16* p, bool there) { unpack8(x, fetchRow(p, there, true)); }

// Rows in memory.
struct Stored {
  const bf16* x;
  i64 ld;
  int m, k, flags;
  __device__ __forceinline__ void ahead() {}
  __device__ __forceinline__ void make(void*) {}
  __device__ __forceinline__ uint4 at(int row, int k0) const {
    return fetchRow(x + row * ld + k0, k0 < k && row < m, flags & VEC_X);
  }
  __device__ __forceinline__ void done() {}
};

// RMSNorm of up to two rows of up to 1024: s = x + delta, h = s·rstd·gain. A thread has 8 adjacent elements of both
// rows, a warp 256 of them: a line. The rows are `pitch` elements apart (4 times an odd number of 16 bytes, so that a
// quarter of a warp has no bank conflicts), followed by the lines' sums of squares.
struct Normed {
  int m, k;
  bf16* h;
  i64 ldh;
  float* rstd;
  bf16* sum;
  i64 lds;
  const bf16* x;
  i64 ldx;
  const bf16* delta;
  i64 ldd;
  const bf16* gain;
  float eps;
  int flags;

  bf16* left;   // the rows
  uint4 weight; // the thread's part of the gain

  __device__ __forceinline__ int pitch() const { return (k + PIECE - 1) / PIECE * PIECE + 32; }
  __device__ __forceinline__ void takeGain() {
    weight = fetchRow(gain + threadIdx.x * 8, (int)threadIdx.x * 8 < k, true);
  }
  __device__ __forceinline__ void ahead() {
    if (flags & EARLY_GAIN) takeGain();
  }
  // s stays in place until the row's rstd is known.
  __device__ __forceinline__ void addUp(float* squares, int line, int c) {
    float s[2][8], d[2][8];
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const bool there = r < m && c < k;
      take8(s[r], x + r * ldx + c, there);
      take8(d[r], delta + r * ldd + c, there && delta);
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
      if (r >= m) break;
      if (delta) addRounded(s[r], d[r]);
      const float ss = warpSum(addSquares(0.f, s[r]));
      if ((threadIdx.x & 31) == 0) squares[WARPS * r + line] = ss;
      if (c >= k) continue;
      store8(left + r * pitch() + c, s[r], 8, true);
      if (delta && blockIdx.x == 0) store8(sum + r * lds + c, s[r], 8, true);
    }
  }
  __device__ __forceinline__ void scale(const float* squares, int lines, int c) {
    const int lane = threadIdx.x & 31;
    float g[8];
    unpack8(g, weight);
    for (int r = 0; r < m; r++) {
      const float inv = normRstd(warpSum(lane < lines ? squares[WARPS * r + lane] : 0.f), k, eps);
      if (rstd && blockIdx.x == 0 && threadIdx.x == 0) rstd[r] = inv;
      if (c >= k) continue;
      float s[8];
      take8(s, left + r * pitch() + c, true);
#pragma unroll
      for (int i = 0; i < 8; i++) s[i] = s[i] * inv * g[i];
      store8(left + r * pitch() + c, s, 8, true);
      if (blockIdx.x == 0) store8(h + r * ldh + c, s, 8, true);
    }
  }
  __device__ __forceinline__ void make(void* shared) {
    left = (bf16*)shared;
    float* squares = (float*)(left + m * pitch());
    const int line = threadIdx.x >> 5, lines = (k + 255) / 256, c = threadIdx.x * 8;
    if (!(flags & EARLY_GAIN)) takeGain();
    if (line < lines) addUp(squares, line, c);
    __syncthreads();
    if (line < lines) scale(squares, lines, c);
    __syncthreads();
  }
  __device__ __forceinline__ uint4 at(int row, int k0) const {
    uint4 v = {0, 0, 0, 0};
    if (row < m && k0 < k) v = *(const uint4*)(left + row * pitch() + k0);
    return v;
  }
  __device__ __forceinline__ void done() { __syncthreads(); }
};
