// Causal attention backward on tensor cores, one map (MAPS 1) or the difference of two (MAPS 2). With dO the gradient of raw
// and Δ_i from attention_prepare.cu:
//
//   P_i = exp(Scale·Q_i·K_iᵀ − LSE_i),  dP = dO·Vᵀ,  W = P_1 − λ·P_2,  dV = Wᵀ·dO
//   dS_1 = P_1∘(dP − Δ_1),  dS_2 = −λ·P_2∘(dP − Δ_2),  dK_i = Scale·dS_iᵀ·Q_i,  dQ_i = Scale·dS_i·K_i
//
// Built with -DKEYS -DHEAD -DVALUE for one shape. A block owns BN keys of one group and walks over the query tiles that see
// them, head by head: K, V and the sums of dK, dV stay on the SM, Q, dO and the rows' statistics come double-buffered by
// cp.async, W and dS_i pass through shared memory from the layout of S to those of the three products after it.
// dP and dV are formed once for both maps: MAPS·3·D + 2·DV multiply-adds per cell, 10·D for V1 and 5·D for plain.
//
// dQ is a sum over key tiles, and its order is fixed: a query tile's sum lies in fp32 memory as fragments, 8 parts that belong
// to warps 0…7 of every block, each part with a counter of the key tiles added to it. The key tile on the diagonal
// stores, the one before it waits for the counter and adds, and so on down to the first. Blocks take their tile from a
// ticket, highest tile first, so whoever is waited for is running or done; each starts on its own diagonal, one step
// behind its predecessor, and seldom waits. Traffic: BM·D·MAPS·4 bytes of vector adds per BM × BN tile, in L2. The other
// deterministic way, a second kernel over query tiles, costs S and dP again: 14·D instead of 10·D, and 8.4k cycles of
// shared memory instead of 5.9k per 64 × 64 tile (D = 128, DV = 256); there the bound is those 5.9k cycles against 4.1k of
// mma, about 430 TFLOP/s on an H200.
// Registers: dK, dV take BN·(KEYS·D + DV)/256 ≤ 128 of 255; S, P, dP ≤ 64 more; one block of 8 warps per SM.
#include "attn_tile.cuh"

// What benchmarks take out or change. ADDS: 3 all of dQ; 2 its adds in any order, 1 none of them, 0 not even its product, none
// of which leaves a right dQ. TWIN: small tiles, two blocks per SM. EARLY: one counter for a tile; it is asked for at the start
// of a turn, when its answer is not yet needed, and one thread announces the adds of all warps; the adds wait for the answer by
// control flow, and both are done in L2. WIDE: 16 warps with smaller
// shares, which read more of shared memory and hide more latency.
#ifndef ADDS
#define ADDS 3
#endif
#ifndef EARLY
#define EARLY 1
#endif
#ifndef WIDE
#define WIDE 0
#endif
#ifndef TWIN
#define TWIN 0
#endif

constexpr int D = HEAD, DV = VALUE, WARPS = WIDE ? 16 : 8, THREADS = 32 * WARPS;
constexpr int BN = !TWIN && KEYS * D + DV <= 256 ? 128 : 64;
constexpr int BM = !TWIN && MAPS == 1 && D + DV <= 128 ? 128 : 64;

// How the warps share S (and dP), dQ, dK and dV: warps along columns and rows, fragments of a warp along rows and columns.
constexpr int SNW = warpsAlongN(BM, BN, WARPS), SMW = WARPS / SNW, SM = BM / 16 / SMW, SN = BN / 16 / SNW;
constexpr int QNW = warpsAlongN(BM, D, WARPS), QMW = WARPS / QNW, QM = BM / 16 / QMW, QN = D / 16 / QNW;
constexpr int KNW = warpsAlongN(BN, D, WARPS), KMW = WARPS / KNW, KM = BN / 16 / KMW, KN = D / 16 / KNW;
constexpr int VNW = warpsAlongN(BN, DV, WARPS), VMW = WARPS / VNW, VM = BN / 16 / VMW, VN = DV / 16 / VNW;

// Shared memory: K, V, then two stages of Q, dO and statistics, then W and dS.
constexpr int STATS = MAPS == 1 ? 2 : 8; // floats of a row: LSE·log2 e, Δ; or both of each, λ and padding
constexpr int BYTES_K = BN * D * 2, BYTES_V = BN * DV * 2, BYTES_Q = BM * D * 2, BYTES_O = BM * DV * 2, BYTES_P = BM * BN * 2;
constexpr int AT_V = KEYS * BYTES_K, AT_STAGE = AT_V + BYTES_V, STAGE = MAPS * BYTES_Q + BYTES_O + BM * STATS * 4;
constexpr int AT_P = AT_STAGE + 2 * STAGE; // (1 + MAPS)·BYTES_P to the end
constexpr int PART = QM * 2 * QN * 128; // floats of a warp's part of a query tile's dQ

struct Backward {
  const bf16 *q, *k, *v, *o;
  const int* start;
  const float* stats;
  float* dq;
  int *counts, *ticket;
  bf16 *dk, *dv;
  i64 ldq, ldk, ldv, ldo, lddk, lddv;
  int T, H, G;
  float scale;
};

// Where a block is: keys n·BN…, group of sequence b, and a walk over (head, query tile).
struct Walk {
  i64 n0;
  int n, b, group, h, m, from, to;
  __device__ __forceinline__ bool next(int heads) {
    if (++m <= to) return true;
    m = from;
    return ++h < (group + 1) * heads;
  }
};

// The query tiles that see key tile n: from its diagonal to the last whose first document reaches back to it.
__device__ __forceinline__ Walk findWalk(const Backward& p, int ticket) {
  Walk w;
  const int tiles = (p.T + BN - 1) / BN, heads = p.H / p.G;
  w.n = tiles - 1 - ticket % tiles;
  w.b = ticket / tiles / p.G;
  w.group = ticket / tiles % p.G;
  w.n0 = (i64)w.b * p.T;
  w.from = w.n * BN / BM;
  w.to = (p.T - 1) / BM;
  if (p.start != 0)
    for (int lo = w.from, hi = w.to;;) {
      w.to = lo;
      if (lo >= hi) break;
      int mid = (lo + hi + 1) / 2;
      if (p.start[w.n0 + mid * BM] / BN <= w.n) lo = mid;
      else hi = mid - 1;
    }
  w.h = w.group * heads;
  w.m = w.from;
  return w;
}

// Starts copying a query tile: Q of each map, dO, the statistics.
__device__ __forceinline__ void loadStage(u32 at, const Backward& p, const Walk& w, int tid) {
  const int rows = p.T - w.m * BM, tiles = (p.T + BM - 1) / BM;
  const i64 n = w.n0 + w.m * BM;
#pragma unroll
  for (int i = 0; i < MAPS; i++) tileLoad<BM, D, THREADS>(at + i * BYTES_Q, p.q + n * p.ldq + ((i64)w.h * MAPS + i) * D, p.ldq, rows, tid);
  tileLoad<BM, DV, THREADS>(at + MAPS * BYTES_Q, p.o + n * p.ldo + (i64)w.h * DV, p.ldo, rows, tid);
  const float* stats = p.stats + ((i64)(w.b * p.H + w.h) * tiles + w.m) * (BM * STATS);
  if (tid < BM * STATS / 4) cpAsync16(at + MAPS * BYTES_Q + BYTES_O + tid * 16, stats + tid * 4);
}

// A warp's place in S: rows row0 + 16·SMW·mt + 8·half, columns 16·SNW·(j/2) + 8·(j%2) + {0, 1} from col0.
struct Cell {
  int row0, col0;
  __device__ __forceinline__ int row(int mt, int half) const { return row0 + 16 * SMW * mt + 8 * half; }
  __device__ __forceinline__ int col(int j) const { return col0 + 16 * SNW * (j >> 1) + 8 * (j & 1); }
};
typedef float Scores[SM][2 * SN][4];
typedef u32 Packed[SM][2 * SN][2]; // pairs of neighbouring columns

__device__ __forceinline__ void maskScores(Scores& s, const Backward& p, const Walk& w, const Cell& at) {
#pragma unroll
  for (int mt = 0; mt < SM; mt++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int row = w.m * BM + at.row(mt, half), first = p.start == 0 ? 0 : p.start[w.n0 + min(row, p.T - 1)];
#pragma unroll
      for (int j = 0; j < 2 * SN; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          const int key = w.n * BN + at.col(j) + e;
          if (key > row || key < first) s[mt][j][2 * half + e] = -INFINITE;
        }
    }
}

// P = exp2(c·s − LSE·log2 e), in place; the statistic lies at stats for row 0.
__device__ __forceinline__ void exponentials(Scores& s, const Cell& at, u32 stats, float c) {
#pragma unroll
  for (int mt = 0; mt < SM; mt++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const float lse = ldShared(stats + at.row(mt, half) * (STATS * 4));
#pragma unroll
      for (int j = 0; j < 2 * SN; j++)
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; e++) s[mt][j][e] = ex2(fmaf(s[mt][j][e], c, -lse));
    }
}

__device__ __forceinline__ void pack(Packed& p, const Scores& s) {
#pragma unroll
  for (int mt = 0; mt < SM; mt++)
#pragma unroll
    for (int j = 0; j < 2 * SN; j++)
#pragma unroll
      for (int half = 0; half < 2; half++) p[mt][j][half] = packBf16(s[mt][j][2 * half], s[mt][j][2 * half + 1]);
}

// Writes a packed tile; at is the lane's first place in it.
__device__ __forceinline__ void storeTile(u32 at, const Packed& p) {
#pragma unroll
  for (int mt = 0; mt < SM; mt++)
#pragma unroll
    for (int j = 0; j < 2 * SN; j++)
#pragma unroll
      for (int half = 0; half < 2; half++)
        stShared(tileRight<BN>(at, 2 * SNW * (j >> 1) + (j & 1)) + (mt * 16 * SMW + 8 * half) * (2 * BN), p[mt][j][half]);
}

// λP2, P2 being in s, becomes packed in lp, and W = P1 − λP2 goes to shared memory. P1 is not rounded before that: where
// the maps agree, W is small.
__device__ __forceinline__ void subtract(Packed& lp, const Scores& s, const Scores& p1, const Cell& at, u32 stats, u32 out) {
  Packed w;
#pragma unroll
  for (int mt = 0; mt < SM; mt++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const float lam = ldShared(stats + at.row(mt, half) * (STATS * 4) + 16);
#pragma unroll
      for (int j = 0; j < 2 * SN; j++) {
        const float a = lam * s[mt][j][2 * half], b = lam * s[mt][j][2 * half + 1];
        lp[mt][j][half] = packBf16(a, b);
        w[mt][j][half] = packBf16(p1[mt][j][2 * half] - a, p1[mt][j][2 * half + 1] - b);
      }
    }
  storeTile(out, w);
}

// dS = ±P∘(dP − Δ), to shared memory. Δ lies at delta for row 0.
__device__ __forceinline__ void gradScores(const Packed& p, const Scores& dp, const Cell& at, u32 delta, float sign, u32 out) {
  Packed ds;
#pragma unroll
  for (int mt = 0; mt < SM; mt++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const float d = ldShared(delta + at.row(mt, half) * (STATS * 4));
#pragma unroll
      for (int j = 0; j < 2 * SN; j++)
        ds[mt][j][half] = packBf16(sign * lowBf16(p[mt][j][half]) * (dp[mt][j][2 * half] - d), sign * highBf16(p[mt][j][half]) * (dp[mt][j][2 * half + 1] - d));
    }
  storeTile(out, ds);
}

// W and dS of the tile at hand, into shared memory.
__device__ __forceinline__ void formTiles(const Backward& p, const Walk& w, u32 base, u32 stage, int warp, int lane) {
  const int sm = warp / SNW, sn = warp % SNW;
  const Cell at = {16 * sm + (lane >> 2), 16 * sn + 2 * (lane & 3)};
  const u32 stats = stage + MAPS * BYTES_Q + BYTES_O, out = fresh(tileAt<BN>(base + AT_P, at.row0, 2 * sn) + 4 * (lane & 3));
  const bool mask = w.n * BN + BN - 1 > w.m * BM || (p.start != 0 && w.n * BN < p.start[w.n0 + min(w.m * BM + BM, p.T) - 1]);
  const float c = p.scale * LOG2E;
  Scores s, t;
  Packed p1, p2;
  clear(s);
  product<SM, SN, D / 16>(s, leftSide<D, false, SMW>(stage, sm, lane), rightSide<D, false, SNW>(base, sn, lane));
  if (mask) maskScores(s, p, w, at);
  exponentials(s, at, stats, c);
  if (MAPS == 2) {
    clear(t);
    product<SM, SN, D / 16>(t, leftSide<D, false, SMW>(stage + BYTES_Q, sm, lane), rightSide<D, false, SNW>(base + (KEYS - 1) * BYTES_K, sn, lane));
    if (mask) maskScores(t, p, w, at);
    exponentials(t, at, stats + 4, c);
    subtract(p2, t, s, at, stats, out);
  }
  pack(p1, s);
  if (MAPS == 1) storeTile(out, p1);
  clear(s);
  product<SM, SN, DV / 16>(s, leftSide<DV, false, SMW>(stage + MAPS * BYTES_Q, sm, lane), rightSide<DV, false, SNW>(base + AT_V, sn, lane));
  gradScores(p1, s, at, stats + 4 * MAPS, 1.f, out + BYTES_P);
  if (MAPS == 2) gradScores(p2, s, at, stats + 12, -1.f, out + 2 * BYTES_P);
}

// Adds the tile's share to its query tile's dQ, after the key tiles behind this one.
__device__ __forceinline__ void addQueries(const Backward& p, const Walk& w, u32 base, int* count, int seen, i64 tile, int warp, int lane) {
  const int before = (min(w.m * BM + BM, p.T) - 1) / BN - w.n; // key tiles that come first
  if (EARLY) seen = __shfl_sync(0xffffffffu, seen, 0); // the warp decides as one
#pragma unroll
  for (int i = 0; i < MAPS; i++) {
    float acc[QM][2 * QN][4];
    clear(acc);
    product<QM, QN, BN / 16>(acc, leftSide<BN, false, QMW>(base + AT_P + (1 + i) * BYTES_P, warp / QNW, lane),
                             rightSide<D, true, QNW>(base + (KEYS == 2 ? i : 0) * BYTES_K, warp % QNW, lane));
    if (ADDS == 3 && i == 0 && before > seen) {
      if (lane == 0)
        while (loadAcquire(count) < before) {}
      __syncwarp();
    }
    if (ADDS < 2) continue;
    float* to = p.dq + ((tile * MAPS + i) * WARPS + warp) * PART + lane * 4;
#pragma unroll
    for (int x = 0; x < QM * 2 * QN; x++) {
      float* a = acc[x / (2 * QN)][x % (2 * QN)];
      if (before > 0) redAdd4(to + x * 128, a);
      else *(float4*)(to + x * 128) = {a[0], a[1], a[2], a[3]};
    }
  }
}

// Stores the sums of M × N fragments as rows of the tile's keys.
template <int M, int N, int MW, int NW> __device__ __forceinline__ void storeSums(const float (&acc)[M][2 * N][4], bf16* to, i64 ld, int rows, float f, int warp, int lane) {
#pragma unroll
  for (int mt = 0; mt < M; mt++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int row = 16 * (mt * MW + warp / NW) + (lane >> 2) + 8 * half;
      if (row >= rows) continue;
#pragma unroll
      for (int j = 0; j < 2 * N; j++)
        store2(to + row * ld + 16 * ((j >> 1) * NW + warp % NW) + 8 * (j & 1) + 2 * (lane & 3), f * acc[mt][j][2 * half], f * acc[mt][j][2 * half + 1]);
    }
}

__device__ __forceinline__ void backward(const Backward& p) {
  const u32 base = sharedBase();
  const int heads = p.H / p.G, tiles = (p.T + BM - 1) / BM;
  int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
  __shared__ int drawn;
  if (tid == 0) drawn = atomicAdd(p.ticket, 1);
  __syncthreads();
  Walk w = findWalk(p, drawn), ahead = w;
  const int rows = p.T - w.n * BN;
  const i64 key = w.n0 + w.n * BN;
#pragma unroll
  for (int i = 0; i < KEYS; i++) tileLoad<BN, D, THREADS>(base + i * BYTES_K, p.k + key * p.ldk + ((i64)w.group * KEYS + i) * D, p.ldk, rows, tid);
  tileLoad<BN, DV, THREADS>(base + AT_V, p.v + key * p.ldv + (i64)w.group * DV, p.ldv, rows, tid);
  loadStage(base + AT_STAGE, p, w, tid);
  cpCommit();
  float dk[KEYS][KM][2 * KN][4], dv[VM][2 * VN][4];
#pragma unroll
  for (int i = 0; i < KEYS; i++) clear(dk[i]);
  clear(dv);
  int* count = 0; // of the query tile before, whose adds are not yet announced
  bool more = true;
  for (int odd = 0; more; odd ^= 1) {
    const u32 stage = base + AT_STAGE + odd * STAGE;
    tid = fresh((u32)tid), warp = tid >> 5, lane = tid & 31; // addresses are formed anew in each turn
    cpWait<0>();
    __syncthreads(); // the stage is there; the other stage, W and dS are free
    more = ahead.next(heads);
    if (more) loadStage(base + AT_STAGE + (odd ^ 1) * STAGE, p, ahead, tid);
    cpCommit();
    const int seen = EARLY ? loadRelaxed(p.counts + ((i64)(w.b * p.H + w.h) * tiles + w.m) * WARPS) : 0;
    formTiles(p, w, base, stage, warp, lane);
    __syncwarp();
    if (ADDS == 3 && !EARLY && count != 0 && lane == 0) addRelease(count, 1); // long done by now, so this does not stall
    __syncthreads();
    if (ADDS == 3 && EARLY && count != 0 && tid == 0) addRelease(count, 1);
    product<VM, VN, BM / 16>(dv, leftSide<BN, true, VMW>(base + AT_P, warp / VNW, lane), rightSide<DV, true, VNW>(stage + MAPS * BYTES_Q, warp % VNW, lane));
#pragma unroll
    for (int i = 0; i < MAPS; i++)
      product<KM, KN, BM / 16>(dk[KEYS == 2 ? i : 0], leftSide<BN, true, KMW>(base + AT_P + (1 + i) * BYTES_P, warp / KNW, lane),
                               rightSide<D, true, KNW>(stage + i * BYTES_Q, warp % KNW, lane));
    const i64 tile = (i64)(w.b * p.H + w.h) * tiles + w.m;
    count = p.counts + tile * WARPS + (EARLY ? 0 : warp);
    if (ADDS > 0) addQueries(p, w, base, count, seen, tile, warp, lane);
    w = ahead;
  }
  if (EARLY) __syncthreads();
  else __syncwarp();
  if (ADDS == 3 && (EARLY ? tid : lane) == 0) addRelease(count, 1);
#pragma unroll
  for (int i = 0; i < KEYS; i++) storeSums<KM, KN, KMW, KNW>(dk[i], p.dk + key * p.lddk + ((i64)w.group * KEYS + i) * D, p.lddk, rows, p.scale, warp, lane);
  storeSums<VM, VN, VMW, VNW>(dv, p.dv + key * p.lddv + (i64)w.group * DV, p.lddv, rows, 1.f, warp, lane);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1 + TWIN)
KERNEL(const bf16* q, const bf16* k, const bf16* v, const bf16* o, const int* start, const float* stats,
       float* dq, int* counts, int* ticket, bf16* dk, bf16* dv,
       i64 ldq, i64 ldk, i64 ldv, i64 ldo, i64 lddk, i64 lddv, int T, int H, int G, float scale) {
  backward({q, k, v, o, start, stats, dq, counts, ticket, dk, dv, ldq, ldk, ldv, ldo, lddk, lddv, T, H, G, scale});
}

// dQ from fragments to rows: block (query tile, head, sequence), the layout of addQueries.
extern "C" __global__ void __launch_bounds__(THREADS) KERNEL_QUERIES(const float* sums, bf16* dq, i64 lddq, int T, int H, float scale) {
  const int m = blockIdx.x, h = blockIdx.y, b = blockIdx.z, warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const i64 tile = (i64)(b * H + h) * gridDim.x + m;
#pragma unroll
  for (int i = 0; i < MAPS; i++) {
    const float* from = sums + ((tile * MAPS + i) * WARPS + warp) * PART + lane * 4;
    float acc[QM][2 * QN][4];
#pragma unroll
    for (int x = 0; x < QM * 2 * QN; x++) {
      float4 a = *(const float4*)(from + x * 128);
      float* to = acc[x / (2 * QN)][x % (2 * QN)];
      to[0] = a.x, to[1] = a.y, to[2] = a.z, to[3] = a.w;
    }
    storeSums<QM, QN, QMW, QNW>(acc, dq + ((i64)b * T + m * BM) * lddq + ((i64)h * MAPS + i) * D, lddq, T - m * BM, scale, warp, lane);
  }
}
