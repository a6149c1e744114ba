// Lambda: λ = exp(q1·k1) − exp(q2·k2) + init, one block, in fp64: the vectors are short. They are weights: where the launcher says
// so they are read before the kernel's turn.
#include "early.cuh"
#include "sums.cuh"

__device__ __forceinline__ double dotVec(const float* a, const float* b, int n, double* room) {
  double s = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) s += (double)a[i] * b[i];
  return blockSum(s, room);
}

extern "C" __global__ void __launch_bounds__(128) lambda(float* lam, const float* q1, const float* k1, const float* q2, const float* k2, int n, float init,
                                                         int early) {
  __shared__ double room[32];
  beginNext();
  if (!early) waitEarlier();
  const double a = dotVec(q1, k1, n, room), b = dotVec(q2, k2, n, room);
  const float value = (float)(exp(a) - exp(b) + init);
  waitEarlier();
  if (threadIdx.x == 0) lam[0] = value;
}

extern "C" __global__ void __launch_bounds__(256) lambda_sum(double* part, const float* x, i64 ldx, i64 rows, i64 cols, int vec) {
  partialSum<false>(part, x, ldx, rows, cols, vec);
}

// LambdaBackward: s = Σ dlam from the parts that lambda_sum left; dq1 += s·exp(q1·k1)·k1, dk1 += s·exp(q1·k1)·q1, and the
// second pair with −s. Bound by the read of dlam.
extern "C" __global__ void __launch_bounds__(256) lambda_backward(float* dq1, float* dk1, float* dq2, float* dk2, const float* q1, const float* k1,
                                                                  const float* q2, const float* k2, int n, const double* part, int parts) {
  __shared__ double room[32];
  double s = totalSum(part, parts);
  float a = (float)(s * exp(dotVec(q1, k1, n, room))), b = (float)(-s * exp(dotVec(q2, k2, n, room)));
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    dq1[i] += a * k1[i];
    dk1[i] += a * q1[i];
    dq2[i] += b * k2[i];
    dk2[i] += b * q2[i];
  }
}
