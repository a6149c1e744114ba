// Causal attention forward on tensor cores (mma.sync, cp.async), one map (MAPS 1) or the difference of two (MAPS 2):
//
//   A_i = softmax(Scale·Q_i·K_iᵀ),  raw = A_1·V  or  (A_1 − λ·A_2)·V,  out = HeadNorm(raw).
//
// Built with -DKEYS -DHEAD -DVALUE for one shape, -DMT (row fragments of a warp) -DBN -DBLOCKS (of an SM) for its
// tiles. A block owns BM query rows of one head and walks over its key tiles of BN, double-buffered by cp.async; K and
// V are read once for both maps. 16·MT rows belong to one warp (MAPS 1) or to a pair of warps (MAPS 2): warp c of a
// pair forms S_c and its online softmax, hands P_c (as fragments, through shared memory) and its row factors to its
// partner, and accumulates half of V's columns for both maps, so each fragment of V feeds 2·MT products. Without the
// pair, two accumulators of 16 × 256 would need 256 registers.
// The running maximum is raised only when it grows by 2^8 or more: P stays below 2^8, sums stay exact enough in fp32,
// and accumulators are almost never rescaled.
//
// Work per (query, key) cell in multiply-adds: MAPS·(D + DV), 6·D for V1 (DV = 2D) and 2·D for plain.
// Registers: the sums take MT·DV/2 ≤ 128, S 32·MT, Q D/4 where it is held; of 255 with one block on an SM, of 128 with
// two. A block has 8 warps for MAPS 2 and 4 for MAPS 1; how many share an SM is a choice by shape. For D = 128, DV =
// 256 and a tile of 64 × 64 the fragments of K and V cost 262 KB of shared memory reads, 2050 cycles at 128 bytes each,
// beside 1536 mma at 1.6 cycles: the tensor pipe, fed by mma.sync, is the bound, about 620 TFLOP/s on an H200.
#include "attn_tile.cuh"

constexpr int D = HEAD, DV = VALUE;
constexpr int RW = 4;                            // warps (or pairs) along rows
constexpr int CW = MAPS;                         // warps along V's columns
constexpr int THREADS = 32 * RW * CW;
constexpr int BM = 16 * MT * RW;
constexpr int ON = DV / 16 / CW;                 // column fragments of a warp's output
constexpr int SQ = BM * D * 2, SK = BN * D * 2, SV = BN * DV * 2; // bytes of a tile of Q, K, V
constexpr int STAGE = KEYS * SK + SV;
// A warp's P, then its row factors, for its partner.
constexpr int FACTORS = MT * (BN / 16) * 512, PAIR = FACTORS + MT * 256;
constexpr int SP = MAPS == 2 ? RW * CW * PAIR : 0;
// Q stays in registers if they suffice, and P takes its place in shared memory.
constexpr bool HELD = MT == 1 && (BLOCKS == 1 || DV <= 64);
constexpr int AT_STAGE = HELD && SP > MAPS * SQ ? SP : MAPS * SQ;
constexpr int AT_P = HELD ? 0 : AT_STAGE + 2 * STAGE, AT_ROW = HELD ? AT_STAGE + 2 * STAGE : AT_P + SP;
constexpr float RAISE = 8.f;

struct Forward {
  const bf16 *q, *k, *v;
  const int* start;
  const float* lam;
  const bf16* weight;
  bf16 *out, *raw, *out2;
  float *lse, *rstd;
  i64 ldq, ldk, ldv, ldo, ldraw, ldo2, ldlse, ldrstd, ldlam;
  int T, H, G;
  float scale, eps, gain;
  int each, norm; // λ is [N,H]; the head norm is on
};

// A warp's part: rows r·16 + 16·RW·mt + g and + 8, columns of half c.
struct Place {
  int lane, r, c, g, t, m0;
  __device__ __forceinline__ int row(int mt, int half) const { return m0 + 16 * (mt * RW + r) + g + 8 * half; }
  __device__ __forceinline__ int col(int j) const { return 16 * ((j >> 1) * CW + c) + 8 * (j & 1) + 2 * t; }
};

// Partners are adjacent warps and so use two schedulers: the warps of one scheduler belong to different pairs, and one
// can compute exponentials while the other multiplies.
__device__ __forceinline__ Place placeOf(int tid, int m0) {
  const int warp = tid >> 5, lane = tid & 31;
  return {lane, warp / CW, warp % CW, lane >> 2, lane & 3, m0};
}

__device__ __forceinline__ void loadKeys(u32 at, const bf16* k, const bf16* v, const Forward& p, int j, int tid) {
  int rows = p.T - j * BN;
#pragma unroll
  for (int i = 0; i < KEYS; i++)
    tileLoad<BN, D, THREADS>(at + i * SK, k + (i64)j * BN * p.ldk + i * D, p.ldk, rows, tid);
  tileLoad<BN, DV, THREADS>(at + KEYS * SK, v + (i64)j * BN * p.ldv, p.ldv, rows, tid);
}

// S outside the causal triangle, or before the row's document, becomes −inf.
__device__ __forceinline__ void maskTile(float (&s)[MT][BN / 8][4], const Forward& p, const Place& w, i64 n0, int key) {
#pragma unroll
  for (int mt = 0; mt < MT; mt++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int row = w.row(mt, half), first = p.start == 0 ? 0 : p.start[n0 + min(row, p.T - 1)];
#pragma unroll
      for (int j = 0; j < BN / 8; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          const int at = key + 8 * j + 2 * w.t + e;
          if (at > row || at < first) s[mt][j][2 * half + e] = -INFINITE;
        }
    }
}

// One tile of the online softmax: s becomes P relative to the running maximum; f are the factors of earlier sums.
__device__ __forceinline__ void softmaxTile(float (&s)[MT][BN / 8][4], float (&top)[MT][2], float (&sum)[MT][2],
                                            float (&f)[MT][2], float c) {
#pragma unroll
  for (int mt = 0; mt < MT; mt++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float x = -INFINITE;
#pragma unroll
      for (int j = 0; j < BN / 8; j++) x = fmaxf(x, fmaxf(s[mt][j][2 * half], s[mt][j][2 * half + 1]));
      x = rowMax(x) * c;
      float old = top[mt][half];
      float now = x > old + RAISE ? x : old; // from −inf any x is a raise
      float base = now == -INFINITE ? 0.f : now;
      f[mt][half] = now == old ? 1.f : ex2(old - base);
      float z = 0.f;
#pragma unroll
      for (int j = 0; j < BN / 8; j++) {
        float a = ex2(fmaf(s[mt][j][2 * half], c, -base)), b = ex2(fmaf(s[mt][j][2 * half + 1], c, -base));
        s[mt][j][2 * half] = a;
        s[mt][j][2 * half + 1] = b;
        z += a + b;
      }
      top[mt][half] = now;
      sum[mt][half] = sum[mt][half] * f[mt][half] + z;
    }
}

// P as left fragments of the next product.
__device__ __forceinline__ void packTile(u32 (&p)[MT][BN / 16][4], const float (&s)[MT][BN / 8][4]) {
#pragma unroll
  for (int mt = 0; mt < MT; mt++)
#pragma unroll
    for (int k = 0; k < BN / 16; k++) {
      p[mt][k][0] = packBf16(s[mt][2 * k][0], s[mt][2 * k][1]);
      p[mt][k][1] = packBf16(s[mt][2 * k][2], s[mt][2 * k][3]);
      p[mt][k][2] = packBf16(s[mt][2 * k + 1][0], s[mt][2 * k + 1][1]);
      p[mt][k][3] = packBf16(s[mt][2 * k + 1][2], s[mt][2 * k + 1][3]);
    }
}

typedef float Acc[MAPS * MT][2 * ON][4]; // own map's rows first, then the partner's

__device__ __forceinline__ void rescale(Acc& o, const float (&f)[MAPS][MT][2]) {
  bool some = false;
#pragma unroll
  for (int i = 0; i < MAPS * MT; i++) some |= f[i / MT][i % MT][0] != 1.f || f[i / MT][i % MT][1] != 1.f;
  if (!anyLane(some)) return;
#pragma unroll
  for (int i = 0; i < MAPS * MT; i++)
#pragma unroll
    for (int j = 0; j < 2 * ON; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) o[i][j][e] *= f[i / MT][i % MT][e >> 1];
}

// P as the left operand of P·V: the warp's own fragments, then its partner's in shared memory.
struct Weights {
  const u32 (&own)[MT][BN / 16][4];
  u32 other;
  __device__ __forceinline__ void load(u32* r, int i, int k) const {
    if (i >= MT) {
      ldShared4(r, other + ((i - MT) * (BN / 16) + k) * 512);
      return;
    }
#pragma unroll
    for (int e = 0; e < 4; e++) r[e] = own[i < MT ? i : 0][k][e];
  }
};

// Q as the left operand of Q·Kᵀ if it stays in registers.
struct Held {
  const u32 (&f)[D / 16][4];
  __device__ __forceinline__ void load(u32* r, int i, int k) const {
#pragma unroll
    for (int e = 0; e < 4; e++) r[e] = f[k][e];
  }
};

// Turns the accumulators into raw (in o[0…MT−1]) and stores Out2 = A2·V. inv holds 1/sum of both maps.
__device__ __forceinline__ void mixMaps(const Forward& p, const Place& w, Acc& o, const float (&inv)[MAPS][MT][2],
                                        int h, i64 n0) {
#pragma unroll
  for (int i = 0; i < 2 * MT; i++) {
    const int mt = i >> 1, half = i & 1, row = w.row(mt, half);
    const float own = inv[0][mt][half], other = inv[MAPS - 1][mt][half];
    float a = own, b = 0.f;
    if (MAPS == 2) {
      float lam = p.each == 0 ? p.lam[0] : row < p.T ? p.lam[(n0 + row) * p.ldlam + h] : 0.f;
      a = w.c == 0 ? own : -lam * own;
      b = w.c == 0 ? -lam * other : other;
    }
    u32 second[2 * ON]; // A2·V
#pragma unroll
    for (int j = 0; j < 2 * ON; j++) {
      float *x = &o[mt][j][2 * half], *y = &o[(MAPS - 1) * MT + mt][j][2 * half];
      second[j] = w.c == 1 ? packBf16(x[0] * own, x[1] * own) : packBf16(y[0] * other, y[1] * other);
      x[0] = MAPS == 2 ? a * x[0] + b * y[0] : a * x[0];
      x[1] = MAPS == 2 ? a * x[1] + b * y[1] : a * x[1];
    }
    if (MAPS == 2 && p.out2 != 0)
      storePieces<2 * ON, CW>(p.out2 + (n0 + row) * p.ldo2 + (i64)h * DV, second, w.c, w.t, row < p.T);
  }
}

// Stores a row's raw or, with the norm, raw, rstd and out = gain·w·raw·rstd.
__device__ __forceinline__ void storeRows(const Forward& p, const Place& w, const Acc& o, const float (&rstd)[MT][2],
                                          int h, i64 n0) {
#pragma unroll
  for (int i = 0; i < 2 * MT; i++) {
    const int mt = i >> 1, half = i & 1, row = w.row(mt, half);
    const i64 n = n0 + row;
    const bool live = row < p.T;
    u32 raw[2 * ON], out[2 * ON];
#pragma unroll
    for (int j = 0; j < 2 * ON; j++) {
      const int col = w.col(j);
      float x = o[mt][j][2 * half], y = o[mt][j][2 * half + 1];
      raw[j] = packBf16(x, y);
      if (p.norm) {
        const float f = p.gain * rstd[mt][half];
        x *= f * (p.weight != 0 ? toFloat(p.weight[col]) : 1.f);
        y *= f * (p.weight != 0 ? toFloat(p.weight[col + 1]) : 1.f);
      }
      out[j] = packBf16(x, y);
    }
    if (p.norm && p.rstd != 0 && w.c == 0 && w.t == 0 && live) p.rstd[n * p.ldrstd + h] = rstd[mt][half];
    if (p.norm && p.raw != 0) storePieces<2 * ON, CW>(p.raw + n * p.ldraw + (i64)h * DV, raw, w.c, w.t, live);
    storePieces<2 * ON, CW>(p.out + n * p.ldo + (i64)h * DV, out, w.c, w.t, live);
  }
}

// Sums, difference, norm and stores. rows is 16 bytes of shared memory for each of the block's rows.
__device__ __forceinline__ void finish(const Forward& p, const Place& w, Acc& o, const float (&top)[MT][2],
                                       const float (&sum)[MT][2], u32 rows, int h, i64 n0) {
  float inv[MAPS][MT][2], rstd[MT][2];
#pragma unroll
  for (int i = 0; i < 2 * MT; i++) {
    const int mt = i >> 1, half = i & 1, row = w.row(mt, half);
    const float l = rowSum(sum[mt][half]);
    inv[0][mt][half] = 1.f / l;
    if (w.t == 0) {
      if (MAPS == 2) stShared(rows + (row - w.m0) * 16 + w.c * 4, inv[0][mt][half]);
      if (p.lse != 0 && row < p.T) p.lse[(n0 + row) * p.ldlse + h * MAPS + w.c] = (top[mt][half] + lg2(l)) * LN2;
    }
  }
  if (MAPS == 2) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2 * MT; i++)
      inv[MAPS - 1][i >> 1][i & 1] = ldShared(rows + (w.row(i >> 1, i & 1) - w.m0) * 16 + (1 - w.c) * 4);
  }
  mixMaps(p, w, o, inv, h, n0);
  if (p.norm) {
#pragma unroll
    for (int i = 0; i < 2 * MT; i++) {
      float z = 0.f;
#pragma unroll
      for (int j = 0; j < 2 * ON; j++) {
        float x = o[i >> 1][j][2 * (i & 1)], y = o[i >> 1][j][2 * (i & 1) + 1];
        z += x * x + y * y;
      }
      rstd[i >> 1][i & 1] = rowSum(z);
      if (MAPS == 2 && w.t == 0) stShared(rows + (w.row(i >> 1, i & 1) - w.m0) * 16 + 8 + w.c * 4, rstd[i >> 1][i & 1]);
    }
    if (MAPS == 2) __syncthreads();
#pragma unroll
    for (int i = 0; i < 2 * MT; i++) {
      const u32 at = rows + (w.row(i >> 1, i & 1) - w.m0) * 16 + 8;
      float z = MAPS == 2 ? ldShared(at) + ldShared(at + 4) : rstd[i >> 1][i & 1]; // the same order in both warps
      rstd[i >> 1][i & 1] = rsqrtf(z * (1.f / DV) + p.eps);
    }
  }
  storeRows(p, w, o, rstd, h, n0);
}

// S of the warp's own map.
__device__ __forceinline__ void scores(float (&s)[MT][BN / 8][4], const u32 (&fq)[D / 16][4], u32 q, u32 k,
                                       int lane, int r) {
  clear(s);
  if constexpr (HELD)
    product<MT, BN / 16, D / 16>(s, Held{fq}, rightSide<D, false, 1>(k, 0, lane));
  else
    product<MT, BN / 16, D / 16>(s, leftSide<D, false, RW>(q, r, lane), rightSide<D, false, 1>(k, 0, lane));
}

// Sends this warp's P and factors to its partner, and receives the partner's factors.
__device__ __forceinline__ void exchange(u32 mine, u32 his, const u32 (&pf)[MT][BN / 16][4], float (&f)[MAPS][MT][2],
                                         int lane, int r) {
#pragma unroll
  for (int mt = 0; mt < MT; mt++) {
#pragma unroll
    for (int k = 0; k < BN / 16; k++) stShared4(mine + (mt * (BN / 16) + k) * 512 + lane * 16, pf[mt][k]);
#pragma unroll
    for (int half = 0; half < 2; half++) stShared(mine + FACTORS + (mt * 2 + half) * 128 + lane * 4, f[0][mt][half]);
  }
  barrierOf(1 + r, 64);
#pragma unroll
  for (int i = 0; i < 2 * MT; i++) f[MAPS - 1][i >> 1][i & 1] = ldShared(his + FACTORS + i * 128 + lane * 4);
}

__device__ __forceinline__ void forward(const Forward& p) {
  const u32 base = sharedBase();
  int tid = threadIdx.x;
  const int h = blockIdx.y, b = blockIdx.z, grp = h / (p.H / p.G);
  Place w = placeOf(tid, (gridDim.x - 1 - blockIdx.x) * BM); // long rows first
  const i64 n0 = (i64)b * p.T;
  const bf16 *k = p.k + n0 * p.ldk + (i64)grp * KEYS * D, *v = p.v + n0 * p.ldv + (i64)grp * DV;
  const int rows = min(p.T - w.m0, BM), last = (w.m0 + rows - 1) / BN;
  int j = 0, late = 0;
  if (p.start != 0) j = p.start[n0 + w.m0] / BN, late = p.start[n0 + w.m0 + rows - 1];
#pragma unroll
  for (int i = 0; i < MAPS; i++)
    tileLoad<BM, D, THREADS>(base + i * SQ, p.q + (n0 + w.m0) * p.ldq + ((i64)h * MAPS + i) * D, p.ldq, rows, tid);
  loadKeys(base + AT_STAGE, k, v, p, j, tid);
  cpCommit();
  cpWait<0>();
  __syncthreads();
  u32 fq[D / 16][4];
  if (HELD) {
#pragma unroll
    for (int i = 0; i < D / 16; i++) leftSide<D, false, RW>(base + w.c * SQ, w.r, w.lane).load(fq[i], 0, i);
    __syncthreads();
  }
  Acc o;
  clear(o);
  float top[MT][2], sum[MT][2];
#pragma unroll
  for (int i = 0; i < 2 * MT; i++) top[i >> 1][i & 1] = -INFINITE, sum[i >> 1][i & 1] = 0.f;
  for (int odd = 0; j <= last; j++, odd ^= 1) {
    const u32 at = base + AT_STAGE + odd * STAGE;
    tid = fresh((u32)tid);
    w = placeOf(tid, w.m0); // recompute addresses in each iteration
    if (j < last) loadKeys(base + AT_STAGE + (odd ^ 1) * STAGE, k, v, p, j + 1, tid);
    cpCommit();
    float s[MT][BN / 8][4], f[MAPS][MT][2];
    u32 pf[MT][BN / 16][4];
    scores(s, fq, base + w.c * SQ, at + (KEYS == 2 ? w.c * SK : 0), w.lane, w.r);
    if (j * BN + BN - 1 > w.m0 || j * BN < late) maskTile(s, p, w, n0, j * BN);
    softmaxTile(s, top, sum, f[0], p.scale * LOG2E);
    packTile(pf, s);
    const u32 mine = base + AT_P + (w.c * RW + w.r) * PAIR, his = base + AT_P + ((1 - w.c) * RW + w.r) * PAIR;
    if (MAPS == 2) exchange(mine, his, pf, f, w.lane, w.r);
    rescale(o, f);
    product<MAPS * MT, ON, BN / 16>(o, Weights{pf, his + w.lane * 16},
                                    rightSide<DV, true, CW>(at + KEYS * SK, w.c, w.lane));
    cpWait<0>();
    __syncthreads();
  }
  finish(p, w, o, top, sum, base + AT_ROW, h, n0);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
KERNEL(const bf16* q, const bf16* k, const bf16* v, const int* start, const float* lam, const bf16* weight,
       bf16* out, bf16* raw, bf16* out2, float* lse, float* rstd,
       i64 ldq, i64 ldk, i64 ldv, i64 ldo, i64 ldraw, i64 ldo2, i64 ldlse, i64 ldrstd, i64 ldlam,
       int T, int H, int G, float scale, float eps, float gain, int each, int norm) {
  forward({q, k, v, start, lam, weight, out, raw, out2, lse, rstd, ldq, ldk, ldv, ldo, ldraw, ldo2, ldlse, ldrstd,
           ldlam, T, H, G, scale, eps, gain, each, norm});
}
