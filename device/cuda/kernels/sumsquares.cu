// SumSquares: dst += Σ x².
#include "sums.cuh"

extern "C" __global__ void __launch_bounds__(256)
sumsquares_bf16(double* part, const bf16* x, i64 ldx, i64 rows, i64 cols, int vec) {
  partialSum<true>(part, x, ldx, rows, cols, vec);
}
extern "C" __global__ void __launch_bounds__(256)
sumsquares_f32(double* part, const float* x, i64 ldx, i64 rows, i64 cols, int vec) {
  partialSum<true>(part, x, ldx, rows, cols, vec);
}
extern "C" __global__ void __launch_bounds__(256) sumsquares_finish(float* dst, const double* part, int parts) {
  double total = totalSum(part, parts);
  if (threadIdx.x == 0) dst[0] = (float)((double)dst[0] + total);
}
