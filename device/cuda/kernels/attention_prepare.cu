// The kernels of both attentions' backward passes before and after their main kernels.
//
// attention_prepare: for each row and head, dO from dOut through the head norm (x̂ = raw·rstd, g = gain·w·dOut, dO =
// rstd·(g − x̂·mean(g·x̂))), Δ1 = dO·(raw + λ·Out2), Δ2 = dO·Out2, dλ = −Δ2, and the rows' statistics in the order in
// which the main kernels read them: stats[b][h][t] of 2 floats {LSE·log2 e, Δ} or 8 {LSE1·, LSE2·, Δ1, Δ2, λ, 0, 0, 0}.
// With columns, the statistics of that many rows are stored together, one kind after the other. Rows T…pad−1 get LSE =
// inf, so that P = 0 there. A row of a head belongs to `lanes` adjacent lanes of a warp, 8 columns each (WIDE times),
// so that narrow heads leave no lane idle; 128 rows per block; the norm's weight gets one partial sum per block.
// Compiled with -DMAPS -DNORM -DWIDE (1, or 2 for heads wider than 256).
// Bound: bytes, 4·DV per row and head for plain attention, 8·DV with two maps and the norm. Instruction issue comes
// close to that bound, so a lane keeps its part of the weight, rows are found by stepping instead of division, and all
// loads of a row are issued at once.
struct Prepare {
  const bf16 *dout, *raw, *out2, *weight;
  const float *lse, *rstd, *lam;
  bf16* grad;
  float *stats, *dlam, *part;
  i64 lddout, ldraw, ldo2, ldlse, ldrstd, ldlam, ldgrad, lddlam;
  int B, T, pad, H, DV, each, vec, lanes, columns;
  float gain;
};

constexpr int PER_BLOCK = 128; // rows per block, each of one head
// Rows that a group has in flight. With two maps and the norm two take 104 registers; one leaves room for twice the
// blocks.
constexpr int ROWS = MAPS == 2 && NORM ? 1 : 2;
#define LOG2E 1.4426950408889634f

// One row: head h of position t in sequence b. in: it is one of the padded rows; live: it is a real one. Others only
// take part in sums.
struct Row {
  u32 item;
  int b, t, h;
  bool in, live;
};

// Iterates over a group's rows, every step-th of the block's.
struct Walk {
  u32 item, end;
  int b, t, h, stepT, stepH, step;
  __device__ __forceinline__ Walk(const Prepare& p, int group, int groups) {
    const u32 all = (u32)p.B * p.pad * p.H;
    item = blockIdx.x * PER_BLOCK + group;
    end = (blockIdx.x + 1) * PER_BLOCK;
    if (end > all) end = all;
    const u32 position = item / p.H;
    h = item % p.H, t = position % p.pad, b = position / p.pad;
    stepH = groups % p.H, stepT = groups / p.H, step = groups;
  }
  __device__ __forceinline__ Row next(const Prepare& p) {
    const bool in = item < end;
    Row r = {item, b, t, h, in, in && t < p.T};
    item += step, h += stepH, t += stepT;
    if (h >= p.H) h -= p.H, t++;
    while (t >= p.pad) t -= p.pad, b++;
    return r;
  }
};

__device__ __forceinline__ float sumOf(float x, int lanes) {
  for (int o = lanes >> 1; o > 0; o >>= 1) x += __shfl_xor_sync(0xffffffffu, x, o);
  return x;
}

// The lane's inputs of a row.
struct Inputs {
  Raw dout[WIDE], raw[WIDE], out2[WIDE];
  float rstd, lse[MAPS], lam;
  __device__ __forceinline__ void load(const Prepare& p, const Row& r, int lane) {
    const i64 n = (i64)r.b * p.T + r.t;
    rstd = NORM && r.live ? p.rstd[n * p.ldrstd + r.h] : 1.f;
    lam = 0.f;
    if (MAPS == 2 && r.live) lam = p.each ? p.lam[n * p.ldlam + r.h] : p.lam[0];
#pragma unroll
    for (int i = 0; i < MAPS; i++)
      lse[i] = r.live ? p.lse[n * p.ldlse + MAPS * r.h + i] * LOG2E : __uint_as_float(0x7f800000u);
#pragma unroll
    for (int i = 0; i < WIDE; i++) {
      const int c = 8 * (lane + p.lanes * i), left = r.live ? p.DV - c : 0;
      const i64 at = (i64)r.h * p.DV + c;
      dout[i] = loadRaw(p.dout + n * p.lddout + at, left, p.vec);
      raw[i] = loadRaw(p.raw + n * p.ldraw + at, left, p.vec);
      if (MAPS == 2) out2[i] = loadRaw(p.out2 + n * p.ldo2 + at, left, p.vec);
    }
  }
};

// The row's statistics in the order of the main kernels, and dλ.
__device__ __forceinline__ void storeStats(const Prepare& p, const Row& r, const Inputs& in, float d1, float d2,
                                           float fine) {
  constexpr int floats = MAPS == 2 ? 8 : 2;
  float* s = p.stats + (i64)(r.b * p.H + r.h) * p.pad * floats;
  if (p.columns) { // each kind of a tile's rows together
    s += r.t / p.columns * p.columns * floats + r.t % p.columns;
    s[0] = in.lse[0];
    if (MAPS == 2) s[p.columns] = in.lse[MAPS - 1], s[3 * p.columns] = d2, s[4 * p.columns] = in.lam;
    s[MAPS * p.columns] = MAPS == 2 ? d1 + in.lam * d2 : d1;
  } else if (MAPS == 1) {
    *(float2*)(s + r.t * floats) = {in.lse[0], d1};
  } else {
    *(float4*)(s + r.t * floats) = {in.lse[0], in.lse[MAPS - 1], d1 + in.lam * d2, d2};
    *(float4*)(s + r.t * floats + 4) = {in.lam, 0.f, 0.f, 0.f};
  }
  if (MAPS == 1) return;
  if (r.live) p.dlam[((i64)r.b * p.T + r.t) * p.lddlam + r.h] = -fine;
}

// The norm's part: in.dout, dOut before, becomes dO, rounded as the products will see it. dw accumulates the weight's
// gradient of the lane's columns, without the gain; w holds gain·weight. Returns the sum over the row of dO·Out2 before
// that rounding.
__device__ __forceinline__ float throughNorm(const Prepare& p, Inputs& in, const float (&w)[WIDE][8],
                                             float (&dw)[WIDE][8]) {
  float mean = 0.f, fine = 0.f;
#pragma unroll
  for (int i = 0; i < WIDE; i++)
#pragma unroll
    for (int e = 0; e < 8; e++) {
      const float up = element(in.dout[i], e) * (element(in.raw[i], e) * in.rstd); // dOut·x̂
      dw[i][e] += up;
      mean += up * w[i][e];
    }
  mean = sumOf(mean, p.lanes) / p.DV * in.rstd * in.rstd;
#pragma unroll
  for (int i = 0; i < WIDE; i++)
#pragma unroll
    for (int e = 0; e < 8; e += 2) {
      float x[2];
#pragma unroll
      for (int k = 0; k < 2; k++) {
        x[k] = in.rstd * w[i][e + k] * element(in.dout[i], e + k) - mean * element(in.raw[i], e + k);
        if (MAPS == 2) fine += x[k] * element(in.out2[i], e + k);
      }
      in.dout[i].x[e / 2] = packBf16(x[0], x[1]);
    }
  return fine;
}

__device__ __forceinline__ void prepareRow(const Prepare& p, const Row& r, Inputs& in, int lane,
                                           const float (&w)[WIDE][8], float (&dw)[WIDE][8]) {
  float d1 = 0.f, d2 = 0.f, fine = 0.f;
  if (NORM) {
    fine = throughNorm(p, in, w, dw);
#pragma unroll
    for (int i = 0; i < WIDE; i++) {
      const int c = 8 * (lane + p.lanes * i), left = r.live ? p.DV - c : 0;
      if (left > 0) storeRaw(p.grad + ((i64)r.b * p.T + r.t) * p.ldgrad + (i64)r.h * p.DV + c, in.dout[i], left, p.vec);
    }
  }
#pragma unroll
  for (int i = 0; i < WIDE; i++)
#pragma unroll
    for (int e = 0; e < 8; e++) {
      const float g = element(in.dout[i], e);
      d1 += g * element(in.raw[i], e);
      if (MAPS == 2) d2 += g * element(in.out2[i], e);
    }
  d1 = sumOf(d1, p.lanes);
  if (MAPS == 2) d2 = sumOf(d2, p.lanes), fine = NORM ? sumOf(fine, p.lanes) : d2;
  if (r.in && lane == 0) storeStats(p, r, in, d1, d2, fine);
}

// The block's part of the weight's gradient.
__device__ __forceinline__ void storePart(const Prepare& p, const float (&dw)[WIDE][8], int group,
                                          int groups, int lane) {
  __shared__ float sums[2048 * WIDE];
  const int width = 8 * p.lanes * WIDE;
#pragma unroll
  for (int i = 0; i < WIDE; i++)
#pragma unroll
    for (int e = 0; e < 8; e++) sums[group * width + 8 * (lane + p.lanes * i) + e] = p.gain * dw[i][e];
  __syncthreads();
  for (int c = threadIdx.x; c < p.DV; c += 256) {
    float z = 0.f;
    for (int k = 0; k < groups; k++) z += sums[k * width + c];
    p.part[(i64)blockIdx.x * p.DV + c] = z;
  }
}

__device__ __forceinline__ void prepare(const Prepare& p) {
  const int group = threadIdx.x / p.lanes, groups = 256 / p.lanes, lane = threadIdx.x % p.lanes;
  float w[WIDE][8], dw[WIDE][8] = {};
#pragma unroll
  for (int i = 0; i < WIDE; i++)
#pragma unroll
    for (int e = 0; e < 8; e++) {
      const int c = 8 * (lane + p.lanes * i) + e;
      w[i][e] = p.gain * (NORM && p.weight != 0 && c < p.DV ? toFloat(p.weight[c]) : 1.f);
    }
  Walk walk(p, group, groups);
  for (int k = 0; k < PER_BLOCK; k += ROWS * groups) { // whole warps stay together: PER_BLOCK is a multiple of groups
    Row r[ROWS];
    Inputs in[ROWS]; // all rows are loaded before the first is used
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
      r[i] = walk.next(p);
      in[i].load(p, r[i], lane);
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) prepareRow(p, r[i], in[i], lane, w, dw);
  }
  if (NORM && p.part != 0) storePart(p, dw, group, groups, lane);
}

extern "C" __global__ void __launch_bounds__(256, ROWS == 1 ? 4 : 1)
attention_prepare(const bf16* dout, const bf16* raw, const bf16* out2, const bf16* weight, const float* lse,
                  const float* rstd, const float* lam, bf16* grad, float* stats, float* dlam, float* part, i64 lddout,
                  i64 ldraw, i64 ldo2, i64 ldlse, i64 ldrstd, i64 ldlam, i64 ldgrad, i64 lddlam, int B, int T, int pad,
                  int H, int DV, int each, int vec, int lanes, int columns, float gain) {
  prepare({dout, raw, out2, weight, lse, rstd, lam, grad, stats, dlam, part, lddout, ldraw, ldo2, ldlse, ldrstd, ldlam,
           ldgrad, lddlam, B, T, pad, H, DV, each, vec, lanes, columns, gain});
}

#include "columns.cuh"

extern "C" __global__ void __launch_bounds__(1024) attention_norm(float* dnorm, const float* part, int rows, int DV) {
  addColumns(dnorm, part, rows, DV);
}
