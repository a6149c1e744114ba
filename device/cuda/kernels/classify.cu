// The cross-entropy in the middle of Classify, on a chunk of fp32 logits z [rows, ld] that a product has just written:
//
//	lse = log Σ exp(z),  loss = lse − z[target],  dz = scale·(exp(z − lse) − onehot)
//
// A block owns a row and reads it twice: once for maximum and sum together (a running maximum rescales the sum), once
// for dz, which replaces z in place as bf16 [rows, 2·ld] (the first half of the row's bytes). A tile of AHEAD·8
// elements per thread is read by all threads before any of it is written, and bf16 number i is stored where fp32 number
// i/2 was, so nothing unread is lost. Rows with target −1 give loss 0 and dz 0. Bound: 4+4+2 bytes per logit, which it
// reaches on an H200: the second read comes from memory again, because rows of many blocks do not stay in the L2 (see
// docs/kernels.md for what was tried). Each thread loads AHEAD pieces before it uses the first.
constexpr int AHEAD = 2;

// Eight logits starting at c of each of the thread's pieces; after the last class they count as −inf.
__device__ __forceinline__ void readTile(float (&v)[AHEAD][8], const float* row, int base, int classes) {
#pragma unroll
  for (int u = 0; u < AHEAD; u++) {
    const int c = base + (u * blockDim.x + threadIdx.x) * 8, n = classes - c;
    load8(v[u], row + (n > 0 ? c : 0), n, true);
    if (n < 8) {
#pragma unroll
      for (int i = 0; i < 8; i++) if (i >= n) v[u][i] = __uint_as_float(0xff800000u);
    }
  }
}

// log Σ exp of a row, on all threads.
__device__ __forceinline__ float rowLSE(const float* row, int classes, float* room) {
  const int tile = AHEAD * 8 * blockDim.x;
  float top = __uint_as_float(0xff800000u), sum = 0.f, v[AHEAD][8];
  for (int base = 0; base < classes; base += tile) {
    readTile(v, row, base, classes);
    float m = top;
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
#pragma unroll
      for (int i = 0; i < 8; i++) m = fmaxf(m, v[u][i]);
    if (m > top) {
      sum *= __expf(top - m);
      top = m;
    }
    if (m == __uint_as_float(0xff800000u)) continue; // only padding so far
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
#pragma unroll
      for (int i = 0; i < 8; i++) sum += __expf(v[u][i] - top);
  }
  const float most = blockMax(top, room);
  const float all = blockSum(sum == 0.f ? 0.f : sum * __expf(top - most), room);
  return most + logf(all);
}

// dz = scale·(exp(z − lse) − onehot) in place of z; zero if the row is not ok.
__device__ __forceinline__ void rowGrad(float* row, int classes, int target, bool ok, float lse, float scale) {
  const int tile = AHEAD * 8 * blockDim.x;
  float v[AHEAD][8];
  for (int base = 0; base < classes; base += tile) {
    readTile(v, row, base, classes);
    __syncthreads();
#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      const int c = base + (u * blockDim.x + threadIdx.x) * 8;
#pragma unroll
      for (int i = 0; i < 8; i++) v[u][i] = ok ? scale * (__expf(v[u][i] - lse) - (c + i == target ? 1.f : 0.f)) : 0.f;
      store8((bf16*)row + c, v[u], classes - c, true);
    }
  }
}

extern "C" __global__ void __launch_bounds__(1024, 1)
classify(float* loss, float* z, i64 ld, const int* targets, int classes, float scale, int grad, int* fault) {
  __shared__ float room[32];
  float* row = z + blockIdx.x * ld;
  const int target = targets[blockIdx.x];
  const bool ok = target >= 0 && target < classes;
  if (!ok && target != -1 && threadIdx.x == 0) report(fault, FAULT_CLASSIFY, target, classes);
  const float at = ok ? row[target] : 0.f; // before the row changes: blockMax has a barrier
  const float lse = rowLSE(row, classes, room);
  if (threadIdx.x == 0) loss[blockIdx.x] = ok ? lse - at : 0.f;
  if (!grad) return;
  rowGrad(row, classes, target, ok, lse, scale);
}

// Classes split over ranks: the first call's kernel computes log Σ exp of this rank's classes and the target's logit.
extern "C" __global__ void __launch_bounds__(1024, 1)
classify_part(float* part, i64 ldp, const float* z, i64 ld, const int* targets, int classes, int* fault) {
  __shared__ float room[32];
  const float* row = z + blockIdx.x * ld;
  const int target = targets[blockIdx.x];
  const bool here = target >= 0 && target < classes, ok = here || target == ELSEWHERE;
  if (!ok && target != -1 && threadIdx.x == 0) report(fault, FAULT_CLASSIFY, target, classes);
  const float lse = rowLSE(row, classes, room);
  if (threadIdx.x) return;
  part[blockIdx.x] = ok ? lse : 0.f;
  part[ldp + blockIdx.x] = here ? row[target] : 0.f;
}

// The second call's kernel combines all ranks' parts, in rank order, and computes this rank's columns of dz.
extern "C" __global__ void __launch_bounds__(1024, 1)
classify_parts(float* loss, const float* parts, i64 ldp, int ranks, float* z, i64 ld, const int* targets, int classes,
               float scale, int grad, int* fault) {
  const int target = targets[blockIdx.x];
  const bool here = target >= 0 && target < classes, ok = here || target == ELSEWHERE;
  if (!ok && target != -1 && threadIdx.x == 0) report(fault, FAULT_CLASSIFY, target, classes);
  float top = __uint_as_float(0xff800000u), sum = 0.f, at = 0.f;
  for (int r = 0; r < ranks; r++) top = fmaxf(top, parts[2 * r * ldp + blockIdx.x]);
  for (int r = 0; r < ranks; r++) {
    sum += __expf(parts[2 * r * ldp + blockIdx.x] - top);
    at += parts[(2 * r + 1) * ldp + blockIdx.x];
  }
  const float lse = top + logf(sum);
  if (threadIdx.x == 0) loss[blockIdx.x] = ok ? lse - at : 0.f;
  if (grad) rowGrad(z + blockIdx.x * ld, classes, target, ok, lse, scale);
}
