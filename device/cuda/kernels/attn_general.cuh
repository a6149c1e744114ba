// Attention of any shape (D up to 256, DV up to 512, any strides), one map or the difference of two: the equations of
// attn_forward.cuh and attn_backward.cuh with one warp per row, without tensor cores. It is used for widths without
// tiled kernels. A warp takes 32 keys (or queries) at a time: first one lane per key, for the dot products and the
// softmax, then one lane per 32nd column, for the sums. Every order is fixed.
constexpr int MAX_D = 256, MAX_DV = 512, LANES_D = MAX_D / 32, LANES_V = MAX_DV / 32, WARPS = 4;
#define LOG2E 1.4426950408889634f
#define LN2 0.6931471805599453f

struct General {
  const bf16 *q, *k, *v, *o; // o: the gradient of raw
  const int* start;
  const float *lam, *stats;
  const bf16* weight;
  bf16 *out, *raw, *out2;
  float *lse, *rstd;
  bf16 *dq, *dk, *dv;
  i64 ldq, ldk, ldv, ldo, ldout, ldraw, ldo2, ldlse, ldrstd, ldlam, lddq, lddk, lddv;
  int N, T, H, G, D, DV, keys, each, norm;
  float scale, eps, gain;
};

__device__ __forceinline__ float dot(const float* a, const bf16* b, int n) {
  float z = 0.f;
  for (int i = 0; i < n; i++) z = fmaf(a[i], toFloat(b[i]), z);
  return z;
}

// Copies n values to shared memory as floats, by one warp.
__device__ __forceinline__ void stage(float* to, const bf16* from, int n, int lane) {
  for (int i = lane; i < n; i += 32) to[i] = toFloat(from[i]);
  __syncwarp();
}

// One online softmax: p becomes exp2(s − top); returns the factor of earlier sums.
__device__ __forceinline__ float soften(float& p, float s, float& top, float& sum) {
  float now = fmaxf(top, warpMax(s)), f = exp2f(top - now); // the row's own key is never masked, and top only grows
  if (now == __uint_as_float(0xff800000u)) now = 0.f, f = 1.f;
  p = exp2f(s - now);
  sum = sum * f + warpSum(p);
  top = fmaxf(top, now);
  return f;
}

// Turns the row's sums acc (map by map) and statistics into its results.
__device__ __forceinline__ void finishRow(const General& a, i64 n, int h, float (&acc)[MAPS][LANES_V], const float* top,
                                          const float* sum, int lane) {
  float lam = 0.f, z = 0.f;
  if (MAPS == 2) lam = a.each ? a.lam[n * a.ldlam + h] : a.lam[0];
#pragma unroll
  for (int i = 0; i < LANES_V; i++) {
    const int c = lane + 32 * i;
    if (c >= a.DV) continue;
    float x = acc[0][i] / sum[0];
    if (MAPS == 2) {
      const float y = acc[MAPS - 1][i] / sum[MAPS - 1];
      if (a.out2 != 0) a.out2[n * a.ldo2 + (i64)h * a.DV + c] = toBf16(y);
      x -= lam * y;
    }
    acc[0][i] = x;
    z += x * x;
  }
  const float rs = a.norm ? rsqrtf(warpSum(z) / a.DV + a.eps) : 1.f;
#pragma unroll
  for (int i = 0; i < LANES_V; i++) {
    const int c = lane + 32 * i;
    if (c >= a.DV) continue;
    float x = acc[0][i];
    if (a.norm) {
      if (a.raw != 0) a.raw[n * a.ldraw + (i64)h * a.DV + c] = toBf16(x);
      x *= a.gain * rs * (a.weight != 0 ? toFloat(a.weight[c]) : 1.f);
    }
    a.out[n * a.ldout + (i64)h * a.DV + c] = toBf16(x);
  }
  if (lane == 0 && a.norm && a.rstd != 0) a.rstd[n * a.ldrstd + h] = rs;
  if (lane < MAPS && a.lse != 0)
    a.lse[n * a.ldlse + h * MAPS + lane] =
        lane == 0 ? top[0] * LN2 + logf(sum[0]) : top[MAPS - 1] * LN2 + logf(sum[MAPS - 1]);
}

// Forward: a warp for each (row, head).
__device__ __forceinline__ void generalForward(const General& a) {
  __shared__ float query[WARPS][MAPS * MAX_D];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const i64 item = (i64)blockIdx.x * WARPS + warp;
  if (item >= (i64)a.N * a.H) return;
  const int h = item % a.H, g = h / (a.H / a.G);
  const i64 n = item / a.H, first = n / a.T * a.T;
  float* q = query[warp];
  stage(q, a.q + n * a.ldq + (i64)h * MAPS * a.D, MAPS * a.D, lane);
  float acc[MAPS][LANES_V] = {}, top[MAPS], sum[MAPS];
#pragma unroll
  for (int i = 0; i < MAPS; i++) top[i] = __uint_as_float(0xff800000u), sum[i] = 0.f;
  for (i64 s0 = first + (a.start != 0 ? a.start[n] : 0); s0 <= n; s0 += 32) {
    const i64 s = s0 + lane;
    float p[MAPS];
#pragma unroll
    for (int i = 0; i < MAPS; i++) {
      float x = __uint_as_float(0xff800000u);
      if (s <= n)
        x = a.scale * LOG2E * dot(q + i * a.D, a.k + s * a.ldk + ((i64)g * a.keys + (a.keys == 2 ? i : 0)) * a.D, a.D);
      const float f = soften(p[i], x, top[i], sum[i]);
#pragma unroll
      for (int j = 0; j < LANES_V; j++) acc[i][j] *= f;
    }
    const int count = n - s0 < 31 ? (int)(n - s0) + 1 : 32;
    for (int u = 0; u < count; u++) {
      const bf16* v = a.v + (s0 + u) * a.ldv + (i64)g * a.DV;
      float w[MAPS];
#pragma unroll
      for (int i = 0; i < MAPS; i++) w[i] = __shfl_sync(0xffffffffu, p[i], u);
#pragma unroll
      for (int j = 0; j < LANES_V; j++)
        if (lane + 32 * j < a.DV) {
          const float x = toFloat(v[lane + 32 * j]);
#pragma unroll
          for (int i = 0; i < MAPS; i++) acc[i][j] = fmaf(w[i], x, acc[i][j]);
        }
    }
  }
  finishRow(a, n, h, acc, top, sum, lane);
}

// One cell of backward: W and dS from the logits, dP and the row's statistics.
__device__ __forceinline__ void cell(const float* s, const float* stats, float dp, float& w, float (&ds)[MAPS]) {
  const float p = exp2f(s[0] - stats[0]);
  w = p;
  ds[0] = p * (dp - stats[MAPS]);
  if (MAPS == 2) {
    const float lp = stats[4] * exp2f(s[MAPS - 1] - stats[1]);
    w -= lp;
    ds[MAPS - 1] = -lp * (dp - stats[3]);
  }
}

// dQ: a warp per (row, head), as in forward.
__device__ __forceinline__ void generalQueries(const General& a) {
  __shared__ float query[WARPS][MAPS * MAX_D], grad[WARPS][MAX_DV];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const i64 item = (i64)blockIdx.x * WARPS + warp;
  if (item >= (i64)a.N * a.H) return;
  const int h = item % a.H, g = h / (a.H / a.G);
  const i64 n = item / a.H, first = n / a.T * a.T;
  stage(query[warp], a.q + n * a.ldq + (i64)h * MAPS * a.D, MAPS * a.D, lane);
  stage(grad[warp], a.o + n * a.ldo + (i64)h * a.DV, a.DV, lane);
  const float* stats = a.stats + ((n / a.T * a.H + h) * a.T + (n - first)) * (MAPS == 2 ? 8 : 2);
  float acc[MAPS][LANES_D] = {};
  for (i64 s0 = first + (a.start != 0 ? a.start[n] : 0); s0 <= n; s0 += 32) {
    const i64 s = s0 + lane;
    float ds[MAPS] = {}, x[MAPS], w;
    if (s <= n) {
#pragma unroll
      for (int i = 0; i < MAPS; i++)
        x[i] = a.scale * LOG2E *
               dot(query[warp] + i * a.D, a.k + s * a.ldk + ((i64)g * a.keys + (a.keys == 2 ? i : 0)) * a.D, a.D);
      cell(x, stats, dot(grad[warp], a.v + s * a.ldv + (i64)g * a.DV, a.DV), w, ds);
    }
    const int count = n - s0 < 31 ? (int)(n - s0) + 1 : 32;
    for (int u = 0; u < count; u++)
#pragma unroll
      for (int i = 0; i < MAPS; i++) {
        const float f = __shfl_sync(0xffffffffu, ds[i], u);
        const bf16* k = a.k + (s0 + u) * a.ldk + ((i64)g * a.keys + (a.keys == 2 ? i : 0)) * a.D;
#pragma unroll
        for (int j = 0; j < LANES_D; j++)
          if (lane + 32 * j < a.D) acc[i][j] = fmaf(f, toFloat(k[lane + 32 * j]), acc[i][j]);
      }
  }
#pragma unroll
  for (int i = 0; i < MAPS; i++)
#pragma unroll
    for (int j = 0; j < LANES_D; j++)
      if (lane + 32 * j < a.D)
        a.dq[n * a.lddq + ((i64)h * MAPS + i) * a.D + lane + 32 * j] = toBf16(a.scale * acc[i][j]);
}

// dK and dV: a warp per (row, group), over the group's heads and the queries at or after the row.
__device__ __forceinline__ void generalKeys(const General& a) {
  __shared__ float key[WARPS][MAPS * MAX_D], value[WARPS][MAX_DV];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, heads = a.H / a.G;
  const i64 item = (i64)blockIdx.x * WARPS + warp;
  if (item >= (i64)a.N * a.G) return;
  const int g = item % a.G;
  const i64 n = item / a.G, first = n / a.T * a.T;
  stage(key[warp], a.k + n * a.ldk + (i64)g * a.keys * a.D, a.keys * a.D, lane);
  stage(value[warp], a.v + n * a.ldv + (i64)g * a.DV, a.DV, lane);
  float dk[MAPS][LANES_D] = {}, dv[LANES_V] = {};
  for (int h = g * heads; h < (g + 1) * heads; h++)
    for (i64 t0 = n; t0 < first + a.T; t0 += 32) {
      const i64 t = t0 + lane;
      float ds[MAPS] = {}, x[MAPS], w = 0.f;
      if (t < first + a.T && (a.start == 0 || first + a.start[t] <= n)) {
#pragma unroll
        for (int i = 0; i < MAPS; i++) x[i] = a.scale * LOG2E * dot(key[warp] + (a.keys == 2 ? i * a.D : 0),
                                                                    a.q + t * a.ldq + ((i64)h * MAPS + i) * a.D, a.D);
        cell(x, a.stats + ((n / a.T * a.H + h) * a.T + (t - first)) * (MAPS == 2 ? 8 : 2),
             dot(value[warp], a.o + t * a.ldo + (i64)h * a.DV, a.DV), w, ds);
      }
      const int count = first + a.T - t0 < 32 ? (int)(first + a.T - t0) : 32;
      for (int u = 0; u < count; u++) {
        const float f = __shfl_sync(0xffffffffu, w, u);
#pragma unroll
        for (int j = 0; j < LANES_V; j++)
          if (lane + 32 * j < a.DV)
            dv[j] = fmaf(f, toFloat(a.o[(t0 + u) * a.ldo + (i64)h * a.DV + lane + 32 * j]), dv[j]);
#pragma unroll
        for (int i = 0; i < MAPS; i++) {
          const float e = __shfl_sync(0xffffffffu, ds[i], u);
#pragma unroll
          for (int j = 0; j < LANES_D; j++)
            if (lane + 32 * j < a.D)
              dk[i][j] = fmaf(e, toFloat(a.q[(t0 + u) * a.ldq + ((i64)h * MAPS + i) * a.D + lane + 32 * j]), dk[i][j]);
        }
      }
    }
#pragma unroll
  for (int j = 0; j < LANES_V; j++)
    if (lane + 32 * j < a.DV) a.dv[n * a.lddv + (i64)g * a.DV + lane + 32 * j] = toBf16(dv[j]);
#pragma unroll
  for (int j = 0; j < LANES_D; j++) {
    const int c = lane + 32 * j;
    if (c >= a.D) continue;
    bf16* to = a.dk + n * a.lddk + (i64)g * a.keys * a.D + c;
    if (MAPS == 2 && a.keys == 1) {
      to[0] = toBf16(a.scale * (dk[0][j] + dk[MAPS - 1][j]));
    } else {
      to[0] = toBf16(a.scale * dk[0][j]);
      if (MAPS == 2) to[a.D] = toBf16(a.scale * dk[MAPS - 1][j]);
    }
  }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
KERNEL_FORWARD(const bf16* q, const bf16* k, const bf16* v, const int* start, const float* lam, const bf16* weight,
               bf16* out, bf16* raw, bf16* out2, float* lse, float* rstd, i64 ldq, i64 ldk, i64 ldv, i64 ldout,
               i64 ldraw, i64 ldo2, i64 ldlse, i64 ldrstd, i64 ldlam, int N, int T, int H, int G, int D, int DV,
               int keys, float scale, float eps, float gain, int each, int norm) {
  General a = {};
  a.q = q, a.k = k, a.v = v, a.start = start, a.lam = lam, a.weight = weight, a.out = out, a.raw = raw, a.out2 = out2,
      a.lse = lse, a.rstd = rstd;
  a.ldq = ldq, a.ldk = ldk, a.ldv = ldv, a.ldout = ldout, a.ldraw = ldraw, a.ldo2 = ldo2, a.ldlse = ldlse,
      a.ldrstd = ldrstd, a.ldlam = ldlam;
  a.N = N, a.T = T, a.H = H, a.G = G, a.D = D, a.DV = DV, a.keys = keys, a.scale = scale, a.eps = eps, a.gain = gain,
      a.each = each, a.norm = norm;
  generalForward(a);
}

#define GRADIENT(NAME, BODY)                                                                                       \
  extern "C" __global__ void __launch_bounds__(32 * WARPS)                                                         \
  NAME(const bf16* q, const bf16* k, const bf16* v, const bf16* o, const int* start, const float* stats, bf16* dq, \
       bf16* dk, bf16* dv, i64 ldq, i64 ldk, i64 ldv, i64 ldo, i64 lddq, i64 lddk, i64 lddv, int N, int T, int H,  \
       int G, int D, int DV, int keys, float scale) {                                                              \
    General a = {};                                                                                                \
    a.q = q, a.k = k, a.v = v, a.o = o, a.start = start, a.stats = stats, a.dq = dq, a.dk = dk, a.dv = dv;         \
    a.ldq = ldq, a.ldk = ldk, a.ldv = ldv, a.ldo = ldo, a.lddq = lddq, a.lddk = lddk, a.lddv = lddv;               \
    a.N = N, a.T = T, a.H = H, a.G = G, a.D = D, a.DV = DV, a.keys = keys, a.scale = scale;                        \
    BODY(a);                                                                                                       \
  }
GRADIENT(KERNEL_QUERIES, generalQueries)
GRADIENT(KERNEL_KEYS, generalKeys)
