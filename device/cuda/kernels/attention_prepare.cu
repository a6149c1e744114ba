// What both attentions' backward passes do before and after their main kernels.
//
// attention_prepare: for each row and head, dO from dOut through the head norm (x̂ = raw·rstd, g = gain·w·dOut,
// dO = rstd·(g − x̂·mean(g·x̂))), Δ1 = dO·(raw + λ·Out2), Δ2 = dO·Out2, dλ = −Δ2, and the rows' statistics in the order in
// which the main kernels read them: stats[b][h][t] of 2 floats {LSE·log2 e, Δ} or 8 {LSE1·, LSE2·, Δ1, Δ2, λ, 0, 0, 0}. Rows
// T…pad−1 get LSE = inf, so that P = 0 there. A row of a head belongs to `lanes` neighbours of a warp, 8 columns each (WIDE
// times), so that narrow heads leave no lane idle; 128 rows per block; the norm's weight gets one partial sum per block.
// Bound: bytes, 4·DV per row and head for plain attention, 8·DV with two maps and the norm.
struct Prepare {
  const bf16 *dout, *raw, *out2, *weight;
  const float *lse, *rstd, *lam;
  bf16* grad;
  float *stats, *dlam, *part;
  i64 lddout, ldraw, ldo2, ldlse, ldrstd, ldlam, ldgrad, lddlam;
  int B, T, pad, H, DV, maps, norm, each, vec, lanes;
  float gain;
};

constexpr int PER_BLOCK = 128; // rows of a block, a row being one of one head
#define LOG2E 1.4426950408889634f

// One row: head h of position t in sequence b, and the lane's place among those of the row.
struct Row {
  int b, t, h, lane;
  bool in, live; // the row is one of the padded ones, one of the true ones; others take part in sums only
};

__device__ __forceinline__ float sumOf(float x, int lanes) {
  for (int o = lanes >> 1; o > 0; o >>= 1) x += __shfl_xor_sync(0xffffffffu, x, o);
  return x;
}

// The row's statistics in the order of the main kernels, and dλ.
__device__ __forceinline__ void storeStats(const Prepare& p, const Row& r, float d1, float d2, float fine) {
  const i64 n = (i64)r.b * p.T + r.t;
  float* s = p.stats + ((i64)(r.b * p.H + r.h) * p.pad + r.t) * (p.maps == 2 ? 8 : 2);
  if (p.maps == 1) {
    *(float2*)s = {r.live ? p.lse[n * p.ldlse + r.h] * LOG2E : __uint_as_float(0x7f800000u), d1};
    return;
  }
  float4 x = {__uint_as_float(0x7f800000u), __uint_as_float(0x7f800000u), 0.f, 0.f}, y = {0.f, 0.f, 0.f, 0.f};
  if (r.live) {
    const float lam = p.each ? p.lam[n * p.ldlam + r.h] : p.lam[0], *lse = p.lse + n * p.ldlse + 2 * r.h;
    x = {lse[0] * LOG2E, lse[1] * LOG2E, d1 + lam * d2, d2};
    y.x = lam;
    p.dlam[n * p.lddlam + r.h] = -fine;
  }
  *(float4*)s = x;
  *(float4*)(s + 4) = y;
}

// What the lane reads of a row.
template <int WIDE> struct Inputs {
  Raw dout[WIDE], raw[WIDE], out2[WIDE];
  float rstd;
  __device__ __forceinline__ void load(const Prepare& p, const Row& r) {
    const i64 n = (i64)r.b * p.T + r.t;
    rstd = p.norm && r.live ? p.rstd[n * p.ldrstd + r.h] : 1.f;
#pragma unroll
    for (int i = 0; i < WIDE; i++) {
      const int c = 8 * (r.lane + p.lanes * i), left = r.live ? p.DV - c : 0;
      const i64 at = (i64)r.h * p.DV + c;
      dout[i] = loadRaw(p.dout + n * p.lddout + at, left, p.vec);
      raw[i] = loadRaw(p.raw + n * p.ldraw + at, left, p.vec);
      if (p.maps == 2) out2[i] = loadRaw(p.out2 + n * p.ldo2 + at, left, p.vec);
    }
  }
};

// dw collects the weight's gradient of the lane's columns.
template <int WIDE> __device__ __forceinline__ void prepareRow(const Prepare& p, const Row& r, const Inputs<WIDE>& in, float (&dw)[WIDE][8]) {
  const float rs = in.rstd;
  float g[WIDE][8], mean = 0.f;
#pragma unroll
  for (int i = 0; i < WIDE; i++) {
    const int c = 8 * (r.lane + p.lanes * i), left = r.live ? p.DV - c : 0;
#pragma unroll
    for (int e = 0; e < 8; e++) {
      g[i][e] = element(in.dout[i], e);
      if (!p.norm) continue;
      const float up = p.gain * g[i][e], hat = element(in.raw[i], e) * rs;
      dw[i][e] += up * hat;
      g[i][e] = p.weight != 0 && e < left ? up * toFloat(p.weight[c + e]) : up;
      mean += g[i][e] * hat;
    }
  }
  if (p.norm) mean = sumOf(mean, p.lanes) / p.DV;
  float d1 = 0.f, d2 = 0.f, fine = 0.f; // Δ of dO as the products will see it, and Δ2 before that rounding
#pragma unroll
  for (int i = 0; i < WIDE; i++) {
    const int c = 8 * (r.lane + p.lanes * i), left = r.live ? p.DV - c : 0;
#pragma unroll
    for (int e = 0; e < 8; e++) {
      const float x = element(in.raw[i], e);
      float whole = g[i][e];
      if (p.norm) {
        whole = rs * (g[i][e] - x * rs * mean);
        g[i][e] = toFloat(toBf16(whole));
      }
      d1 += g[i][e] * x;
      if (p.maps == 2) {
        d2 += g[i][e] * element(in.out2[i], e);
        fine += whole * element(in.out2[i], e);
      }
    }
    if (p.norm && left > 0) store8(p.grad + ((i64)r.b * p.T + r.t) * p.ldgrad + (i64)r.h * p.DV + c, g[i], left, p.vec);
  }
  d1 = sumOf(d1, p.lanes);
  if (p.maps == 2) d2 = sumOf(d2, p.lanes), fine = sumOf(fine, p.lanes);
  if (r.in && r.lane == 0) storeStats(p, r, d1, d2, fine);
}

template <int WIDE> __device__ __forceinline__ void prepare(const Prepare& p) {
  __shared__ float sums[2048 * WIDE];
  const int group = threadIdx.x / p.lanes, groups = 256 / p.lanes, width = 8 * p.lanes * WIDE;
  const int lane = threadIdx.x % p.lanes;
  const u32 all = (u32)p.B * p.pad * p.H;
  float dw[WIDE][8] = {};
  for (int k = 0; k < PER_BLOCK; k += 2 * groups) { // whole warps stay together: PER_BLOCK is a multiple of groups
    Row r[2];
    Inputs<WIDE> in[2]; // both rows are asked for before the first is used
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const u32 item = blockIdx.x * PER_BLOCK + k + i * groups + group, position = item / p.H;
      const int t = position % p.pad;
      const bool mine = item < all && k + i * groups < PER_BLOCK;
      r[i] = {(int)(position / p.pad), t, (int)(item % p.H), lane, mine, mine && t < p.T};
      in[i].load(p, r[i]);
    }
#pragma unroll
    for (int i = 0; i < 2; i++) prepareRow<WIDE>(p, r[i], in[i], dw);
  }
  if (p.part == 0) return;
#pragma unroll
  for (int i = 0; i < WIDE; i++)
#pragma unroll
    for (int e = 0; e < 8; e++) sums[group * width + 8 * (lane + p.lanes * i) + e] = dw[i][e];
  __syncthreads();
  for (int c = threadIdx.x; c < p.DV; c += 256) {
    float z = 0.f;
    for (int w = 0; w < groups; w++) z += sums[w * width + c];
    p.part[(i64)blockIdx.x * p.DV + c] = z;
  }
}

#define PREPARE(name, WIDE)                                                                                                                    \
  extern "C" __global__ void __launch_bounds__(256)                                                                                            \
  name(const bf16* dout, const bf16* raw, const bf16* out2, const bf16* weight, const float* lse, const float* rstd, const float* lam,         \
       bf16* grad, float* stats, float* dlam, float* part,                                                                                     \
       i64 lddout, i64 ldraw, i64 ldo2, i64 ldlse, i64 ldrstd, i64 ldlam, i64 ldgrad, i64 lddlam,                                              \
       int B, int T, int pad, int H, int DV, int maps, int norm, int each, int vec, int lanes, float gain) {                                   \
    prepare<WIDE>({dout, raw, out2, weight, lse, rstd, lam, grad, stats, dlam, part, lddout, ldraw, ldo2, ldlse, ldrstd, ldlam, ldgrad, lddlam, \
                   B, T, pad, H, DV, maps, norm, each, vec, lanes, gain});                                                                     \
  }
PREPARE(attention_prepare, 1)
PREPARE(attention_prepare_wide, 2) // heads wider than 256

#include "columns.cuh"

extern "C" __global__ void __launch_bounds__(1024) attention_norm(float* dnorm, const float* part, int rows, int DV) { addColumns(dnorm, part, rows, DV); }
