// dQ of attn_hopper_backward.cu from fragments to rows, and through Rope if that is the next op.
#include "rope.cuh"

// Rotates the thread's elements of one row, rounded as they would have been stored: x[4j + 2·half + e] is column 8j + 2t + e. The
// partner of a column is in the same thread, adjacent or half a head away.
__device__ __forceinline__ void turnRow(float (&x)[D / 2], const HopperQueries& p, i64 row, int half, int t) {
  const int at = p.pos[row];
  if (at < 0 || at >= p.positions) {
    report(p.fault, FAULT_ROPE, at, p.positions);
    return;
  }
  const float *cosine = p.table + at * p.ldtable, *sine = cosine + D / 2;
  if (p.layout == 1) {
#pragma unroll
    for (int j = 0; j < D / 8; j++) rotate(x[4 * j + 2 * half], x[4 * j + 2 * half + 1], cosine[4 * j + t], p.sign * sine[4 * j + t]);
    return;
  }
#pragma unroll
  for (int j = 0; j < D / 16; j++)
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const int c = 8 * j + 2 * t + e, i = 4 * j + 2 * half + e;
      rotate(x[i], x[i + D / 4], cosine[c], p.sign * sine[c]);
    }
}

// Block (unit, head, sequence), a warpgroup for each map.
extern "C" __global__ void __launch_bounds__(128 * MAPS) attn_hopper_queries(const __grid_constant__ HopperQueries p) {
  const int m = blockIdx.x, h = blockIdx.y, b = blockIdx.z, map = threadIdx.x / 128, lane = threadIdx.x & 31;
  const i64 unit = (i64)(b * p.heads + h) * gridDim.x + m;
  const float* from = p.sums + (unit * MAPS + map) * (64 * D) + (threadIdx.x & 127) * 4;
  const int row = 16 * (threadIdx.x >> 5 & 3) + (lane >> 2), rows = p.t - m * 64;
  float x[D / 2];
#pragma unroll
  for (int i = 0; i < D / 8; i++) {
    const float4 a = *(const float4*)(from + i * 512);
    x[4 * i] = a.x, x[4 * i + 1] = a.y, x[4 * i + 2] = a.z, x[4 * i + 3] = a.w;
  }
  if (p.layout != 0) {
#pragma unroll
    for (int i = 0; i < D / 2; i++) x[i] = toFloat(toBf16(p.scale * x[i]));
#pragma unroll
    for (int half = 0; half < 2; half++)
      if (row + 8 * half < rows) turnRow(x, p, (i64)b * p.t + m * 64 + row + 8 * half, half, lane & 3);
  }
  storeSums(x, p.dq + ((i64)b * p.t + m * 64) * p.lddq + ((i64)h * MAPS + map) * D, p.lddq, rows, p.layout != 0 ? 1.f : p.scale, row, lane & 3);
}
