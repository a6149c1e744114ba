// Kernel 2 of attn_cached.cuh: the sum of a row's splits, the difference of its maps, the head norm.
constexpr int JOIN = 384, BATCH = 4; // splits whose sums a thread loads at once

// Each map's largest m and Σ exp2(m − top)·l over the splits, from a lane's first m and l. Each warp computes both
// itself, without a barrier.
__device__ __forceinline__ void joinTotals(float2* total, const float* stats, i64 next, int used) {
  for (int s = (threadIdx.x & 31) + 32; s < used; s += 32) {
    float2 x[MAPS];
#pragma unroll
    for (int i = 0; i < MAPS; i++) x[i] = *(const float2*)(stats + s * next + 2 * i);
#pragma unroll
    for (int i = 0; i < MAPS; i++) {
      const float top = fmaxf(total[i].x, x[i].x);
      total[i] = {top, fmaf(ex2(total[i].x - top), total[i].y, ex2(x[i].x - top) * x[i].y)};
    }
  }
#pragma unroll
  for (int i = 0; i < MAPS; i++) {
    const float top = warpMax(total[i].x);
    total[i] = {top, warpSum(ex2(total[i].x - top) * total[i].y)};
  }
}

// Grid (heads, rows). A thread takes 4 columns of every groups-th split.
extern "C" __global__ void __launch_bounds__(JOIN, 2)
KERNEL_JOIN(const float* sums, const float* stats, const int* pos, const float* lam, const bf16* weight, bf16* out,
            bf16* raw, float* rstd, i64 ldlam, i64 ldo, i64 ldraw, i64 ldrstd, int H, int DV, int split, int splits,
            int each, int norm, float eps, float gain) {
  extern __shared__ uint4 cachedShared[];
  __shared__ float room[32];
  beginNext();
  const int h = blockIdx.x, used = min(max(pos[blockIdx.y], 0) / split + 1, splits), wide = (DV + 15) / 16 * 16;
  const int columns = wide / 4, groups = JOIN / columns, c = threadIdx.x % columns * 4, group = threadIdx.x / columns;
  const i64 n = blockIdx.y, at = n * splits * H * MAPS + h * MAPS, next = (i64)H * MAPS;
  float *part = (float*)cachedShared, *factor = part + JOIN * 4; // [groups][wide], [MAPS][splits]
  float4 x = {0.f, 0.f, 0.f, 0.f};
  float y[2] = {0.f, 0.f}, scaled[2] = {gain, gain}, minus = 0.f;
  waitEarlier();
  float2 total[MAPS]; // loaded before the sums, so that the factors are computed while those arrive
#pragma unroll
  for (int i = 0; i < MAPS; i++) {
    total[i] = {LOWEST, 0.f};
    if ((int)(threadIdx.x & 31) < used) total[i] = *(const float2*)(stats + 2 * (at + i + (threadIdx.x & 31) * next));
  }
  if (MAPS == 2) minus = each ? -lam[n * ldlam + h] : -lam[0];
#pragma unroll
  for (int i = 0; i < 2; i++) // issue all loads that the end needs now
    if (norm && weight != 0 && (int)threadIdx.x + i * JOIN < DV) scaled[i] *= toFloat(weight[threadIdx.x + i * JOIN]);
  // The same number of iterations for all threads: the first has a barrier.
  for (int s0 = group; s0 < used + group; s0 += groups * BATCH) {
    float4 z[MAPS][BATCH];
#pragma unroll
    for (int i = 0; i < MAPS; i++)
#pragma unroll
      for (int u = 0; u < BATCH; u++) {
        const int s = s0 + u * groups;
        z[i][u] = {0.f, 0.f, 0.f, 0.f};
        if (s < used && group < groups) z[i][u] = *(const float4*)(sums + (at + s * next + i) * wide + c);
      }
    if (s0 == group) {
      joinTotals(total, stats + 2 * at, 2 * next, used);
#pragma unroll
      for (int i = 0; i < MAPS; i++) {
        const float f = (i == 0 ? 1.f : minus) / total[i].y;
        for (int s = threadIdx.x; s < used; s += JOIN)
          factor[i * splits + s] = f * ex2(stats[2 * (at + i) + s * 2 * next] - total[i].x);
      }
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < MAPS; i++)
#pragma unroll
      for (int u = 0; u < BATCH; u++) {
        const int s = s0 + u * groups;
        const float f = s < used ? factor[i * splits + s] : 0.f;
        x.x = fmaf(f, z[i][u].x, x.x), x.y = fmaf(f, z[i][u].y, x.y), x.z = fmaf(f, z[i][u].z, x.z),
            x.w = fmaf(f, z[i][u].w, x.w);
      }
  }
  if (group < groups) *(float4*)(part + group * wide + c) = x;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 2; i++) // values of up to 768
    if ((int)threadIdx.x + i * JOIN < DV)
#pragma unroll 8
      for (int j = 0; j < groups; j++) y[i] += part[j * wide + threadIdx.x + i * JOIN];
  const float rs = norm ? rsqrtf(blockSum(y[0] * y[0] + y[1] * y[1], room) / DV + eps) : 1.f;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int col = threadIdx.x + i * JOIN;
    if (col >= DV) continue;
    if (norm && raw != 0) raw[n * ldraw + (i64)h * DV + col] = toBf16(y[i]);
    out[n * ldo + (i64)h * DV + col] = toBf16(norm ? y[i] * scaled[i] * rs : y[i]);
  }
  if (norm && rstd != 0 && threadIdx.x == 0) rstd[n * ldrstd + h] = rs;
}
