// RMSNorm: s = x + delta (rounded to bf16 and stored as sum), rstd = 1/√(mean s² + eps), y = s·rstd·w.
// A block owns a row and holds it in registers, 8 neighbours a thread and up to 4 such pieces: one read of x and delta, one
// write of sum and y, which is the bound. The sum of squares is a fixed tree.
extern "C" __global__ void __launch_bounds__(1024) rmsnorm(bf16* y, i64 ldy, float* rstd, bf16* sum, i64 lds, const bf16* x, i64 ldx, const bf16* delta,
                                                           i64 ldd, const bf16* w, int cols, float eps, int vec) {
  __shared__ float room[32];
  i64 r = blockIdx.x;
  float s[4][8], ss = 0.f;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    int c = (k * blockDim.x + threadIdx.x) * 8, n = cols - c;
    if (n <= 0) break;
    load8(s[k], x + r * ldx + c, n, vec);
    if (delta) {
      float d[8];
      load8(d, delta + r * ldd + c, n, vec);
#pragma unroll
      for (int i = 0; i < 8; i++) s[k][i] = toFloat(toBf16(s[k][i] + d[i]));
      store8(sum + r * lds + c, s[k], n, vec);
    }
#pragma unroll
    for (int i = 0; i < 8; i++) ss += s[k][i] * s[k][i];
  }
  float inv = 1.f / sqrtf(blockSum(ss, room) / (float)cols + eps);
  if (rstd && threadIdx.x == 0) rstd[r] = inv;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    int c = (k * blockDim.x + threadIdx.x) * 8, n = cols - c;
    if (n <= 0) break;
    float g[8];
    load8(g, w + c, n, vec);
#pragma unroll
    for (int i = 0; i < 8; i++) g[i] = s[k][i] * inv * g[i];
    store8(y + r * ldy + c, g, n, vec);
  }
}

#include "columns.cuh"

// RMSNormBackward: x̂ = x·rstd, g = dy·w; dx += rstd·(g − x̂·mean(g·x̂)); dw += Σ_n dy·x̂.
// A block owns `per` rows one after the other and keeps its columns of w and of dw's part in registers (K pieces of 8 a
// thread); rmsnorm_finish adds the parts in order. Bound by reading dy, x and dx and writing dx, once each.
template <int K>
__device__ __forceinline__ void backward(bf16* dx, i64 lddx, float* part, const bf16* dy, i64 ldy, const bf16* x, i64 ldx, const bf16* w,
                                         const float* rstd, i64 rows, int cols, int per, int vec) {
  __shared__ float room[32];
  float weight[K][8], dw[K][8];
#pragma unroll
  for (int k = 0; k < K; k++) {
    int c = (k * blockDim.x + threadIdx.x) * 8;
    load8(weight[k], w + c, cols - c, vec);
#pragma unroll
    for (int i = 0; i < 8; i++) dw[k][i] = 0.f;
  }
  i64 to = (i64)(blockIdx.x + 1) * per < rows ? (i64)(blockIdx.x + 1) * per : rows;
  for (i64 r = (i64)blockIdx.x * per; r < to; r++) {
    float xhat[K][8], g[K][8], dot = 0.f, inv = rstd[r];
#pragma unroll
    for (int k = 0; k < K; k++) {
      int c = (k * blockDim.x + threadIdx.x) * 8;
      load8(xhat[k], x + r * ldx + c, cols - c, vec);
      load8(g[k], dy + r * ldy + c, cols - c, vec);
#pragma unroll
      for (int i = 0; i < 8; i++) {
        xhat[k][i] *= inv;
        dw[k][i] += g[k][i] * xhat[k][i];
        g[k][i] *= weight[k][i];
        dot += g[k][i] * xhat[k][i];
      }
    }
    float mean = blockSum(dot, room) / (float)cols;
#pragma unroll
    for (int k = 0; k < K; k++) {
      int c = (k * blockDim.x + threadIdx.x) * 8;
      if (c >= cols) break;
      float d[8];
      load8(d, dx + r * lddx + c, cols - c, vec);
#pragma unroll
      for (int i = 0; i < 8; i++) d[i] += inv * (g[k][i] - xhat[k][i] * mean);
      store8(dx + r * lddx + c, d, cols - c, vec);
    }
  }
#pragma unroll
  for (int k = 0; k < K; k++) {
    int c = (k * blockDim.x + threadIdx.x) * 8;
    store8(part + (i64)blockIdx.x * cols + c, dw[k], cols - c, vec && cols % 4 == 0);
  }
}

extern "C" __global__ void __launch_bounds__(1024) rmsnorm_backward(bf16* dx, i64 lddx, float* part, const bf16* dy, i64 ldy, const bf16* x, i64 ldx,
                                                                    const bf16* w, const float* rstd, i64 rows, int cols, int per, int vec) {
  backward<1>(dx, lddx, part, dy, ldy, x, ldx, w, rstd, rows, cols, per, vec);
}
// Rows wider than 8192.
extern "C" __global__ void __launch_bounds__(1024) rmsnorm_backward_wide(bf16* dx, i64 lddx, float* part, const bf16* dy, i64 ldy, const bf16* x, i64 ldx,
                                                                         const bf16* w, const float* rstd, i64 rows, int cols, int per, int vec) {
  backward<4>(dx, lddx, part, dy, ldy, x, ldx, w, rstd, rows, cols, per, vec);
}

extern "C" __global__ void __launch_bounds__(256) rmsnorm_finish(float* dw, const float* part, int parts, int cols) {
  addColumns(dw, part, parts, cols);
}
