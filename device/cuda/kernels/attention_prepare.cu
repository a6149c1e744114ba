// What both attentions' backward passes do before and after their main kernels.
//
// attention_prepare: for each row and head, dO from dOut through the head norm (x̂ = raw·rstd, g = gain·w·dOut,
// dO = rstd·(g − x̂·mean(g·x̂))), Δ1 = dO·(raw + λ·Out2), Δ2 = dO·Out2, dλ = −Δ2, and the rows' statistics in the order in
// which the main kernels read them: stats[b][h][t] of 2 floats {LSE·log2 e, Δ} or 8 {LSE1·, LSE2·, Δ1, Δ2, λ, 0, 0, 0}. Rows
// T…pad−1 get LSE = inf, so that P = 0 there. One warp per row and head, 128 of them per block; the norm's weight gets one
// partial sum per block. Bound: bytes, 8·DV per row and head.
struct Prepare {
  const bf16 *dout, *raw, *out2, *weight;
  const float *lse, *rstd, *lam;
  bf16* grad;
  float *stats, *dlam, *part;
  i64 lddout, ldraw, ldo2, ldlse, ldrstd, ldlam, ldgrad, lddlam;
  int B, T, pad, H, DV, maps, norm, each, vec;
  float gain;
};

constexpr int PER_BLOCK = 128, WIDE = 2; // rows and heads of a block; 8·32·WIDE columns at most
#define LOG2E 1.4426950408889634f

// One row of one head. dw collects the weight's gradient of the lane's columns.
__device__ __forceinline__ void prepareRow(const Prepare& p, int b, int t, int h, int lane, float (&dw)[WIDE][8]) {
  const i64 n = (i64)b * p.T + t;
  const float rs = p.norm ? p.rstd[n * p.ldrstd + h] : 1.f;
  float g[WIDE][8], x[WIDE][8], mean = 0.f;
#pragma unroll
  for (int i = 0; i < WIDE; i++) {
    const int c = 8 * (lane + 32 * i), left = p.DV - c;
    load8(g[i], p.dout + n * p.lddout + (i64)h * p.DV + c, left, p.vec);
    load8(x[i], p.raw + n * p.ldraw + (i64)h * p.DV + c, left, p.vec);
    if (!p.norm) continue;
#pragma unroll
    for (int e = 0; e < 8; e++) {
      const float up = p.gain * g[i][e], hat = x[i][e] * rs;
      dw[i][e] += up * hat;
      g[i][e] = p.weight != 0 && e < left ? up * toFloat(p.weight[c + e]) : up;
      mean += g[i][e] * hat;
    }
  }
  mean = p.norm ? warpSum(mean) / p.DV : 0.f;
  float d1 = 0.f, d2 = 0.f, fine = 0.f; // Δ of dO as the products will see it, and Δ2 before that rounding
#pragma unroll
  for (int i = 0; i < WIDE; i++) {
    const int c = 8 * (lane + 32 * i), left = p.DV - c;
    float y[8];
    if (p.maps == 2) load8(y, p.out2 + n * p.ldo2 + (i64)h * p.DV + c, left, p.vec);
#pragma unroll
    for (int e = 0; e < 8; e++) {
      float whole = g[i][e];
      if (p.norm) {
        whole = rs * (g[i][e] - x[i][e] * rs * mean);
        g[i][e] = toFloat(toBf16(whole));
      }
      d1 += g[i][e] * x[i][e];
      if (p.maps == 2) {
        d2 += g[i][e] * y[e];
        fine += whole * y[e];
      }
    }
    if (p.norm && left > 0) store8(p.grad + n * p.ldgrad + (i64)h * p.DV + c, g[i], left, p.vec);
  }
  d1 = warpSum(d1);
  d2 = warpSum(d2);
  fine = warpSum(fine);
  if (lane != 0) return;
  float* s = p.stats + ((i64)(b * p.H + h) * p.pad + t) * (p.maps == 2 ? 8 : 2);
  if (p.maps == 1) {
    s[0] = p.lse[n * p.ldlse + h] * LOG2E;
    s[1] = d1;
    return;
  }
  const float lam = p.each ? p.lam[n * p.ldlam + h] : p.lam[0];
  s[0] = p.lse[n * p.ldlse + 2 * h] * LOG2E, s[1] = p.lse[n * p.ldlse + 2 * h + 1] * LOG2E;
  s[2] = d1 + lam * d2, s[3] = d2, s[4] = lam, s[5] = s[6] = s[7] = 0.f;
  p.dlam[n * p.lddlam + h] = -fine;
}

extern "C" __global__ void __launch_bounds__(256)
attention_prepare(const bf16* dout, const bf16* raw, const bf16* out2, const bf16* weight, const float* lse, const float* rstd, const float* lam,
                  bf16* grad, float* stats, float* dlam, float* part,
                  i64 lddout, i64 ldraw, i64 ldo2, i64 ldlse, i64 ldrstd, i64 ldlam, i64 ldgrad, i64 lddlam,
                  int B, int T, int pad, int H, int DV, int maps, int norm, int each, int vec, float gain) {
  const Prepare p = {dout, raw, out2, weight, lse, rstd, lam, grad, stats, dlam, part, lddout, ldraw, ldo2, ldlse, ldrstd, ldlam, ldgrad, lddlam,
                     B, T, pad, H, DV, maps, norm, each, vec, gain};
  __shared__ float sums[8][256 * WIDE];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const i64 all = (i64)B * pad * H;
  float dw[WIDE][8] = {};
  for (int k = warp; k < PER_BLOCK; k += 8) {
    const i64 item = (i64)blockIdx.x * PER_BLOCK + k;
    if (item >= all) break;
    const int h = item % H, t = item / H % pad, b = item / H / pad;
    if (t < T) {
      prepareRow(p, b, t, h, lane, dw);
    } else if (lane < (maps == 2 ? 8 : 2)) {
      stats[((i64)(b * H + h) * pad + t) * (maps == 2 ? 8 : 2) + lane] = lane < maps ? __uint_as_float(0x7f800000u) : 0.f;
    }
  }
  if (part == 0) return;
#pragma unroll
  for (int i = 0; i < WIDE; i++)
#pragma unroll
    for (int e = 0; e < 8; e++) sums[warp][8 * (lane + 32 * i) + e] = dw[i][e];
  __syncthreads();
  for (int c = threadIdx.x; c < DV; c += 256) {
    float z = 0.f;
    for (int w = 0; w < 8; w++) z += sums[w][c];
    part[(i64)blockIdx.x * DV + c] = z;
  }
}

// dnorm[c] += Σ_r part[r][c]: 32 columns per block, 32 stripes of rows, a fixed order.
extern "C" __global__ void __launch_bounds__(1024) attention_norm(float* dnorm, const float* part, int rows, int DV) {
  __shared__ float sums[32][33];
  const int c = blockIdx.x * 32 + (threadIdx.x & 31), stripe = threadIdx.x >> 5;
  float z = 0.f;
  if (c < DV)
    for (int r = stripe; r < rows; r += 32) z += part[(i64)r * DV + c];
  sums[stripe][threadIdx.x & 31] = z;
  __syncthreads();
  if (stripe != 0 || c >= DV) return;
  z = 0.f;
  for (int r = 0; r < 32; r++) z += sums[r][threadIdx.x];
  dnorm[c] += z;
}
