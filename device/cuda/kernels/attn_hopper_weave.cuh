// attn_hopper_backward.cu, WEAVE: one tile of two maps, map by map, so that products run under the work on the other map:
// dP under the exponentials of map 1, S_2 under dS_1, dK_1 under the exponentials of map 2. P_1 waits as fp16 (16
// registers) for W, so that S_1 and S_2 can share theirs. Where registers are short (TIGHT), S_2 waits for dS_1, and dK
// is formed from dSᵀ in shared memory, which costs 8 KB of reads for each map and warpgroup, instead of from 16
// registers: with them ptxas runs out of registers and serialises all products.
__device__ __forceinline__ void packHalves(Packed& p, const Scores& s) {
#pragma unroll
  for (int i = 0; i < BM / 4; i++) p[i / 4][i % 4] = packHalf(s[2 * i], s[2 * i + 1]);
}

// Queries 16k… of dSᵀ to its tile, as storeGrads.
__device__ __forceinline__ void storeGrad(const u32 (&x)[4], int k, u32 tile, const Thread& me) {
  const int row = me.row + 16 * me.warp + (me.lane & 15);
  stmatrix4(tile + k / 4 * TileS::PANEL + row * 128 + (((2 * (k & 3) + (me.lane >> 4)) ^ (row & 7)) << 4), x);
}

// dS_1 = P_1∘(dP − Δ_1) with P_1 as fp16, to its tile and, if they can be held, to registers.
__device__ __forceinline__ void gradFirst(Packed& ds, const Packed& p, const Scores& dp, const Thread& me, u32 delta, u32 tile) {
#pragma unroll
  for (int k = 0; k < BM / 16; k++) {
    u32 x[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int j = 2 * k + i / 2, at = 4 * j + 2 * (i & 1);
      const float2 d = ldShared2(delta + (8 * j + 2 * me.t) * 4);
      x[i] = packBf16(lowHalf(p[k][i]) * (dp[at] - d.x), highHalf(p[k][i]) * (dp[at + 1] - d.y));
      if (!TIGHT) ds[k][i] = x[i];
    }
    storeGrad(x, k, tile, me);
  }
}

// With s = λ·P_2: W = P_1 − s in place of P_1, dS_2 = −s∘(dP − Δ_2).
__device__ __forceinline__ void gradSecond(Packed& w, Packed& ds, const Scores& s, const Scores& dp, const Thread& me, u32 delta,
                                           u32 tile) {
#pragma unroll
  for (int k = 0; k < BM / 16; k++) {
    u32 x[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int j = 2 * k + i / 2, at = 4 * j + 2 * (i & 1);
      const float2 d = ldShared2(delta + (8 * j + 2 * me.t) * 4);
      w[k][i] = packBf16(lowHalf(w[k][i]) - s[at], highHalf(w[k][i]) - s[at + 1]);
      x[i] = packBf16(s[at] * (d.x - dp[at]), s[at + 1] * (d.y - dp[at + 1]));
      if (!TIGHT) ds[k][i] = x[i];
    }
    storeGrad(x, k, tile, me);
  }
}

// Issues dK of a map: from registers, or from the warpgroup's rows of dSᵀ.
__device__ __forceinline__ void addKeys(float (&dk)[D / 2], const Packed& ds, u32 tile, u32 queries, const Thread& me) {
  if (TIGHT) {
#pragma unroll
    for (int k = 0; k < BM / 16; k++) wgmmaSS<0, 1>(dk, TileS::along(tile, me.row, k), TileQ::down(queries, 0, k), 1);
  } else {
    addHeld<TileQ>(dk, ds, queries, 0);
  }
}

// The n-th tile: dSᵀ of both maps in shared memory, dV in flight, and dK_2 unless it is TIGHT, which wants the barrier
// first. Before its first write it waits, if n > 0, for the other warpgroup to have read the tile before, where there
// is one buffer.
__device__ __forceinline__ void weaveTile(const HopperBackward& p, const Walk& w, u32 base, const Rings& ring, int n, u32 stats,
                                          u32 grads, Sums& sums, Packed& wt, Packed (&ds)[2], const Thread& me) {
  const u32 stage = ring.q.tile(n);
  const bool masked = isMasked(p, w);
  const float c = p.scale * LOG2E;
  Scores s, dp;
  ring.q.wait(n);
  mmaFence();
  scores(s, base, stage, me, 0);
  gradOutputs(dp, base, ring.o, n, me);
  mmaWait<1>();
  pin(s);
  if (masked) mask(s, p, w, me);
  exponentials(s, me, stats, c);
  packHalves(wt, s);
  if (TIGHT) {
    mmaWait<0>();
  } else {
    mmaFence();
    scores(s, base, stage, me, 1);
    mmaWait<1>();
  }
  pin(dp);
  if (BUFFERS == 1 && n > 0) barrierOf(READ + 1 - me.wg, 256);
  gradFirst(ds[0], wt, dp, me, stats + 2 * (BM * 4), grads);
  if (TIGHT) proxyFence(), barrierOf(STORED + me.wg, 128);
  mmaFence();
  if (TIGHT) scores(s, base, stage, me, 1);
  addKeys(sums.dk[0], ds[0], grads, stage, me);
  mmaCommit();
  mmaWait<1>();
  pin(s);
  if (masked) mask(s, p, w, me);
  exponentials(s, me, stats + BM * 4, c);
  timesLambda(s, me, stats);
  mmaWait<0>();
  pin(sums.dk[0]);
  gradSecond(wt, ds[1], s, dp, me, stats + 3 * (BM * 4), grads + TileS::BYTES);
  proxyFence();
  mmaFence();
  addHeld<TileO>(sums.dv, wt, ring.o.tile(n), 0);
  if (!TIGHT) addKeys(sums.dk[HELD - 1], ds[1], grads, stage + TileQ::BYTES, me);
  mmaCommit();
}
