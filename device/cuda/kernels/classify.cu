// The cross-entropy in the middle of Classify, on a chunk of fp32 logits z [rows, ld] that a product has just written:
//
//   lse = log Σ exp(z),  loss = lse − z[target],  dz = scale·(exp(z − lse) − onehot)
//
// A block owns a row and reads it twice: once for maximum and sum together (a running maximum rescales the sum), once for
// dz, which replaces z in place as bf16 [rows, 2·ld] (the first half of the row's bytes). A tile of 8 elements a thread is
// read by all before any of it is written, and bf16 number i lies where fp32 number i/2 was, so nothing unread is lost.
// Rows with target −1 give loss 0 and dz 0. Bound by 4+4+2 bytes a logit; the second read mostly hits the L2.
extern "C" __global__ void __launch_bounds__(512) classify(float* loss, float* z, i64 ld, const int* targets, int classes, float scale, int grad, int* fault) {
  __shared__ float room[32];
  float* row = z + blockIdx.x * ld;
  int target = targets[blockIdx.x];
  bool ok = target >= 0 && target < classes;
  if (!ok && target != -1 && threadIdx.x == 0) report(fault, FAULT_CLASSIFY, target, classes);
  float at = ok ? row[target] : 0.f; // before the row changes: blockMax has a barrier
  float top = __uint_as_float(0xff800000u), sum = 0.f, v[8];
  for (int c = threadIdx.x * 8; c < classes; c += blockDim.x * 8) {
    int n = left8(c, classes);
    load8(v, row + c, n, true);
    float m = top;
#pragma unroll
    for (int i = 0; i < 8; i++) if (i < n) m = fmaxf(m, v[i]);
    if (m > top) {
      sum *= __expf(top - m);
      top = m;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) if (i < n) sum += __expf(v[i] - top);
  }
  float most = blockMax(top, room);
  float all = blockSum(sum == 0.f ? 0.f : sum * __expf(top - most), room);
  float lse = most + logf(all);
  if (threadIdx.x == 0) loss[blockIdx.x] = ok ? lse - at : 0.f;
  if (!grad) return;
  float keep = ok ? scale : 0.f;
  for (int base = 0; base < classes; base += blockDim.x * 8) {
    int c = base + threadIdx.x * 8, n = left8(c, classes);
    if (c < classes) load8(v, row + c, n, true);
    __syncthreads();
    if (c < classes) {
#pragma unroll
      for (int i = 0; i < 8; i++) v[i] = ok ? keep * (__expf(v[i] - lse) - (c + i == target ? 1.f : 0.f)) : 0.f;
      store8((bf16*)row + c, v, n, true);
    }
  }
}
