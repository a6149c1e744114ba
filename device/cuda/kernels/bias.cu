// AddBias: y[n,:] += b. A thread keeps 8 columns of b and iterates over the rows. Bound: one read and one write of y.
extern "C" __global__ void bias_add(bf16* y, i64 ldy, const bf16* b, i64 rows, i64 cols, int vec) {
  i64 c = ((i64)blockIdx.x * blockDim.x + threadIdx.x) * 8;
  if (c >= cols) return;
  float w[8], v[8];
  int n = left8(c, cols);
  load8(w, b + c, n, vec);
  for (i64 r = blockIdx.y; r < rows; r += gridDim.y) {
    load8(v, y + r * ldy + c, n, vec);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] += w[i];
    store8(y + r * ldy + c, v, n, vec);
  }
}

#include "columns.cuh"

// BiasBackward: db[c] += Σ_n dy[n,c]. Block (x, p) sums the rows of part p for 256 columns: 32 threads of 8 adjacent
// columns, 8 rows at a time, the 8 lanes added in order; bias_finish adds the parts. Bound: one read of dy.
extern "C" __global__ void __launch_bounds__(256)
bias_parts(float* part, const bf16* dy, i64 ldy, i64 rows, i64 cols, int per, int vec) {
  __shared__ float room[8][256];
  int lane = threadIdx.x >> 5, x = threadIdx.x & 31;
  i64 c = (i64)blockIdx.x * 256 + x * 8;
  i64 to = (i64)(blockIdx.y + 1) * per < rows ? (i64)(blockIdx.y + 1) * per : rows;
  float sum[8] = {0, 0, 0, 0, 0, 0, 0, 0}, v[8];
  if (c < cols) {
    int n = left8(c, cols);
    for (i64 r = (i64)blockIdx.y * per + lane; r < to; r += 8) {
      load8(v, dy + r * ldy + c, n, vec);
#pragma unroll
      for (int i = 0; i < 8; i++) sum[i] += v[i];
    }
  }
#pragma unroll
  for (int i = 0; i < 8; i++) room[lane][x * 8 + i] = sum[i];
  __syncthreads();
  c = (i64)blockIdx.x * 256 + threadIdx.x;
  if (c < cols) {
    float total = 0.f;
#pragma unroll
    for (int l = 0; l < 8; l++) total += room[l][threadIdx.x];
    part[blockIdx.y * cols + c] = total;
  }
}

extern "C" __global__ void __launch_bounds__(1024) bias_finish(float* db, const float* part, int parts, int cols) {
  addColumns(db, part, parts, cols);
}
