// Lambda: λ = exp(q1·k1) − exp(q2·k2) + init, one warp, in fp64: the vectors are short. They are weights, and are read
// before the kernel's turn if the launcher allows it.
#include "early.cuh"
#include "sums.cuh"

// exp(q1·k1) and exp(q2·k2), in every lane of a warp. Odd lanes compute the second exponential while even ones compute
// the first.
__device__ __forceinline__ void exponentials(double& a, double& b, const float* q1, const float* k1, const float* q2,
                                             const float* k2, int n) {
  const int lane = threadIdx.x & 31;
  double x = 0, y = 0;
  for (int i = lane; i < n; i += 32) x += (double)q1[i] * k1[i], y += (double)q2[i] * k2[i];
  x = warpSum(x), y = warpSum(y);
  const double mine = exp(lane & 1 ? y : x), other = __shfl_xor_sync(0xffffffffu, mine, 1);
  a = lane & 1 ? other : mine, b = lane & 1 ? mine : other;
}

extern "C" __global__ void __launch_bounds__(32)
lambda(float* lam, const float* q1, const float* k1, const float* q2, const float* k2, int n, float init, int early) {
  beginNext();
  if (!early) waitEarlier();
  double a, b;
  exponentials(a, b, q1, k1, q2, k2, n);
  waitEarlier();
  if (threadIdx.x == 0) lam[0] = (float)(a - b + init);
}

extern "C" __global__ void __launch_bounds__(256)
lambda_sum(double* part, const float* x, i64 ldx, i64 rows, i64 cols, int vec) {
  partialSum<false>(part, x, ldx, rows, cols, vec);
}

// LambdaBackward: s = Σ dlam from the parts written by lambda_sum; dq1 += s·exp(q1·k1)·k1, dk1 += s·exp(q1·k1)·q1, and
// the second pair with −s. Bound: the read of dlam.
extern "C" __global__ void __launch_bounds__(128)
lambda_backward(float* dq1, float* dk1, float* dq2, float* dk2, const float* q1, const float* k1, const float* q2,
                const float* k2, int n, const double* part, int parts) {
  double a, b;
  exponentials(a, b, q1, k1, q2, k2, n);
  const double s = totalSum(part, parts);
  const float up = (float)(s * a), down = (float)(-s * b);
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    dq1[i] += up * k1[i];
    dk1[i] += up * q1[i];
    dq2[i] += down * k2[i];
    dk2[i] += down * q2[i];
  }
}
