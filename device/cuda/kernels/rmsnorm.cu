// RMSNorm: s = x + delta (rounded to bf16 and stored as sum), rstd = 1/√(mean s² + eps), y = s·rstd·w. A block owns a
// row and holds it in registers, K pieces of 8 adjacent elements per thread. Bound: one read of x and delta, one write
// of sum and y. The few rows of decoding are bound by latency, so w, which comes from memory, is loaded before the
// kernel's turn if the launcher allows it, and otherwise together with x. The sum of squares is the fixed tree of
// norm.cuh.
#include "early.cuh"
#include "norm.cuh"

template <int K>
__device__ __forceinline__ void forward(bf16* y, i64 ldy, float* rstd, bf16* sum, i64 lds, const bf16* x, i64 ldx,
                                        const bf16* delta, i64 ldd, const bf16* w, int cols, float eps, int vec,
                                        int early) {
  __shared__ float room[32];
  beginNext();
  i64 r = blockIdx.x;
  float s[K][8], g[K][8], ss = 0.f;
  if (early)
#pragma unroll
    for (int k = 0; k < K; k++)
      load8(g[k], w + (k * blockDim.x + threadIdx.x) * 8, cols - (int)(k * blockDim.x + threadIdx.x) * 8, vec);
  waitEarlier();
#pragma unroll
  for (int k = 0; k < K; k++) {
    int c = (k * blockDim.x + threadIdx.x) * 8, n = cols - c;
    float d[8] = {};
    load8(s[k], x + r * ldx + c, n, vec);
    if (!early) load8(g[k], w + c, n, vec);
    if (delta) {
      load8(d, delta + r * ldd + c, n, vec);
      addRounded(s[k], d);
      store8(sum + r * lds + c, s[k], n, vec);
    }
    ss = addSquares(ss, s[k]);
  }
  float inv = normRstd(blockSum(ss, room), cols, eps);
  if (rstd && threadIdx.x == 0) rstd[r] = inv;
#pragma unroll
  for (int k = 0; k < K; k++) {
    int c = (k * blockDim.x + threadIdx.x) * 8;
#pragma unroll
    for (int i = 0; i < 8; i++) g[k][i] = s[k][i] * inv * g[k][i];
    store8(y + r * ldy + c, g[k], cols - c, vec);
  }
}

extern "C" __global__ void __launch_bounds__(1024)
rmsnorm(bf16* y, i64 ldy, float* rstd, bf16* sum, i64 lds, const bf16* x, i64 ldx, const bf16* delta, i64 ldd,
        const bf16* w, int cols, float eps, int vec, int early) {
  forward<1>(y, ldy, rstd, sum, lds, x, ldx, delta, ldd, w, cols, eps, vec, early);
}
// Rows wider than 8192.
extern "C" __global__ void __launch_bounds__(1024)
rmsnorm_wide(bf16* y, i64 ldy, float* rstd, bf16* sum, i64 lds, const bf16* x, i64 ldx, const bf16* delta, i64 ldd,
             const bf16* w, int cols, float eps, int vec, int early) {
  forward<4>(y, ldy, rstd, sum, lds, x, ldx, delta, ldd, w, cols, eps, vec, early);
}

#include "columns.cuh"

// RMSNormBackward: x̂ = x·rstd, g = dy·w; dx += rstd·(g − x̂·mean(g·x̂)); dw += Σ_n dy·x̂.
// A block owns `per` rows, two at a time, and keeps its columns of w and of dw's part in registers (K pieces of 8 a
// thread); rmsnorm_finish adds the parts in order. Bound by reading dy, x and dx and writing dx, once each. So that
// enough bytes are in flight, rows wait for their mean in memory format, 4 registers for 8 numbers, and are unpacked
// twice.
// Sums of two numbers over the block, in every thread. Two calls need no barrier between them.
__device__ __forceinline__ void blockSum2(float (&x)[2], float (*room)[32]) {
  int warps = blockDim.x >> 5, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  x[0] = warpSum(x[0]), x[1] = warpSum(x[1]);
  __syncthreads();
  if (lane == 0) room[0][warp] = x[0], room[1][warp] = x[1];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 2; i++) x[i] = warpSum(lane < warps ? room[i][lane] : 0.f);
}

template <int K>
__device__ __forceinline__ void backward(bf16* dx, i64 lddx, float* part, const bf16* dy, i64 ldy,
                                         const bf16* x, i64 ldx, const bf16* w, const float* rstd, i64 rows, int cols,
                                         int per, int vec) {
  __shared__ float room[2][32];
  float weight[K][8], dw[K][8];
#pragma unroll
  for (int k = 0; k < K; k++) {
    int c = (k * blockDim.x + threadIdx.x) * 8;
    load8(weight[k], w + c, cols - c, vec);
#pragma unroll
    for (int i = 0; i < 8; i++) dw[k][i] = 0.f;
  }
  i64 to = (i64)(blockIdx.x + 1) * per < rows ? (i64)(blockIdx.x + 1) * per : rows;
  for (i64 r = (i64)blockIdx.x * per; r < to; r += 2) {
    const int both = r + 1 < to ? 2 : 1;
    Raw rx[2][K], rdy[2][K], rdx[2][K];
    float inv[2], dot[2] = {};
#pragma unroll
    for (int b = 0; b < 2; b++) {
      const i64 n = r + (b < both ? b : 0);
      inv[b] = rstd[n];
#pragma unroll
      for (int k = 0; k < K; k++) {
        int c = (k * blockDim.x + threadIdx.x) * 8;
        rx[b][k] = loadRaw(x + n * ldx + c, cols - c, vec);
        rdy[b][k] = loadRaw(dy + n * ldy + c, cols - c, vec);
        rdx[b][k] = loadRaw(dx + n * lddx + c, cols - c, vec);
      }
    }
#pragma unroll
    for (int b = 0; b < 2; b++) {
      if (b >= both) break;
#pragma unroll
      for (int k = 0; k < K; k++)
#pragma unroll
        for (int i = 0; i < 8; i++) {
          const float xhat = element(rx[b][k], i) * inv[b], g = element(rdy[b][k], i);
          dw[k][i] += g * xhat;
          dot[b] += g * weight[k][i] * xhat;
        }
    }
    blockSum2(dot, room);
#pragma unroll
    for (int b = 0; b < 2; b++) {
      if (b >= both) break;
      const float mean = dot[b] / (float)cols;
#pragma unroll
      for (int k = 0; k < K; k++) {
        int c = (k * blockDim.x + threadIdx.x) * 8;
        float d[8];
#pragma unroll
        for (int i = 0; i < 8; i++)
          d[i] = element(rdx[b][k], i) +
              inv[b] * (element(rdy[b][k], i) * weight[k][i] - element(rx[b][k], i) * inv[b] * mean);
        store8(dx + (r + b) * lddx + c, d, cols - c, vec);
      }
    }
  }
#pragma unroll
  for (int k = 0; k < K; k++) {
    int c = (k * blockDim.x + threadIdx.x) * 8;
    store8(part + (i64)blockIdx.x * cols + c, dw[k], cols - c, vec && cols % 4 == 0);
  }
}

extern "C" __global__ void __launch_bounds__(512, 2)
rmsnorm_backward(bf16* dx, i64 lddx, float* part, const bf16* dy, i64 ldy, const bf16* x, i64 ldx, const bf16* w,
                 const float* rstd, i64 rows, int cols, int per, int vec) {
  backward<1>(dx, lddx, part, dy, ldy, x, ldx, w, rstd, rows, cols, per, vec);
}
// Rows wider than 4096: registers do not suffice, and spills stay in cache.
extern "C" __global__ void __launch_bounds__(1024)
rmsnorm_backward_wide(bf16* dx, i64 lddx, float* part, const bf16* dy, i64 ldy, const bf16* x, i64 ldx, const bf16* w,
                      const float* rstd, i64 rows, int cols, int per, int vec) {
  backward<4>(dx, lddx, part, dy, ldy, x, ldx, w, rstd, rows, cols, per, vec);
}

extern "C" __global__ void __launch_bounds__(1024) rmsnorm_finish(float* dw, const float* part, int parts, int cols) {
  addColumns(dw, part, parts, cols);
}
