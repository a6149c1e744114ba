// The kernels of both attentions' backward passes before and after their main kernels.
//
// attention_prepare: for each row and head, dO from dOut through the head norm (x̂ = raw·rstd, g = gain·w·dOut, dO =
// rstd·(g − x̂·mean(g·x̂))), Δ1 = dO·(raw + λ·Out2), Δ2 = dO·Out2, dλ = −Δ2, and the rows' statistics in the order in
// which the main kernels read them: stats[b][h][t] of 2 floats {LSE·log2 e, Δ} or 8 {LSE1·, LSE2·, Δ1, Δ2, λ, 0, 0, 0}.
// With columns, a power of two, the statistics of that many rows are stored together, one kind after the other. Rows
// T…pad−1 get LSE = inf, so that P = 0 there.
// A block has 128 positions of one head, a warp 16 of them. It loads their scalars before its loop and stores their
// statistics after it, both by way of shared memory. A row belongs to LANES adjacent lanes, 8 columns each (WIDE
// times), so that narrow heads leave few lanes idle, and the next row is loaded before this one is used. The norm's
// weight gets one partial sum per block. Grid: heads, blocks of a sequence, sequences.
// Compiled with -DMAPS -DNORM -DLANES (4, 8, 16 or 32) -DWIDE (1, or 2 for heads wider than 256).
// Bound: bytes, 4·DV per row and head for plain attention, 8·DV with two maps and the norm. Instruction issue is next:
// with two maps and the norm, two rows of 128 columns take 158 in the loop and 189 in all, 198 with a weight.
struct Prepare {
  const bf16 *dout, *raw, *out2, *weight;
  const float *lse, *rstd, *lam;
  bf16* grad;
  float *stats, *dlam, *part;
  u32 lddout, ldraw, ldo2, ldlse, ldrstd, ldlam, ldgrad, lddlam;
  int T, pad, DV, each, vec, columns;
  float gain;
};

constexpr int WARPS = 8, OWN = 16; // rows of a warp
constexpr int AT_ONCE = 32 / LANES, GROUPS = WARPS * AT_ONCE; // of lanes
constexpr int PARTS = MAPS == 1 ? 1 : NORM ? 4 : 2; // of a group; each ends with one of the row's sums
constexpr int FINE = 1, D2 = PARTS / 2; // which: Δ2 before rounding, Δ2; 0 is dO·raw
constexpr int BLOCKS = WIDE == 2 ? 1 : !NORM ? 5 : MAPS == 1 ? 4 : 3; // an SM's, as many as leave no spills
#define LOG2E 1.4426950408889634f

// A warp's rows in shared memory. scale: rstd and rstd²/DV, 0 for a row that does not exist.
struct Rows {
  float lse[MAPS][OWN], lam[OWN], sums[PARTS][OWN];
  float2 scale[OWN];
};

// gain·weight of the lanes' columns, in shared memory.
typedef float4 Weight[WIDE][2][LANES];

// The lane's part of a row.
struct Inputs {
  Raw dout[WIDE], raw[WIDE], out2[WIDE];
};

// A lane's columns in its group's next row to load and in the next to store, and how many of the rows have them.
struct Place {
  const bf16 *dout, *raw, *out2;
  bf16* grad;
  int lane, group, rows[WIDE];
  __device__ __forceinline__ Place(const Prepare& p, int first, int live) {
    lane = threadIdx.x % LANES, group = threadIdx.x % 32 / LANES;
    const u32 n = blockIdx.z * p.T + first + group, c = blockIdx.x * p.DV + 8 * lane;
    dout = p.dout + ((u64)n * p.lddout + c);
    raw = p.raw + ((u64)n * p.ldraw + c);
    if (MAPS == 2) out2 = p.out2 + ((u64)n * p.ldo2 + c);
    if (NORM) grad = p.grad + ((u64)n * p.ldgrad + c);
#pragma unroll
    for (int i = 0; i < WIDE; i++) rows[i] = 8 * (lane + LANES * i) < p.DV ? live : 0;
  }
};

// How many of a lane's 8 columns exist, if any do; VEC: all.
template <bool VEC> __device__ __forceinline__ int left(const Prepare& p, int lane, int i) {
  return VEC ? 8 : p.DV - 8 * (lane + LANES * i);
}

// The group's row of step k; at goes on to the next. What does not exist keeps its value: 0 in columns, that of an
// earlier row or 0 in rows.
template <bool VEC> __device__ __forceinline__ void load(const Prepare& p, Place& at, int k, Inputs& in) {
#pragma unroll
  for (int i = 0; i < WIDE; i++)
    if (k * AT_ONCE + at.group < at.rows[i]) {
      const int c = 8 * LANES * i, n = left<VEC>(p, at.lane, i);
      in.dout[i] = loadRaw(at.dout + c, n, VEC);
      in.raw[i] = loadRaw(at.raw + c, n, VEC);
      if (MAPS == 2) in.out2[i] = loadRaw(at.out2 + c, n, VEC);
    }
  at.dout += (u64)AT_ONCE * p.lddout;
  at.raw += (u64)AT_ONCE * p.ldraw;
  if (MAPS == 2) at.out2 += (u64)AT_ONCE * p.ldo2;
  __syncwarp(); // else the compiler puts the loads off until the row before is half done
}

__device__ __forceinline__ float sumOf(float x, int lanes) {
#pragma unroll
  for (int o = lanes / 2; o > 0; o /= 2) x += __shfl_xor_sync(0xffffffffu, x, o);
  return x;
}

// The sum of a over pairs of lanes in one of each pair, that of b in the other, where upper is set.
__device__ __forceinline__ float sumEither(float a, float b, int distance, bool upper) {
  return (upper ? b : a) + __shfl_xor_sync(0xffffffffu, upper ? a : b, distance);
}

// A lane's sums of a row: dO·raw, dO·Out2, and the latter before dO is rounded.
struct Sums {
  float d1, d2, fine;
  __device__ __forceinline__ void add(const Inputs& in, int i, int e) {
    const float g = element(in.dout[i], e);
    d1 += g * element(in.raw[i], e);
    if (MAPS == 2) d2 += g * element(in.out2[i], e);
  }
  // Over the group's lanes, with fewer shuffles than one by one: each part of the lanes gets one of the sums.
  __device__ __forceinline__ float over(int lane) {
    if (PARTS == 1) return sumOf(d1, LANES);
    float x = sumEither(d1, d2, LANES / 2, lane & LANES / 2);
    if (PARTS == 4) {
      fine += __shfl_xor_sync(0xffffffffu, fine, LANES / 2);
      x = sumEither(x, fine, LANES / 4, lane & LANES / 4);
    }
    return sumOf(x, LANES / PARTS);
  }
};

// A row through the norm: in.dout, dOut before, becomes dO, rounded as the products will see it. dw accumulates the
// weight's gradient of the lane's columns, without the gain. A row that does not exist has a scale of 0 and adds
// nothing. The sums are taken along, which needs fewer registers than another loop.
__device__ __forceinline__ void throughNorm(float2 scale, Inputs& in, const Weight& weight, int lane,
                                            float (&dw)[WIDE][8], Sums& sums) {
  float mean = 0.f, g[WIDE][8];
#pragma unroll
  for (int i = 0; i < WIDE; i++)
#pragma unroll
    for (int e = 0; e < 8; e++) {
      const float4 four = weight[i][e / 4][lane];
      const float w = e % 4 == 0 ? four.x : e % 4 == 1 ? four.y : e % 4 == 2 ? four.z : four.w;
      const float up = scale.x * element(in.dout[i], e), raw = element(in.raw[i], e);
      dw[i][e] += up * raw; // dOut·x̂
      g[i][e] = up * w;
      mean += g[i][e] * raw;
    }
  mean = sumOf(mean, LANES) * scale.y;
#pragma unroll
  for (int i = 0; i < WIDE; i++)
#pragma unroll
    for (int e = 0; e < 8; e += 2) {
      float x[2];
#pragma unroll
      for (int k = 0; k < 2; k++) {
        x[k] = g[i][e + k] - mean * element(in.raw[i], e + k);
        if (MAPS == 2) sums.fine += x[k] * element(in.out2[i], e + k);
      }
      in.dout[i].x[e / 2] = packBf16(x[0], x[1]);
      sums.add(in, i, e), sums.add(in, i, e + 1);
    }
}

// The group's row of step k.
template <bool VEC>
__device__ __forceinline__ void prepareRow(const Prepare& p, Place& at, int k, Inputs in, Rows& rows,
                                           const Weight& weight, float (&dw)[WIDE][8]) {
  const int row = k * AT_ONCE + at.group;
  Sums sums = {};
  if (NORM) {
    throughNorm(rows.scale[row], in, weight, at.lane, dw, sums);
#pragma unroll
    for (int i = 0; i < WIDE; i++)
      if (row < at.rows[i]) storeRaw(at.grad + 8 * LANES * i, in.dout[i], left<VEC>(p, at.lane, i), VEC);
    at.grad += (u64)AT_ONCE * p.ldgrad;
  } else {
#pragma unroll
    for (int i = 0; i < WIDE; i++)
#pragma unroll
      for (int e = 0; e < 8; e++) sums.add(in, i, e);
  }
  rows.sums[at.lane / (LANES / PARTS)][row] = sums.over(at.lane); // the same value from all lanes of a part
}

// The scalars of the warp's rows from position first on, of which live exist; a lane has one of them.
__device__ __forceinline__ void loadScalars(const Prepare& p, int first, int live, Rows& rows) {
  const u32 lane = threadIdx.x % 32, h = blockIdx.x;
  if (lane >= OWN) return;
  const u32 n = blockIdx.z * p.T + first + lane;
  float lse[MAPS], lam = 0.f, rstd = 0.f;
#pragma unroll
  for (int i = 0; i < MAPS; i++) lse[i] = __uint_as_float(0x7f800000u);
  if ((int)lane < live) {
#pragma unroll
    for (int i = 0; i < MAPS; i++) lse[i] = p.lse[(u64)n * p.ldlse + MAPS * h + i] * LOG2E;
    if (MAPS == 2) lam = p.each ? p.lam[(u64)n * p.ldlam + h] : p.lam[0];
    if (NORM) rstd = p.rstd[(u64)n * p.ldrstd + h];
  }
#pragma unroll
  for (int i = 0; i < MAPS; i++) rows.lse[i][lane] = lse[i];
  if (MAPS == 2) rows.lam[lane] = lam;
  if (NORM) rows.scale[lane] = {rstd, __fdividef(rstd * rstd, p.DV)};
}

__device__ __forceinline__ void loadWeight(const Prepare& p, Weight& weight) {
#pragma unroll
  for (int from = 0; from < 8 * LANES * WIDE; from += 32 * WARPS) {
    const u32 c = from + threadIdx.x;
    if (c < 8 * LANES * WIDE)
      (&weight[c / (8 * LANES)][c / 4 % 2][c / 8 % LANES].x)[c % 4] =
          p.gain * (p.weight != 0 && c < (u32)p.DV ? toFloat(p.weight[c]) : 1.f);
  }
}

// The rows' statistics in the order of the main kernels, and dλ; a lane has one row.
__device__ __forceinline__ void storeStats(const Prepare& p, int first, int live, const Rows& rows) {
  constexpr int floats = MAPS == 2 ? 8 : 2;
  const int lane = threadIdx.x % 32, t = first + lane, h = blockIdx.x;
  if (lane >= OWN || t >= p.pad) return;
  float* s = p.stats + (i64)(blockIdx.z * gridDim.x + h) * (p.pad * floats);
  const bool there = lane < live;
  const float l1 = rows.lse[0][lane], l2 = rows.lse[MAPS - 1][lane], lam = MAPS == 2 ? rows.lam[lane] : 0.f;
  const float d2 = MAPS == 2 && there ? rows.sums[D2][lane] : 0.f, d1 = there ? rows.sums[0][lane] + lam * d2 : 0.f;
  if (p.columns) { // each kind of a tile's rows together
    const int in = t & p.columns - 1;
    s += (t - in) * floats + in;
    s[0] = l1;
    if (MAPS == 2) s[p.columns] = l2, s[3 * p.columns] = d2, s[4 * p.columns] = lam;
    s[MAPS * p.columns] = d1;
  } else if (MAPS == 1) {
    *(float2*)(s + t * floats) = {l1, d1};
  } else {
    *(float4*)(s + t * floats) = {l1, l2, d1, d2};
    *(float4*)(s + t * floats + 4) = {lam, 0.f, 0.f, 0.f};
  }
  if (MAPS == 2 && there) p.dlam[(u64)(blockIdx.z * p.T + t) * p.lddlam + h] = -rows.sums[FINE][lane];
}

// The block's part of the weight's gradient.
__device__ __forceinline__ void storePart(const Prepare& p, const float (&dw)[WIDE][8]) {
  constexpr int width = 8 * LANES * WIDE;
  __shared__ float4 each[GROUPS * width / 4];
  float4* own = each + threadIdx.x / LANES * (width / 4) + 2 * (threadIdx.x % LANES);
#pragma unroll
  for (int i = 0; i < WIDE; i++)
#pragma unroll
    for (int e = 0; e < 2; e++)
      own[2 * LANES * i + e] = {dw[i][4 * e], dw[i][4 * e + 1], dw[i][4 * e + 2], dw[i][4 * e + 3]};
  __syncthreads();
  const u64 block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
#pragma unroll 1
  for (int c = threadIdx.x; c < p.DV; c += 32 * WARPS) {
    float z = 0.f;
#pragma unroll
    for (int k = 0; k < GROUPS; k++) z += (&each[0].x)[k * width + c];
    p.part[block * p.DV + c] = p.gain * z;
  }
}

// The warp's rows from position first on, of which live exist: all but their statistics.
template <bool VEC>
__device__ __forceinline__ void prepareRows(const Prepare& p, int first, int live, Rows& rows,
                                            Weight& weight, float (&dw)[WIDE][8]) {
  Place at(p, first, live);
  Inputs in[2] = {};
  load<VEC>(p, at, 0, in[0]);
  loadScalars(p, first, live, rows);
  if (NORM) {
    loadWeight(p, weight);
    __syncthreads();
  } else {
    __syncwarp();
  }
#pragma unroll 1
  for (int k = 0; k < OWN / AT_ONCE; k += 2) { // a constant: else a warp might diverge, for all the compiler knows
    load<VEC>(p, at, k + 1, in[1]);
    prepareRow<VEC>(p, at, k, in[0], rows, weight, dw);
    load<VEC>(p, at, k + 2, in[0]); // beyond the last step no row exists
    prepareRow<VEC>(p, at, k + 1, in[1], rows, weight, dw);
  }
  __syncwarp();
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
attention_prepare(const bf16* dout, const bf16* raw, const bf16* out2, const bf16* weight, const float* lse,
                  const float* rstd, const float* lam, bf16* grad, float* stats, float* dlam, float* part, u32 lddout,
                  u32 ldraw, u32 ldo2, u32 ldlse, u32 ldrstd, u32 ldlam, u32 ldgrad, u32 lddlam, int T, int pad, int DV,
                  int each, int vec, int columns, float gain) {
  const Prepare p = {dout, raw, out2, weight, lse, rstd, lam, grad, stats, dlam, part, lddout, ldraw, ldo2, ldlse,
                     ldrstd, ldlam, ldgrad, lddlam, T, pad, DV, each, vec, columns, gain};
  __shared__ Rows all[WARPS];
  Rows& rows = all[threadIdx.x / 32];
  const int first = (blockIdx.y * WARPS + threadIdx.x / 32) * OWN, live = min(OWN, T - first);
  __shared__ Weight weights;
  float dw[WIDE][8] = {};
  if (vec) prepareRows<true>(p, first, live, rows, weights, dw);
  else prepareRows<false>(p, first, live, rows, weights, dw);
  storeStats(p, first, live, rows);
  if (NORM && part != 0) storePart(p, dw);
}

#include "columns.cuh"

extern "C" __global__ void __launch_bounds__(1024) attention_norm(float* dnorm, const float* part, int rows, int DV) {
  addColumns(dnorm, part, rows, DV);
}
