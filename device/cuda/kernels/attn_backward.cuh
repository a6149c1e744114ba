// Causal attention backward on tensor cores, one map (MAPS 1) or the difference of two (MAPS 2). With dO the gradient
// of raw and Δ_i from attention_prepare.cu:
//
//   P_i = exp(Scale·Q_i·K_iᵀ − LSE_i),  dP = dO·Vᵀ,  W = P_1 − λ·P_2,  dV = Wᵀ·dO
//   dS_1 = P_1∘(dP − Δ_1),  dS_2 = −λ·P_2∘(dP − Δ_2),  dK_i = Scale·dS_iᵀ·Q_i,  dQ_i = Scale·dS_i·K_i
//
// Built with -DKEYS -DHEAD -DVALUE for one shape and -DBM -DBN -DWARPS -DBLOCKS (of an SM) -DOWN for its tiles. A block
// owns BN keys of one group and walks over the query tiles that see them, head by head: K, V and the sums of dK, dV
// stay on the SM, Q, dO and the rows' statistics come double-buffered by cp.async. Two ways to share a tile's work
// among warps: OWN 1 gives each its keys, OWN 0 shares S (see the files of that name). dP and dV are formed once for
// both maps: MAPS·3·D + 2·DV multiply-adds per cell, 10·D for V1 and 5·D for plain.
//
// dQ is a sum over key tiles, and its order is fixed: a query tile's sum lies in fp32 memory as fragments, one part for
// each warp of a block, with a counter of the key tiles added to it. The key tile on the diagonal stores, the one
// before it waits for the counter and adds, and so on down to the first. The counter is asked for at the start of a
// turn, when its answer is not yet needed, and one thread announces the adds of all warps. Blocks take their tile from
// a ticket, highest tile first, so a block that is waited for is running or done; each starts on its own diagonal, one
// step after its predecessor, and seldom waits. Traffic: BM·D·MAPS·4 bytes of vector adds per BM × BN tile, in L2. The
// other deterministic way, a second kernel over query tiles, costs S and dP again: 14·D instead of 10·D, and 8.4k
// cycles of shared memory instead of 5.9k per 64 × 64 tile (D = 128, DV = 256); there the bound is those 5.9k cycles
// against 4.1k of mma, about 430 TFLOP/s on an H200.
// Registers: dK, dV take BN·(KEYS·D + DV)/THREADS ≤ 128 of 255; S, P, dP ≤ 64 more. Eight warps on an SM, in one block
// or two.
#include "attn_tile.cuh"

constexpr int D = HEAD, DV = VALUE, THREADS = 32 * WARPS;

// How the warps divide dQ: warps along columns and rows, fragments of a warp along rows and columns. With two maps,
// half of the warps compute each map: larger shares read less shared memory.
constexpr int QW = WARPS / MAPS;
constexpr int QNW = warpsAlongN(BM, D, QW), QMW = QW / QNW, QM = BM / 16 / QMW, QN = D / 16 / QNW;

// Shared memory: K, V, then two stages of Q, dO and statistics, then W (unless warps own keys) and dS.
constexpr int STATS = MAPS == 1 ? 2 : 8; // floats of a row: LSE·log2 e, Δ; or both of each, λ and padding
constexpr int BYTES_K = BN * D * 2, BYTES_V = BN * DV * 2, BYTES_Q = BM * D * 2, BYTES_O = BM * DV * 2;
constexpr int AT_V = KEYS * BYTES_K, AT_STAGE = AT_V + BYTES_V, STAGE = MAPS * BYTES_Q + BYTES_O + BM * STATS * 4;
constexpr int AT_P = AT_STAGE + 2 * STAGE; // 1 + MAPS tiles of BM × BN to the end, or one
constexpr int PART = QM * 2 * QN * 128; // floats of a warp's part of a query tile's dQ

struct Backward {
  const bf16 *q, *k, *v, *o;
  const int* start;
  const float* stats;
  float* sums;
  int *counts, *ticket;
  bf16 *dk, *dv;
  i64 ldq, ldk, ldv, ldo, lddk, lddv;
  int T, H, G;
  float scale;
};

// A block's position: keys n·BN…, group of sequence b, and an iteration over (head, query tile).
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
  for (int i = 0; i < MAPS; i++)
    tileLoad<BM, D, THREADS>(at + i * BYTES_Q, p.q + n * p.ldq + ((i64)w.h * MAPS + i) * D, p.ldq, rows, tid);
  tileLoad<BM, DV, THREADS>(at + MAPS * BYTES_Q, p.o + n * p.ldo + (i64)w.h * DV, p.ldo, rows, tid);
  const float* stats = p.stats + ((i64)(w.b * p.H + w.h) * tiles + w.m) * (BM * STATS);
  if (tid < BM * STATS / 4) cpAsync16(at + MAPS * BYTES_Q + BYTES_O + tid * 16, stats + tid * 4);
}

#if OWN
#include "attn_backward_own.cuh"
#else
#include "attn_backward_shared.cuh"
#endif

// Stores the sums of M × N fragments as rows of the tile's keys.
template <int M, int N, int MW, int NW>
__device__ __forceinline__ void storeSums(const float (&acc)[M][2 * N][4], bf16* to, i64 ld, int rows, float f,
                                          int warp, int lane) {
#pragma unroll
  for (int mt = 0; mt < M; mt++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int row = 16 * (mt * MW + warp / NW) + (lane >> 2) + 8 * half;
      u32 x[2 * N];
#pragma unroll
      for (int j = 0; j < 2 * N; j++) x[j] = packBf16(f * acc[mt][j][2 * half], f * acc[mt][j][2 * half + 1]);
      storePieces<2 * N, NW>(to + row * ld, x, warp % NW, lane & 3, row < rows);
    }
}

// Adds the tile's share to its query tile's dQ, after the key tiles beyond this one; seen is their counter as read
// before.
__device__ __forceinline__ void addQueries(const Backward& p, const Walk& w, u32 base, const int* count, int seen,
                                           i64 tile, int warp, int lane) {
  const int before = (min(w.m * BM + BM, p.T) - 1) / BN - w.n; // key tiles that must be added before
  const int map = warp / QW, place = warp % QW;
  float acc[QM][2 * QN][4];
  clear(acc);
  product<QM, QN, BN / 16>(acc, gradSide(base, map, place / QNW, lane),
                           rightSide<D, true, QNW>(base + (KEYS == 2 ? map : 0) * BYTES_K, place % QNW, lane));
  if (before > __shfl_sync(0xffffffffu, seen, 0)) { // uniform across the warp
    if (lane == 0)
      while (loadAcquire(count) < before) {}
    __syncwarp();
  }
  float* sum = p.sums + (tile * WARPS + warp) * PART + lane * 4;
#pragma unroll
  for (int x = 0; x < QM * 2 * QN; x++) {
    float* a = acc[x / (2 * QN)][x % (2 * QN)];
    if (before > 0) redAdd4(sum + x * 128, a);
    else *(float4*)(sum + x * 128) = {a[0], a[1], a[2], a[3]};
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
  for (int i = 0; i < KEYS; i++)
    tileLoad<BN, D, THREADS>(base + i * BYTES_K, p.k + key * p.ldk + ((i64)w.group * KEYS + i) * D, p.ldk, rows, tid);
  tileLoad<BN, DV, THREADS>(base + AT_V, p.v + key * p.ldv + (i64)w.group * DV, p.ldv, rows, tid);
  loadStage(base + AT_STAGE, p, w, tid);
  cpCommit();
  Sums sums;
  clear(sums.dk);
  clear(sums.dv);
  int* count = 0; // counter of the previous query tile, whose adds are not yet announced
  bool more = true;
  for (int odd = 0; more; odd ^= 1) {
    const u32 stage = base + AT_STAGE + odd * STAGE;
    tid = fresh((u32)tid), warp = tid >> 5, lane = tid & 31; // recompute addresses in each iteration
    cpWait<0>();
    __syncthreads(); // the stage has arrived; the other stage, W and dS are free
    more = ahead.next(heads);
    if (more) loadStage(base + AT_STAGE + (odd ^ 1) * STAGE, p, ahead, tid);
    cpCommit();
    const i64 tile = (i64)(w.b * p.H + w.h) * tiles + w.m;
    const int seen = loadRelaxed(p.counts + tile);
    formTiles(p, w, base, stage, sums, warp, lane);
    __syncthreads();
    if (count != 0 && tid == 0) addRelease(count, 1); // done long ago, so this does not stall
    addKeys(base, stage, sums, warp, lane);
    count = p.counts + tile;
    addQueries(p, w, base, count, seen, tile, warp, lane);
    w = ahead;
  }
  __syncthreads();
  if (tid == 0) addRelease(count, 1);
  storeSums<KM, KN, KMW, KNW>(sums.dk, p.dk + key * p.lddk + ((i64)w.group * KEYS + warp / KW) * D, p.lddk, rows,
                              p.scale, warp % KW, lane);
  storeSums<VM, VN, VMW, VNW>(sums.dv, p.dv + key * p.lddv + (i64)w.group * DV, p.lddv, rows, 1.f, warp, lane);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
KERNEL(const bf16* q, const bf16* k, const bf16* v, const bf16* o, const int* start, const float* stats,
       float* sums, int* counts, int* ticket, bf16* dk, bf16* dv,
       i64 ldq, i64 ldk, i64 ldv, i64 ldo, i64 lddk, i64 lddv, int T, int H, int G, float scale) {
  backward({q, k, v, o, start, stats, sums, counts, ticket, dk, dv, ldq, ldk, ldv, ldo, lddk, lddv, T, H, G, scale});
}

// dQ from fragments to rows: block (query tile, head, sequence), in the layout of addQueries. (Doing this in the last
// key tile instead saves a pass over memory, but cost the main kernel more through its registers: 4 to 6 %.)
extern "C" __global__ void __launch_bounds__(THREADS)
KERNEL_QUERIES(const float* sums, bf16* dq, i64 lddq, int T, int H, float scale) {
  const int m = blockIdx.x, h = blockIdx.y, b = blockIdx.z, warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const i64 tile = (i64)(b * H + h) * gridDim.x + m;
  const float* from = sums + (tile * WARPS + warp) * PART + lane * 4;
  float acc[QM][2 * QN][4];
#pragma unroll
  for (int x = 0; x < QM * 2 * QN; x++) {
    float4 a = *(const float4*)(from + x * 128);
    float* to = acc[x / (2 * QN)][x % (2 * QN)];
    to[0] = a.x, to[1] = a.y, to[2] = a.z, to[3] = a.w;
  }
  storeSums<QM, QN, QMW, QNW>(acc, dq + ((i64)b * T + m * BM) * lddq + ((i64)h * MAPS + warp / QW) * D, lddq,
                              T - m * BM, scale, warp % QW, lane);
}
