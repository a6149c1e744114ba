// attn_hopper_backward.cu, WEAVE: one tile of two maps, map by map, so that products run under the work on the other
// map: dP under the exponentials of map 1, S_2 under dS_1, dK_1 under the exponentials of map 2. P_1 waits as fp16 (16
// registers) for W, so that S_1 and S_2 can share theirs. Sums of 128 registers leave ptxas too few for this: it
// serialises all products.
__device__ __forceinline__ void packHalves(Packed& p, const Scores& s) {
#pragma unroll
  for (int i = 0; i < BM / 4; i++) p[i / 4][i % 4] = packHalf(s[2 * i], s[2 * i + 1]);
}

// f(k, i, at, Δ) for each word of fragments: word i of the k-th, its elements at and at + 1 of scores, their Δ.
template <typename F> __device__ __forceinline__ void eachWord(const Thread& me, u32 delta, F f) {
#pragma unroll
  for (int k = 0; k < BM / 16; k++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int j = 2 * k + i / 2;
      f(k, i, 4 * j + 2 * (i & 1), ldShared2(delta + (8 * j + 2 * me.t) * 4));
    }
}

// dS_1 = P_1∘(dP − Δ_1) with P_1 as fp16.
__device__ __forceinline__ void gradFirst(Packed& ds, const Packed& p, const Scores& dp, const Thread& me, u32 delta) {
  eachWord(me, delta, [&](int k, int i, int at, float2 d) {
    ds[k][i] = packBf16(lowHalf(p[k][i]) * (dp[at] - d.x), highHalf(p[k][i]) * (dp[at + 1] - d.y));
  });
}

// With s = λ·P_2: W = P_1 − s in place of P_1, dS_2 = −s∘(dP − Δ_2).
__device__ __forceinline__ void gradSecond(Packed& w, Packed& ds, const Scores& s, const Scores& dp, const Thread& me,
                                           u32 delta) {
  eachWord(me, delta, [&](int k, int i, int at, float2 d) {
    w[k][i] = packBf16(lowHalf(w[k][i]) - s[at], highHalf(w[k][i]) - s[at + 1]);
    ds[k][i] = packBf16(s[at] * (d.x - dp[at]), s[at + 1] * (d.y - dp[at + 1]));
  });
}

// The n-th tile: dSᵀ of both maps in shared memory, dV and dK_2 in flight.
__device__ __forceinline__ void weaveTile(const HopperBackward& p, const Walk& w, u32 base, const Rings& ring, int n,
                                          u32 stats, u32 grads, const Keys& keys, Sums& sums, Packed& wt,
                                          Packed (&ds)[2], const Thread& me) {
  const u32 stage = ring.q.tile(n);
  const bool masked = isMasked(p, w);
  const float c = p.scale * LOG2E;
  Scores s, dp;
  ring.q.wait(n);
  mmaFence();
  scores(s, base, stage, keys, me, 0);
  gradOutputs(dp, base, ring.o, n, keys, me);
  mmaWait<1>();
  pin(s);
  if (masked) mask(s, p, w, me);
  exponentials(s, me, stats, c);
  packHalves(wt, s);
  mmaFence();
  scores(s, base, stage, keys, me, 1);
  mmaWait<1>();
  pin(dp);
  gradFirst(ds[0], wt, dp, me, stats + 2 * (BM * 4));
  storeGrads(ds[0], grads, me);
  mmaFence();
  addHeld<TileQ>(sums.dk[0], ds[0], stage, 0);
  mmaCommit();
  mmaWait<1>();
  pin(s);
  if (masked) mask(s, p, w, me);
  exponentials(s, me, stats + BM * 4, c);
  timesLambda(s, me, stats);
  mmaWait<0>();
  pin(sums.dk[0]);
  gradSecond(wt, ds[1], s, dp, me, stats + 3 * (BM * 4));
  storeGrads(ds[1], grads + TileS::BYTES, me);
  proxyFence();
  mmaFence();
  addHeld<TileO>(sums.dv, wt, ring.o.tile(n), 0);
  addHeld<TileQ>(sums.dk[HELD - 1], ds[1], stage + TileQ::BYTES, 0);
  mmaCommit();
}
