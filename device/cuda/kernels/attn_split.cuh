// Causal attention backward in two kernels without sums in memory; the equations are those of attn_backward.cuh.
//
// KERNEL_ROWS makes dQ: a block owns R = 128 queries of one head and walks over the keys they see. A warp owns 16·QF of the
// rows, so S, dP and dS never leave its registers: an accumulator, rounded, is the left side of the next product.
// KERNEL_KEYS makes dK and dV: a block owns BK keys and walks over the queries that see them. It forms Sᵀ = K·Qᵀ and
// dPᵀ = V·dOᵀ, a warp owning 16·KF of the keys, so Wᵀ and dSᵀ stay in registers in the same way. It exists where
// dK and dV of 16 keys fit a warp, KEYS·D + DV ≤ 256.
// S and dP are formed twice, MAPS·4·D + 3·DV multiply-adds per cell instead of MAPS·3·D + 2·DV, and for that each stage costs
// one barrier, no tile is written to shared memory, and where two blocks share an SM one computes while the other
// exponentiates. The order of every sum is fixed by the walk.
#include "attn_tile.cuh"

// NARROW: blocks of four warps for dK and dV, two per SM, at every size.
#ifndef NARROW
#define NARROW 0
#endif

constexpr int D = HEAD, DV = VALUE;
constexpr int STATS = MAPS == 1 ? 2 : 8; // floats of a row: LSE·log2 e, Δ; or both of each, λ and padding
constexpr int AT_DELTA = 4 * MAPS, AT_LAMBDA = 16;

// dQ: rows of a block, fragments of a warp, warps, keys of a stage.
constexpr int R = 128, QF = MAPS * D <= 128 ? 2 : 1, QW = R / 16 / QF;
constexpr int KN = (MAPS == 1 && D == 64) || (MAPS == 2 && KEYS == 1 && QF == 1) ? 64 : 32;

struct Split {
  const bf16 *q, *k, *v, *o;
  const int* start;
  const float* stats;
  bf16 *dq, *dk, *dv;
  i64 ldq, ldk, ldv, ldo, lddq, lddk, lddv;
  int T, H, G, pad;
  float scale;
};

// A rounded accumulator as the left side of a product.
template <int M, int J> struct Held {
  const u32 (&p)[M][J][2];
  __device__ __forceinline__ void load(u32* r, int i, int k) const {
    r[0] = p[i][2 * k][0], r[1] = p[i][2 * k][1], r[2] = p[i][2 * k + 1][0], r[3] = p[i][2 * k + 1][1];
  }
};

template <int M, int J> __device__ __forceinline__ void packAll(u32 (&p)[M][J][2], const float (&s)[M][J][4]) {
#pragma unroll
  for (int mt = 0; mt < M; mt++)
#pragma unroll
    for (int j = 0; j < J; j++)
#pragma unroll
      for (int half = 0; half < 2; half++) p[mt][j][half] = packBf16(s[mt][j][2 * half], s[mt][j][2 * half + 1]);
}

// Writes the sums of a warp's rows 16·(warp·M + mt)….
template <int M, int J> __device__ __forceinline__ void storeRows(const float (&acc)[M][J][4], bf16* to, i64 ld, int rows, float f, int warp, int lane) {
#pragma unroll
  for (int mt = 0; mt < M; mt++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int row = 16 * (warp * M + mt) + (lane >> 2) + 8 * half;
      if (row >= rows) continue;
#pragma unroll
      for (int j = 0; j < J; j++) store2(to + row * ld + 8 * j + 2 * (lane & 3), f * acc[mt][j][2 * half], f * acc[mt][j][2 * half + 1]);
    }
}

// ---- dQ ----

constexpr int AT_RO = MAPS * R * D * 2, AT_RSTATS = AT_RO + R * DV * 2, AT_RSTAGE = AT_RSTATS + R * STATS * 4;
constexpr int RSTAGE_V = KEYS * KN * D * 2, RSTAGE = RSTAGE_V + KN * DV * 2;
typedef float RowScores[QF][KN / 8][4];
typedef u32 RowPacked[QF][KN / 8][2];

// P of map i: rows row0 + 16·mt + 8·half of the block's tile, keys key0 + 8·j + e.
__device__ __forceinline__ void rowMap(RowScores& s, const Split& p, int i, i64 n0, int tile, int key0, u32 base, u32 stage, int warp, int lane) {
  const int row0 = 16 * QF * warp + (lane >> 2);
  clear(s);
  product<QF, KN / 16, D / 16>(s, leftSide<D, false, 1>(base + i * R * D * 2, QF * warp, lane),
                               rightSide<D, false, 1>(stage + (KEYS == 2 ? i : 0) * KN * D * 2, 0, lane));
#pragma unroll
  for (int mt = 0; mt < QF; mt++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const float lse = ldShared(base + AT_RSTATS + (row0 + 16 * mt + 8 * half) * (STATS * 4) + 4 * i);
#pragma unroll
      for (int j = 0; j < KN / 8; j++)
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; e++) s[mt][j][e] = ex2(fmaf(s[mt][j][e], p.scale * LOG2E, -lse));
    }
  const int last = tile + 16 * QF * (warp + 1) - 1; // row of the warp
  if (key0 + KN - 1 <= last - (16 * QF - 1) && (p.start == 0 || key0 >= p.start[n0 + min(last, p.T - 1)])) return;
#pragma unroll
  for (int mt = 0; mt < QF; mt++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int row = tile + row0 + 16 * mt + 8 * half, first = p.start == 0 ? 0 : p.start[n0 + min(row, p.T - 1)];
#pragma unroll
      for (int j = 0; j < KN / 8; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          const int key = key0 + 8 * j + 2 * (lane & 3) + e;
          if (key > row || key < first) s[mt][j][2 * half + e] = 0.f;
        }
    }
}

// dS = f·P∘(dP − Δ) with f = 1, or −λ for the second map.
__device__ __forceinline__ void rowGrad(RowPacked& pk, const RowScores& dp, int i, u32 base, int warp, int lane) {
#pragma unroll
  for (int mt = 0; mt < QF; mt++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const u32 at = base + AT_RSTATS + (16 * (QF * warp + mt) + (lane >> 2) + 8 * half) * (STATS * 4);
      const float d = ldShared(at + AT_DELTA + 4 * i), f = i == 1 ? -ldShared(at + AT_LAMBDA) : 1.f;
#pragma unroll
      for (int j = 0; j < KN / 8; j++) {
        const u32 x = pk[mt][j][half];
        pk[mt][j][half] = packBf16(f * lowBf16(x) * (dp[mt][j][2 * half] - d), f * highBf16(x) * (dp[mt][j][2 * half + 1] - d));
      }
    }
}

__device__ __forceinline__ void loadKeys(u32 at, const Split& p, i64 n0, int key0, int group, int tid) {
  const i64 n = n0 + key0;
#pragma unroll
  for (int i = 0; i < KEYS; i++)
    tileLoad<KN, D, 32 * QW>(at + i * KN * D * 2, p.k + n * p.ldk + ((i64)group * KEYS + i) * D, p.ldk, p.T - key0, tid);
  tileLoad<KN, DV, 32 * QW>(at + RSTAGE_V, p.v + n * p.ldv + (i64)group * DV, p.ldv, p.T - key0, tid);
}

// A warp's share of one stage.
__device__ __forceinline__ void rowStage(float (&dq)[MAPS][QF][D / 8][4], const Split& p, i64 n0, int tile, int key0, u32 base, u32 stage, int warp, int lane) {
  RowScores s;
  RowPacked pk[MAPS];
#pragma unroll
  for (int i = 0; i < MAPS; i++) {
    rowMap(s, p, i, n0, tile, key0, base, stage, warp, lane);
    packAll(pk[i], s);
  }
  clear(s);
  product<QF, KN / 16, DV / 16>(s, leftSide<DV, false, 1>(base + AT_RO, QF * warp, lane), rightSide<DV, false, 1>(stage + RSTAGE_V, 0, lane));
#pragma unroll
  for (int i = 0; i < MAPS; i++) {
    rowGrad(pk[i], s, i, base, warp, lane);
    product<QF, D / 16, KN / 16>(dq[i], Held<QF, KN / 8>{pk[i]}, rightSide<D, true, 1>(stage + (KEYS == 2 ? i : 0) * KN * D * 2, 0, lane));
  }
}

extern "C" __global__ void __launch_bounds__(32 * QW, 8 / QW)
KERNEL_ROWS(const bf16* q, const bf16* k, const bf16* v, const bf16* o, const int* start, const float* stats, bf16* dqs,
            i64 ldq, i64 ldk, i64 ldv, i64 ldo, i64 lddq, int T, int H, int G, int pad, float scale) {
  const Split p = {q, k, v, o, start, stats, dqs, 0, 0, ldq, ldk, ldv, ldo, lddq, 0, 0, T, H, G, pad, scale};
  const u32 base = sharedBase();
  int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
  const int tile = (gridDim.x - 1 - blockIdx.x) * R, h = blockIdx.y, b = blockIdx.z, group = h / (H / G), rows = T - tile;
  const i64 n0 = (i64)b * T, n = n0 + tile;
#pragma unroll
  for (int i = 0; i < MAPS; i++) tileLoad<R, D, 32 * QW>(base + i * R * D * 2, q + n * ldq + ((i64)h * MAPS + i) * D, ldq, rows, tid);
  tileLoad<R, DV, 32 * QW>(base + AT_RO, o + n * ldo + (i64)h * DV, ldo, rows, tid);
  for (int x = tid; x < R * STATS / 4; x += 32 * QW) { // rows behind pad become 0 and are not stored
    const bool in = tile * STATS + 4 * x < pad * STATS;
    cpAsync16(base + AT_RSTATS + 16 * x, stats + (in ? ((i64)(b * H + h) * pad + tile) * STATS + 4 * x : 0), in ? 16 : 0);
  }
  const int end = min(tile + R, T); // of the keys
  int key0 = start == 0 ? 0 : start[n] / KN * KN;
  loadKeys(base + AT_RSTAGE, p, n0, key0, group, tid);
  cpCommit();
  float dq[MAPS][QF][D / 8][4];
#pragma unroll
  for (int i = 0; i < MAPS; i++) clear(dq[i]);
  for (int odd = 0; key0 < end; odd ^= 1, key0 += KN) {
    tid = fresh((u32)tid), warp = tid >> 5, lane = tid & 31; // addresses are formed anew in each turn
    cpWait<0>();
    __syncthreads();
    if (key0 + KN < end) loadKeys(base + AT_RSTAGE + (odd ^ 1) * RSTAGE, p, n0, key0 + KN, group, tid);
    cpCommit();
    if (key0 < tile + 16 * QF * (warp + 1)) rowStage(dq, p, n0, tile, key0, base, base + AT_RSTAGE + odd * RSTAGE, warp, lane);
  }
#pragma unroll
  for (int i = 0; i < MAPS; i++) storeRows(dq[i], dqs + n * lddq + ((i64)h * MAPS + i) * D, lddq, rows, scale, warp, lane);
}

// ---- dK and dV ----
#if KEYS * HEAD + VALUE <= 256
// Fragments of a warp, warps, keys of the block, queries of a stage.
constexpr int KF = KEYS * D + DV <= 128 ? 2 : 1, KW = NARROW || D <= 64 ? 4 : 8, BK = 16 * KF * KW;
constexpr int QS = KF == 2 || (NARROW && MAPS == 2) ? 32 : 64;

constexpr int AT_KV = KEYS * BK * D * 2, AT_KSTAGE = AT_KV + BK * DV * 2;
constexpr int KSTAGE_O = MAPS * QS * D * 2, KSTAGE_STATS = KSTAGE_O + QS * DV * 2, KSTAGE = KSTAGE_STATS + QS * STATS * 4;
typedef float KeyScores[KF][QS / 8][4];
typedef u32 KeyPacked[KF][QS / 8][2];

// One statistic (at a place in bytes) of the two neighbouring queries of column block j.
__device__ __forceinline__ void keyStats(float (&x)[2], u32 stage, int j, int place, int lane) {
  const u32 at = stage + KSTAGE_STATS + (8 * j + 2 * (lane & 3)) * (STATS * 4);
  if (MAPS == 1) { // both rows in one read
    u32 all[4];
    ldShared4(all, at);
    x[0] = __uint_as_float(place == 0 ? all[0] : all[1]), x[1] = __uint_as_float(place == 0 ? all[2] : all[3]);
  } else
    x[0] = ldShared(at + place), x[1] = ldShared(at + STATS * 4 + place);
}

// Pᵀ of map i: keys key0 + 16·mt + 8·half, queries row0 + 8·j + e, both of the sequence.
__device__ __forceinline__ void keyMap(KeyScores& s, const Split& p, int i, i64 n0, int n, int row0, u32 base, u32 stage, int warp, int lane) {
  const int key0 = n * BK + 16 * KF * warp + (lane >> 2);
  const bool mask = n * BK + 16 * KF * (warp + 1) - 1 > row0 || (p.start != 0 && n * BK < p.start[n0 + min(row0 + QS, p.T) - 1]);
  clear(s);
  product<KF, QS / 16, D / 16>(s, leftSide<D, false, 1>(base + (KEYS == 2 ? i : 0) * BK * D * 2, KF * warp, lane), rightSide<D, false, 1>(stage + i * QS * D * 2, 0, lane));
#pragma unroll
  for (int j = 0; j < QS / 8; j++) {
    float lse[2];
    keyStats(lse, stage, j, 4 * i, lane);
#pragma unroll
    for (int mt = 0; mt < KF; mt++)
#pragma unroll
      for (int e = 0; e < 4; e++) s[mt][j][e] = ex2(fmaf(s[mt][j][e], p.scale * LOG2E, -lse[e & 1]));
  }
  if (!mask) return;
#pragma unroll
  for (int j = 0; j < QS / 8; j++)
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const int row = row0 + 8 * j + 2 * (lane & 3) + e;
      const int first = p.start == 0 ? 0 : p.start[n0 + min(row, p.T - 1)];
#pragma unroll
      for (int mt = 0; mt < KF; mt++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
          const int key = key0 + 16 * mt + 8 * half;
          if (key > row || key < first) s[mt][j][2 * half + e] = 0.f;
        }
    }
}

// Wᵀ = P1ᵀ − P2ᵀ·λ, into s.
__device__ __forceinline__ void keySubtract(KeyScores& s, const KeyScores& t, u32 stage, int lane) {
#pragma unroll
  for (int j = 0; j < QS / 8; j++) {
    float lam[2];
    keyStats(lam, stage, j, AT_LAMBDA, lane);
#pragma unroll
    for (int mt = 0; mt < KF; mt++)
#pragma unroll
      for (int e = 0; e < 4; e++) s[mt][j][e] = fmaf(-lam[e & 1], t[mt][j][e], s[mt][j][e]);
  }
}

// dSᵀ = f·Pᵀ∘(dPᵀ − Δ) with f = 1, or −λ for the second map.
__device__ __forceinline__ void keyGrad(KeyPacked& pk, const KeyScores& dp, int i, u32 stage, int lane) {
#pragma unroll
  for (int j = 0; j < QS / 8; j++) {
    float d[2], f[2] = {-1.f, -1.f};
    keyStats(d, stage, j, AT_DELTA + 4 * i, lane);
    if (MAPS == 2 && i == 1) keyStats(f, stage, j, AT_LAMBDA, lane);
    f[0] = -f[0], f[1] = -f[1];
#pragma unroll
    for (int mt = 0; mt < KF; mt++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const u32 x = pk[mt][j][half];
        pk[mt][j][half] = packBf16(f[0] * lowBf16(x) * (dp[mt][j][2 * half] - d[0]), f[1] * highBf16(x) * (dp[mt][j][2 * half + 1] - d[1]));
      }
  }
}

__device__ __forceinline__ void loadRows(u32 at, const Split& p, int b, int h, int row0, int tid) {
  const i64 n = (i64)b * p.T + row0;
#pragma unroll
  for (int i = 0; i < MAPS; i++) tileLoad<QS, D, 32 * KW>(at + i * QS * D * 2, p.q + n * p.ldq + ((i64)h * MAPS + i) * D, p.ldq, p.T - row0, tid);
  tileLoad<QS, DV, 32 * KW>(at + KSTAGE_O, p.o + n * p.ldo + (i64)h * DV, p.ldo, p.T - row0, tid);
  const float* stats = p.stats + ((i64)(b * p.H + h) * p.pad + row0) * STATS;
  if (tid < QS * STATS / 4) cpAsync16(at + KSTAGE_STATS + tid * 16, stats + tid * 4);
}

// A warp's share of one stage.
__device__ __forceinline__ void keyStage(float (&dk)[KEYS][KF][D / 8][4], float (&dv)[KF][DV / 8][4], const Split& p, i64 n0, int n, int row0,
                                         u32 base, u32 stage, int warp, int lane) {
  KeyScores s;
  KeyPacked pk[MAPS];
  keyMap(s, p, 0, n0, n, row0, base, stage, warp, lane);
  packAll(pk[0], s);
  if (MAPS == 2) {
    KeyScores t;
    keyMap(t, p, MAPS - 1, n0, n, row0, base, stage, warp, lane);
    packAll(pk[MAPS - 1], t);
    keySubtract(s, t, stage, lane);
    KeyPacked w;
    packAll(w, s);
    product<KF, DV / 16, QS / 16>(dv, Held<KF, QS / 8>{w}, rightSide<DV, true, 1>(stage + KSTAGE_O, 0, lane));
  } else
    product<KF, DV / 16, QS / 16>(dv, Held<KF, QS / 8>{pk[0]}, rightSide<DV, true, 1>(stage + KSTAGE_O, 0, lane));
  clear(s);
  product<KF, QS / 16, DV / 16>(s, leftSide<DV, false, 1>(base + AT_KV, KF * warp, lane), rightSide<DV, false, 1>(stage + KSTAGE_O, 0, lane));
#pragma unroll
  for (int i = 0; i < MAPS; i++) {
    keyGrad(pk[i], s, i, stage, lane);
    product<KF, D / 16, QS / 16>(dk[KEYS == 2 ? i : 0], Held<KF, QS / 8>{pk[i]}, rightSide<D, true, 1>(stage + i * QS * D * 2, 0, lane));
  }
}

// The end of the queries that see keys from n·BK on: documents end the walk early.
__device__ __forceinline__ int rowsEnd(const Split& p, i64 n0, int n) {
  int lo = n * BK / QS, hi = (p.T - 1) / QS;
  while (p.start != 0 && lo < hi) {
    const int mid = (lo + hi + 1) / 2;
    if (p.start[n0 + mid * QS] < n * BK + BK) lo = mid;
    else hi = mid - 1;
  }
  return (hi + 1) * QS;
}

extern "C" __global__ void __launch_bounds__(32 * KW, 8 / KW)
KERNEL_KEYS(const bf16* q, const bf16* k, const bf16* v, const bf16* o, const int* start, const float* stats, bf16* dks, bf16* dvs,
            i64 ldq, i64 ldk, i64 ldv, i64 ldo, i64 lddk, i64 lddv, int T, int H, int G, int pad, float scale) {
  const Split p = {q, k, v, o, start, stats, 0, dks, dvs, ldq, ldk, ldv, ldo, 0, lddk, lddv, T, H, G, pad, scale};
  const u32 base = sharedBase();
  int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
  const int n = blockIdx.x, group = blockIdx.y, b = blockIdx.z, rows = T - n * BK, heads = H / G;
  const i64 n0 = (i64)b * T, key = n0 + n * BK;
#pragma unroll
  for (int i = 0; i < KEYS; i++) tileLoad<BK, D, 32 * KW>(base + i * BK * D * 2, k + key * ldk + ((i64)group * KEYS + i) * D, ldk, rows, tid);
  tileLoad<BK, DV, 32 * KW>(base + AT_KV, v + key * ldv + (i64)group * DV, ldv, rows, tid);
  const int first = n * BK / QS * QS, end = rowsEnd(p, n0, n);
  int h = group * heads, row0 = first;
  loadRows(base + AT_KSTAGE, p, b, h, row0, tid);
  cpCommit();
  float dk[KEYS][KF][D / 8][4], dv[KF][DV / 8][4];
#pragma unroll
  for (int i = 0; i < KEYS; i++) clear(dk[i]);
  clear(dv);
  for (int odd = 0; h < (group + 1) * heads; odd ^= 1) {
    tid = fresh((u32)tid), warp = tid >> 5, lane = tid & 31;
    const int at = row0;
    row0 += QS;
    if (row0 >= end) row0 = first, h++;
    cpWait<0>();
    __syncthreads();
    if (h < (group + 1) * heads) loadRows(base + AT_KSTAGE + (odd ^ 1) * KSTAGE, p, b, h, row0, tid);
    cpCommit();
    if (n * BK + 16 * KF * warp < at + QS) keyStage(dk, dv, p, n0, n, at, base, base + AT_KSTAGE + odd * KSTAGE, warp, lane);
  }
#pragma unroll
  for (int i = 0; i < KEYS; i++) storeRows(dk[i], dks + key * lddk + ((i64)group * KEYS + i) * D, lddk, rows, scale, warp, lane);
  storeRows(dv, dvs + key * lddv + (i64)group * DV, lddv, rows, 1.f, warp, lane);
}
#endif
