// Causal attention backward on Hopper's wgmma and copy engine, one map (MAPS 1) or the difference of two (MAPS 2). With
// dO the gradient of raw and Δ_i from attention_prepare.cu:
//
//   P_i = exp(Scale·Q_i·K_iᵀ − LSE_i),  dP = dO·Vᵀ,  W = P_1 − λ·P_2,  dV = Wᵀ·dO
//   dS_1 = P_1∘(dP − Δ_1),  dS_2 = −λ·P_2∘(dP − Δ_2),  dK_i = Scale·dS_iᵀ·Q_i,  dQ_i = Scale·dS_i·K_i
//
// Built for one shape by attn_hopper_backward.go. A block owns BN keys of one group and walks over the tiles of 64
// queries that see them, head by head. Its first warpgroup is the producer: one thread loads K and V once, then Q, dO
// and the rows' statistics in a ring of two stages. Two consumer warpgroups keep dK and dV in registers. All is formed
// transposed, keys as rows: a result's layout is that of the next product's left side, so Wᵀ and dSᵀ feed dV and dK
// from registers, and only dSᵀ goes to shared memory, for dQ.
//
// SPLIT 0: a warpgroup owns 64 of 128 keys, with both maps; dQ of map i, or of every second query tile where there is
// one map, is formed by warpgroup i from both warpgroups' dSᵀ, which has two buffers: one barrier a tile. SPLIT 1 (V1,
// heads of 96 and 128, whose sums fill the registers): both share 64 keys; warpgroup i has map i: S_i, dK_i, dQ_i, half
// of dV's columns, and dP, which both form. They hand each other P_1 and λ·P_2 through shared memory as fp16.
//
// dQ is summed over key tiles in a fixed order, as in attn_backward.cuh: fragments in fp32 memory, one counter for a
// query tile and head, blocks from a ticket, each starting on its own diagonal; attn_hopper_queries turns fragments
// into rows. The order is that of tickets, so that a block waits for blocks with earlier tickets only: later keys
// first, and earlier keys, which more queries see, first in the last items, whose blocks are started together
// (hopper_order.cuh). LOOP: as many blocks as SMs, each of which takes tickets until there are none: the next K and V
// are loaded under the stores of dK and dV. (ADDS 0 and 1, for timing only, leave the adds out or take them as they
// come.) Multiply-adds per cell: MAPS·3·D + 2·DV, with SPLIT MAPS·3·D + 3·DV. Registers of a consumer thread: dK and dV
// 128 at most, then S of both maps and what is packed of them, 80.
#include "attn_tile.cuh"
#include "hopper_tile.cuh"
#include "hopper_args.cuh"
#include "hopper_order.cuh"

constexpr int D = HEAD, DV = VALUE, THREADS = 384, BM = QUERIES, BN = SPLIT ? 64 : 128, STAGES = 2;
constexpr int UNITS = BM / 64; // a unit is 64 queries, whose dQ of one map is PIECES pieces of 2 KB
constexpr int PIECES = D / 8, PIECE = 2048;
constexpr int HELD = SPLIT ? 1 : KEYS;  // key heads whose dK a warpgroup sums
constexpr int COLS = SPLIT ? DV / 2 : DV;  // columns of dV that it sums
constexpr int OWN = SPLIT ? 1 : MAPS;  // maps that it forms
constexpr bool EARLY = OWN == 1 && OUTS == 2; // dP overlaps the exponentials
constexpr bool TIGHT = OWN == 2 && HELD * D + COLS == 256; // registers are short: W is not in flight together with dS
static_assert(!WEAVE || (OWN == 2 && !TIGHT && OUTS == 2 && BUFFERS == 2), "nothing to weave, or no registers for it");
constexpr int PWV = COLS % 64 == 0 ? 64 : 32;
typedef TileOf<BN, D> TileK;
typedef TileOf<BN, DV, PWV> TileV;
typedef TileOf<BM, D> TileQ;
typedef TileOf<BM, DV, PWV> TileO;
typedef TileOf<BN, BM> TileS;  // dSᵀ of one map

// Shared memory: K, V, two stages of Q, OUTS of dO, BUFFERS of dSᵀ, the warpgroups' exchange buffers, dQ for the copy
// engine (AREAS areas per warpgroup), the stages' statistics, barriers, the ticket; with LOOP the barrier of free K and
// V and the ring of tickets in its place.
constexpr int STATS = MAPS == 1 ? 2 : 5;  // of a row: LSE·log2 e, Δ; or LSE1, LSE2, Δ1, Δ2, λ
constexpr int ROOM = MAPS == 1 ? 2 : 8;  // floats of a row in memory
constexpr int STAGE = MAPS * TileQ::BYTES, STATBYTES = STATS * BM * 4;
constexpr int AT_V = KEYS * TileK::BYTES, AT_STAGE = AT_V + TileV::BYTES, AT_O = AT_STAGE + STAGES * STAGE,
              AT_S = AT_O + OUTS * TileO::BYTES;
constexpr int AT_X = AT_S + BUFFERS * MAPS * TileS::BYTES, AT_DQ = AT_X + SPLIT * 2 * 8192,
              AT_STATS = AT_DQ + 2 * AREAS * COPIED * PIECE, AT_BAR = AT_STATS + STAGES * STATBYTES;
constexpr int BARRIERS = 1 + 2 * STAGES + 2 * OUTS + LOOP, AT_FREE = AT_BAR + 8 * (BARRIERS - 1),
              AT_TICKET = AT_BAR + 8 * BARRIERS;
static_assert(AT_TICKET + (LOOP ? TICKETS : 8) == SHARED, "attn_hopper_backward.go counts shared memory differently");
static_assert(COPIED == 0 || ADDS == 2, "the copy engine adds in order");
// Named barriers. GRADS: dSᵀ is there, EXCHANGE: P is, READ + w: warpgroup w has read dSᵀ; STAGED + w: its dQ is in its
// area, FREE + w: the area has been read. With FILL READ + w is that the copy engine has read its dQ, and OWN_READ + w
// that it has itself read dSᵀ.
enum { GRADS = 1, EXCHANGE = 2, READ = 3, STAGED = 5, FREE = 9, OWN_READ = 13 };
typedef Ring<STAGES, STAGE> RingQ;
typedef Ring<OUTS, TileO::BYTES> RingO;
struct Rings {
  RingQ q;
  RingO o;
};

#include "attn_hopper_walk.cuh"

// A consumer thread: keys key and key + 8 of the tile, queries 8j + 2t and the next of every piece j of 8.
struct Thread {
  int wg, warp, lane, t, key, row;  // row is the first of the warpgroup's keys in the tile
  u32 tid;  // in the warpgroup
};
__device__ __forceinline__ Thread threadOf(u32 tid, int wg) {
  const int lane = tid & 31, warp = tid >> 5 & 3, row = SPLIT ? 0 : 64 * wg;
  return {wg, warp, lane, lane & 3, row + 16 * warp + (lane >> 2), row, tid & 127};
}

typedef float Scores[BM / 2];
typedef u32 Packed[BM / 16][4];
struct Sums {
  float dk[HELD][D / 2], dv[COLS / 2];
};

// S outside the causal triangle, or before the query's document, becomes −inf.
__device__ __forceinline__ void mask(Scores& s, const HopperBackward& p, const Walk& w, const Thread& me) {
  const int key = w.n * BN + me.key;
#pragma unroll
  for (int j = 0; j < BM / 8; j++)
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const int query = w.m * BM + 8 * j + 2 * me.t + e, first = p.start == 0 ? 0 : p.start[w.n0 + min(query, p.t - 1)];
      if (key > query || key < first) s[4 * j + e] = -INFINITE;
      if (key + 8 > query || key + 8 < first) s[4 * j + 2 + e] = -INFINITE;
    }
}

// P = exp2(c·s − LSE·log2 e), in place; stats points to the map's LSE of query 0.
__device__ __forceinline__ void exponentials(Scores& s, const Thread& me, u32 stats, float c) {
#pragma unroll
  for (int j = 0; j < BM / 8; j++) {
    const float2 lse = ldShared2(stats + (8 * j + 2 * me.t) * 4);
    s[4 * j] = ex2(fmaf(s[4 * j], c, -lse.x)), s[4 * j + 1] = ex2(fmaf(s[4 * j + 1], c, -lse.y));
    s[4 * j + 2] = ex2(fmaf(s[4 * j + 2], c, -lse.x)), s[4 * j + 3] = ex2(fmaf(s[4 * j + 3], c, -lse.y));
  }
}

// s = λ·s.
__device__ __forceinline__ void timesLambda(Scores& s, const Thread& me, u32 stats) {
#pragma unroll
  for (int j = 0; j < BM / 8; j++) {
    const float2 lam = ldShared2(stats + (4 * BM + 8 * j + 2 * me.t) * 4);
    s[4 * j] *= lam.x, s[4 * j + 1] *= lam.y, s[4 * j + 2] *= lam.x, s[4 * j + 3] *= lam.y;
  }
}

// dS = ±P∘(dP − Δ), packed in place of P.
__device__ __forceinline__ void gradScores(Packed& p, const Scores& dp, const Thread& me, u32 delta, float sign) {
#pragma unroll
  for (int j = 0; j < BM / 8; j++) {
    const float2 d = ldShared2(delta + (8 * j + 2 * me.t) * 4);
#pragma unroll
    for (int i = 0; i < 2; i++) {
      u32& x = p[j / 2][j % 2 * 2 + i];
      x = packBf16(sign * lowBf16(x) * (dp[4 * j + 2 * i] - d.x), sign * highBf16(x) * (dp[4 * j + 2 * i + 1] - d.y));
    }
  }
}

// dSᵀ to its tile: 16 keys of a warp, a matrix of 8 × 8 for each of a fragment's words.
__device__ __forceinline__ void storeGrads(const Packed& p, u32 tile, const Thread& me) {
  const int row = me.row + 16 * me.warp + (me.lane & 15);
#pragma unroll
  for (int k = 0; k < BM / 16; k++)
    stmatrix4(tile + k / 4 * TileS::PANEL + row * 128 + (((2 * (k & 3) + (me.lane >> 4)) ^ (row & 7)) << 4), p[k]);
}

// Packs P of the warpgroup's maps into ds, and W = P_1 − λ·P_2 into w. Registers are short, so s is consumed as it is
// packed.
__device__ __forceinline__ void packMaps(Packed& w, Packed (&ds)[OWN], const Scores (&s)[OWN]) {
#pragma unroll
  for (int i = 0; i < BM / 4; i++) {
    const float a = s[0][2 * i], b = s[0][2 * i + 1], c = OWN == 2 ? s[OWN - 1][2 * i] : 0.f,
                d = OWN == 2 ? s[OWN - 1][2 * i + 1] : 0.f;
    w[i / 4][i % 4] = packBf16(a - c, b - d);
    ds[0][i / 4][i % 4] = packBf16(a, b);
    if (OWN == 2) ds[OWN - 1][i / 4][i % 4] = packBf16(c, d);
  }
}

// The same if the other warpgroup has the other map: it passes it as fp16.
__device__ __forceinline__ void exchangeMaps(Packed& w, Packed& ds, const Scores& s, u32 base, const Thread& me) {
  const u32 mine = base + AT_X + me.wg * 8192 + me.tid * 16, his = mine + 8192 - me.wg * 16384;
#pragma unroll
  for (int k = 0; k < BM / 16; k++) {
    u32 x[4];
#pragma unroll
    for (int i = 0; i < 4; i++) x[i] = packHalf(s[8 * k + 2 * i], s[8 * k + 2 * i + 1]);
    stShared4(mine + k * 2048, x);
  }
  barrierOf(EXCHANGE, 256);
  const float sign = me.wg == 0 ? 1.f : -1.f;
#pragma unroll
  for (int k = 0; k < BM / 16; k++) {
    u32 x[4];
    ldShared4(x, his + k * 2048);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const float a = s[8 * k + 2 * i], b = s[8 * k + 2 * i + 1];
      w[k][i] = packBf16(sign * (a - lowHalf(x[i])), sign * (b - highHalf(x[i])));
      ds[k][i] = packBf16(a, b);
    }
  }
}

#include "attn_hopper_keys.cuh"

// Whether some query of the tile does not see some key of it.
__device__ __forceinline__ bool isMasked(const HopperBackward& p, const Walk& w) {
  return w.n * BN + BN - 1 > w.m * BM || (p.start != 0 && w.n * BN < p.start[w.n0 + min(w.m * BM + BM, p.t) - 1]);
}

// P and dP of the n-th tile: ds holds P of the warpgroup's maps, that of the second times λ; dV is accumulated, still
// in flight.
__device__ __forceinline__ void formTile(const HopperBackward& p, const Walk& w, u32 base, const Rings& ring, int n,
                                         u32 stats, const Keys& keys, Sums& sums, Packed& wt, Packed (&ds)[OWN],
                                         Scores& dp, const Thread& me) {
  const bool masked = isMasked(p, w);
  const float c = p.scale * LOG2E;
  Scores s[OWN];
  ring.q.wait(n);
  mmaFence();
#pragma unroll
  for (int i = 0; i < OWN; i++) scores(s[i], base, ring.q.tile(n), keys, me, i);
  if (EARLY) gradOutputs(dp, base, ring.o, n, keys, me);
#pragma unroll
  for (int i = 0; i < OWN; i++) {
    if (i == 0) mmaWait<OWN - 1 + EARLY>();
    else mmaWait<EARLY>();
    pin(s[i]);
    const int map = SPLIT ? me.wg : i;
    if (masked) mask(s[i], p, w, me);
    exponentials(s[i], me, stats + map * (BM * 4), c);
    if (map == 1) timesLambda(s[i], me, stats);
  }
  if (SPLIT && !EARLY) mmaFence(), gradOutputs(dp, base, ring.o, n, keys, me); // overlaps the exchange
  if (SPLIT) exchangeMaps(wt, ds[0], s[0], base, me);
  else packMaps(wt, ds, s);
  mmaFence();
  if (!SPLIT && !EARLY) gradOutputs(dp, base, ring.o, n, keys, me);
  addHeld<TileO>(sums.dv, wt, ring.o.tile(n), SPLIT ? me.wg * COLS : 0);
  mmaCommit();
  mmaWait<TIGHT ? 0 : 1>();
  pin(dp);
}

// dS of the warpgroup's maps: to shared memory, and into dK, still in flight.
__device__ __forceinline__ void formGrads(u32 stage, u32 stats, u32 grads, Sums& sums, Packed (&ds)[OWN],
                                          const Scores& dp, const Thread& me) {
#pragma unroll
  for (int i = 0; i < OWN; i++) {
    const int map = SPLIT ? me.wg : i;
    gradScores(ds[i], dp, me, stats + (MAPS + map) * (BM * 4), map == 1 ? -1.f : 1.f);
    storeGrads(ds[i], grads + map * TileS::BYTES, me);
  }
  proxyFence();
  mmaFence();
#pragma unroll
  for (int i = 0; i < OWN; i++)
    addHeld<TileQ>(sums.dk[HELD == 2 ? i : 0], ds[i], stage + (SPLIT ? me.wg : i) * TileQ::BYTES, 0);
  mmaCommit();
}

// SKIP: whether all queries of the tile come before the warpgroup's keys, so that its P and dS are 0: the first tile of
// the second warpgroup.
static_assert(!SKIP || (!SPLIT && BUFFERS == 2), "a warpgroup that skips a tile has nothing else to wait for");
__device__ __forceinline__ bool isBefore(const Walk& w, const Thread& me) {
  return w.m * BM + BM - 1 < w.n * BN + me.row;
}
__device__ __forceinline__ void skipTile(const Rings& ring, int n, u32 grads, const Thread& me) {
  const Packed none = {};
  ring.q.wait(n), ring.o.wait(n);
#pragma unroll
  for (int i = 0; i < OWN; i++) storeGrads(none, grads + i * TileS::BYTES, me);
  proxyFence();
}

#if WEAVE
#include "attn_hopper_weave.cuh"
#endif
#include "attn_hopper_queries.cuh"

// Stores 64 rows of sums.
template <int M>
__device__ __forceinline__ void storeSums(const float (&x)[M], bf16* to, i64 ld, int rows, float f, int row, int t) {
#pragma unroll
  for (int half = 0; half < 2; half++) {
    u32 y[M / 4];
#pragma unroll
    for (int j = 0; j < M / 4; j++) y[j] = packBf16(f * x[4 * j + 2 * half], f * x[4 * j + 2 * half + 1]);
    storePieces<M / 4, 1>(to + (row + 8 * half) * ld, y, 0, t, row + 8 * half < rows);
  }
}

__device__ __forceinline__ void storeKeys(const HopperBackward& p, const Walk& w, const Sums& sums, const Thread& me) {
  const int rows = p.t - w.n * BN;
  const i64 key = w.n0 + w.n * BN;
#pragma unroll
  for (int i = 0; i < HELD; i++)
    storeSums(sums.dk[i], p.dk + key * p.lddk + ((i64)w.group * KEYS + (SPLIT ? me.wg : i)) * D, p.lddk, rows, p.scale,
              me.key, me.t);
  storeSums(sums.dv, p.dv + key * p.lddv + (i64)w.group * DV + (SPLIT ? me.wg * COLS : 0), p.lddv, rows, 1.f, me.key,
            me.t);
}

// What a consumer carries from walk to walk: tiles that have gone through the rings, and staged shares of dQ.
struct Past {
  int n, staged;
};

__device__ __forceinline__ void sumKeys(const HopperBackward& p, Walk w, int wg, u32 base, const Rings& ring,
                                        Past& past, Sums& sums) {
  const int heads = p.heads / p.groups;
#pragma unroll
  for (int i = 0; i < HELD; i++) zero(sums.dk[i]);
  zero(sums.dv);
  Keys keys;
  keys.load(base, threadOf(threadIdx.x, wg));
  int* before = 0; // the counter of the previous query tile, whose adds are not yet announced
  bool more = true;
  for (int& n = past.n; more; n++) {
    const Thread me = threadOf(fresh((u32)threadIdx.x), wg); // recompute addresses in each iteration
    const u32 stats = base + AT_STATS + n % STAGES * STATBYTES,
              grads = base + AT_S + n % BUFFERS * (MAPS * TileS::BYTES);
    Packed wt, ds[OWN];
    // One counter per tile, or one per share that the copy engine adds.
    const Share share = shareOf(p, w, n, wg);
    int* counter = p.counts + (COPIED > 0 ? share.at : share.at / (UNITS * MAPS));
    int seen = 0;
    if (SKIP && isBefore(w, me)) {
      skipTile(ring, n, grads, me);
    } else {
#if WEAVE
      if (STAGEDPIECES < PIECES) seen = loadRelaxed(counter);
      weaveTile(p, w, base, ring, n, stats, grads, keys, sums, wt, ds, me);
#else
      Scores dp;
      formTile(p, w, base, ring, n, stats, keys, sums, wt, ds, dp, me);
      if (STAGEDPIECES < PIECES) seen = loadRelaxed(counter);
      if (!SPLIT && BUFFERS == 1 && n > 0) {
        if (FILL) barrierOf(FREE + wg, 160);
        barrierOf(READ + 1 - wg, FILL ? 160 : 256);
      }
      formGrads(ring.q.tile(n), stats, grads, sums, ds, dp, me);
#endif
    }
    if (OUTS == 1) mmaWait<1>(), pin(sums.dv), ring.o.release(n, me.lane); // early: the next dO has no other place
    barrierOf(GRADS, 256);
    if (COPIED == 0 && before != 0 && threadIdx.x == 128)
      addRelease(before, 1); // done long ago, so this does not stall
    before = counter;
    mmaWait<0>();
    pin(sums.dv);
#pragma unroll
    for (int i = 0; i < HELD; i++) pin(sums.dk[i]);
    if (OUTS == 2) ring.o.release(n, me.lane);
    ring.q.release(n, me.lane);
    if (share.mine) addQueries(p, w, base, grads, seen, counter, share, past.staged, me), past.staged++;
    more = w.next(heads);
  }
  if (COPIED == 0) {
    barrierOf(GRADS, 256);
    if (threadIdx.x == 128) addRelease(before, 1);
  }
}

__device__ __forceinline__ void consume(const HopperBackward& p, int wg, u32 base, u32 barK, const Rings& ring) {
  Past past = {0, 0};
  Walk w;
  for (Walks all; all.next(p, base, w);) {
    Sums sums;
    barWaitWarp(barK, all.i & 1);
    sumKeys(p, w, wg, base, ring, past, sums);
    if (LOOP && (threadIdx.x & 31) == 0) barArrive(base + AT_FREE);
    storeKeys(p, w, sums, threadOf(threadIdx.x, wg));
  }
  if (!SPLIT && BUFFERS == 1 && past.n > 0) barrierOf(READ + 1 - wg, FILL ? 160 : 256); // none is left pending
  for (int i = max(0, past.staged - AREAS); COPIED > 0 && i < past.staged; i++)
    barrierOf(areaBarrier(FREE, wg, i), 160);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    attn_hopper_backward(const __grid_constant__ HopperBackward arg) {
  const HopperBackward& p = INDIRECT ? *(const HopperBackward*)arg.self : arg;
  const u32 base = sharedTiles(), barK = base + AT_BAR;
  const u32 barO = barK + 8 + 16 * STAGES;
  const Rings ring = {{base + AT_STAGE, barK + 8, barK + 8 + 8 * STAGES}, {base + AT_O, barO, barO + 8 * OUTS}};
  if (threadIdx.x == 0) {
    barInit(barK, 1);
    ring.q.init(8), ring.o.init(8);
    if (LOOP) barInit(base + AT_FREE, 8), ticketsAt(base + AT_TICKET).init(COPIED > 0 ? 10 : 8);
    barInitDone();
    if (!LOOP) stShared(base + AT_TICKET, (u32)atomicAdd(p.ticket, 1));
  }
  __syncthreads();
  const int wg = warpgroup();
  if (wg == 0) {
    registersDown<24>();
    const int warp = __shfl_sync(0xffffffffu, (int)(threadIdx.x >> 5), 0);
    if (threadIdx.x == 0) {
      int n = 0;
      if (LOOP) produceAll(p, base, barK, ring);
      else produce(p, findWalk(p, __float_as_int(ldShared(base + AT_TICKET))), base, barK, ring, n);
    }
    if (COPIED > 0 && (warp == 1 || warp == 2)) addStaged(p, warp - 1, base);
  } else {
    registersUp<240>();
    consume(p, wg - 1, base, barK, ring);
  }
}

// dQ from fragments to rows: block (unit, head, sequence), a warpgroup for each map.
extern "C" __global__ void __launch_bounds__(128 * MAPS) attn_hopper_queries(const __grid_constant__ HopperQueries p) {
  const int m = blockIdx.x, h = blockIdx.y, b = blockIdx.z, map = threadIdx.x / 128, lane = threadIdx.x & 31;
  const i64 unit = (i64)(b * p.heads + h) * gridDim.x + m;
  const float* from = p.sums + (unit * MAPS + map) * (64 * D) + (threadIdx.x & 127) * 4;
  float x[D / 2];
#pragma unroll
  for (int i = 0; i < D / 8; i++) {
    const float4 a = *(const float4*)(from + i * 512);
    x[4 * i] = a.x, x[4 * i + 1] = a.y, x[4 * i + 2] = a.z, x[4 * i + 3] = a.w;
  }
  storeSums(x, p.dq + ((i64)b * p.t + m * 64) * p.lddq + ((i64)h * MAPS + map) * D, p.lddq, p.t - m * 64, p.scale,
            16 * (threadIdx.x >> 5 & 3) + (lane >> 2), lane & 3);
}
