// RMSNorm both ways for many rows of up to 1536 columns, a multiple of 8: a warp owns a row, so that no barrier stands
// between a row's loads and its stores, and keeps its part of w in registers over all its rows. Lane l holds PIECES
// pieces of 8 adjacent elements, number 32·k + l, the same elements and the same order of summation as a thread of
// rmsnorm.cu. Bound: as there, bytes.
#include "norm.cuh"

constexpr int WARPS = 4; // per block

// Whether piece k of the lane exists; c is its first column.
__device__ __forceinline__ bool pieceAt(int& c, int k, int cols) {
  c = (32 * k + (int)(threadIdx.x & 31)) * 8;
  return c < cols;
}

__device__ __forceinline__ void loadPieces(Raw (&x)[PIECES], const bf16* row, int cols) {
#pragma unroll
  for (int k = 0; k < PIECES; k++) {
    int c;
    x[k] = {};
    if (pieceAt(c, k, cols)) x[k] = loadRaw(row + c, 8, true);
  }
}

// The sum over the row of one number per piece, in every lane: 32 pieces by warpSum, then those sums by warpSum.
__device__ __forceinline__ float rowSum(const float (&x)[PIECES]) {
  const int lane = threadIdx.x & 31;
  float sums = 0.f;
#pragma unroll
  for (int k = 0; k < PIECES; k++) {
    const float s = warpSum(x[k]);
    if (lane == k) sums = s;
  }
  return warpSum(sums);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, PIECES <= 3 ? 8 : PIECES == 4 ? 6 : 4)
    rmsnorm_warps(bf16* y, i64 ldy, float* rstd, bf16* sum, i64 lds, const bf16* x, i64 ldx, const bf16* delta, i64 ldd,
                  const bf16* w, int rows, int cols, float eps) {
  Raw weight[PIECES];
  loadPieces(weight, w, cols);
  for (int r = blockIdx.x * WARPS + (threadIdx.x >> 5); r < rows; r += gridDim.x * WARPS) {
    Raw rx[PIECES], rd[PIECES];
    loadPieces(rx, x + r * ldx, cols);
    if (delta) loadPieces(rd, delta + r * ldd, cols);
    float squares[PIECES];
#pragma unroll
    for (int k = 0; k < PIECES; k++) {
      float s[8];
      int c;
#pragma unroll
      for (int i = 0; i < 8; i++) s[i] = element(rx[k], i);
      if (delta) {
        float d[8];
#pragma unroll
        for (int i = 0; i < 8; i++) d[i] = element(rd[k], i);
        addRounded(s, d);
#pragma unroll
        for (int i = 0; i < 4; i++) rx[k].x[i] = packBf16(s[2 * i], s[2 * i + 1]);
        if (pieceAt(c, k, cols)) storeRaw(sum + r * lds + c, rx[k], 8, true);
      }
      squares[k] = addSquares(0.f, s);
    }
    const float inv = normRstd(rowSum(squares), cols, eps);
    if (rstd && (threadIdx.x & 31) == 0) rstd[r] = inv;
#pragma unroll
    for (int k = 0; k < PIECES; k++) {
      float s[8];
      int c;
#pragma unroll
      for (int i = 0; i < 8; i++) s[i] = element(rx[k], i) * inv * element(weight[k], i);
      if (pieceAt(c, k, cols)) store8(y + r * ldy + c, s, 8, true);
    }
  }
}

// x̂ = x·rstd, g = dy·w; dx += rstd·(g − x̂·mean(g·x̂)); part[block] = Σ dy·x̂ over the block's rows, which
// rmsnorm_finish adds.
extern "C" __global__ void __launch_bounds__(32 * WARPS, PIECES == 1 ? 8 : PIECES == 2 ? 5 : PIECES == 3 ? 4
                                             : PIECES == 4 ? 3 : 2)
    rmsnorm_backward_warps(bf16* dx, i64 lddx, float* part, const bf16* dy, i64 ldy, const bf16* x, i64 ldx,
                           const bf16* w, const float* rstd, int rows, int cols) {
  __shared__ float room[PIECES * 256];
  const int warp = threadIdx.x >> 5;
  Raw weight[PIECES];
  loadPieces(weight, w, cols);
  float dw[PIECES][8] = {};
  for (int r = blockIdx.x * WARPS + warp; r < rows; r += gridDim.x * WARPS) {
    Raw rx[PIECES], rdy[PIECES], rdx[PIECES];
    const float inv = rstd[r];
    loadPieces(rx, x + r * ldx, cols);
    loadPieces(rdy, dy + r * ldy, cols);
    loadPieces(rdx, dx + r * lddx, cols);
    float dot[PIECES] = {};
#pragma unroll
    for (int k = 0; k < PIECES; k++)
#pragma unroll
      for (int i = 0; i < 8; i++) {
        const float xhat = element(rx[k], i) * inv, g = element(rdy[k], i);
        dw[k][i] += g * xhat;
        dot[k] += g * element(weight[k], i) * xhat;
      }
    const float mean = rowSum(dot) / (float)cols;
#pragma unroll
    for (int k = 0; k < PIECES; k++) {
      float d[8];
      int c;
#pragma unroll
      for (int i = 0; i < 8; i++)
        d[i] = element(rdx[k], i) + inv * (element(rdy[k], i) * element(weight[k], i) - element(rx[k], i) * inv * mean);
      if (pieceAt(c, k, cols)) store8(dx + r * lddx + c, d, 8, true);
    }
  }
  for (int n = 0; n < WARPS; n++) { // one warp after the other: a fixed order
    if (warp == n) {
#pragma unroll
      for (int k = 0; k < PIECES; k++) {
        int c;
        pieceAt(c, k, cols);
#pragma unroll
        for (int i = 0; i < 8; i++) room[c + i] = n == 0 ? dw[k][i] : room[c + i] + dw[k][i];
      }
    }
    __syncthreads();
  }
  for (int c = threadIdx.x; c < cols; c += 32 * WARPS) part[(i64)blockIdx.x * cols + c] = room[c];
}
