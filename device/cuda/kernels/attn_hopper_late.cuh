// The consumers of attn_hopper_backward.cu with LATE 1: products of one tile run under the exponentials of the next, for
// heads of 64, whose sums leave registers for it, and dQ that the copy engine adds. Same bits as without.
//
// One map, and two with one key head (consumeLate):
//	tile n:  issue S(n), dQ(n−1), and dP(n) where there is one map; exp(S); dQ(n−1) to its area;
//	         issue dP(n), dV(n); dS = P∘(dP − Δ) to shared memory; issue dK(n)
// dV(n) and dK(n) are waited for with S(n+1). So a warpgroup never waits for a product that it has just issued, except for dP
// of two maps, and meets the other one not at a barrier of both but at its dS of the tile before: READY + 2·(n % 2) + w says
// that warpgroup w has stored dS(n). When it is passed, the other one has also finished dQ(n−2), so the buffer of dS(n) is free.
//
// V1, whose sums take 128 registers (consumeChained): S of the next tile is issued between dQ and its way to the area, so that
// the products dK(n), dQ(n), S(n+1) follow each other without a gap.
enum { READY = 9 };
static_assert(!LATE || (!SPLIT && BUFFERS == 2 && OUTS == 2 && COPIED * ROUNDS == PIECES), "needs two buffers and the copy engine");

// Whether the warpgroup forms a share of dQ of the n-th tile.
__device__ __forceinline__ bool formsShare(int n, int wg) { return MAPS == 2 || UNITS == 2 || (n & 1) == wg; }

// Issues dQ of the n-th tile, whose dS both warpgroups have stored.
__device__ __forceinline__ void issueQueries(float (&dq)[D / 2], u32 base, int n, const Thread& me) {
  const int map = MAPS == 2 ? me.wg : 0, unit = UNITS == 2 ? me.wg : 0;
  if (formsShare(n, me.wg))
    columnsByColumns<TileS, TileK>(dq, base + AT_S + (n % BUFFERS * MAPS + map) * TileS::BYTES, 64 * unit,
                                   base + (KEYS == 2 ? map : 0) * TileK::BYTES);
  mmaCommit(); // an empty group otherwise: waits count groups
}

// Hands dQ of the n-th tile to the copy engine.
__device__ __forceinline__ void passQueries(float (&dq)[D / 2], u32 base, int n, bool& staged, const Thread& me) {
  if (!formsShare(n, me.wg)) return;
  pin(dq);
#pragma unroll
  for (int r = 0; r < ROUNDS; r++) {
    stagePieces(dq, r * COPIED, base, staged || r > 0, me);
    barrierArrive(STAGED + me.wg, 160);
  }
  staged = true;
}

// The warpgroup's dV and dK are complete: the tile's Q and dO are free.
__device__ __forceinline__ void summed(Sums& sums, const Rings& ring, int n, const Thread& me) {
  pin(sums.dv);
#pragma unroll
  for (int i = 0; i < HELD; i++) pin(sums.dk[i]);
  if (n >= 0) ring.o.release(n, me.lane), ring.q.release(n, me.lane);
}

// P of a map from S, in place.
__device__ __forceinline__ void weigh(Scores& s, const HopperBackward& p, const Walk& w, const Thread& me, u32 stats, int map, bool masked) {
  pin(s);
  if (masked) mask(s, p, w, me);
  exponentials(s, me, stats + map * (BM * 4), p.scale * LOG2E);
  if (map == 1) timesLambda(s, me, stats);
}

// From P of the n-th tile: dP, dV, dS and dK; the last of them stays in flight, dV too where registers allow it.
__device__ __forceinline__ void gradTile(Sums& sums, Packed& wt, Packed (&ds)[OWN], Scores& dp, u32 base, const Rings& ring, int n, const Thread& me) {
  mmaFence();
  if (!EARLY) gradOutputs(dp, base, ring.o, n, me);
  addHeld<TileO>(sums.dv, wt, ring.o.tile(n), 0);
  mmaCommit();
  mmaWait<TIGHT ? 0 : 1>();
  pin(dp);
  formGrads(ring.q.tile(n), base + AT_STATS + n % STAGES * STATBYTES, base + AT_S + n % BUFFERS * (MAPS * TileS::BYTES), sums, ds, dp, me);
}

__device__ __forceinline__ void consumeLate(const HopperBackward& p, Walk w, int wg, u32 base, u32 barK, const Rings& ring) {
  const int heads = p.heads / p.groups;
  Sums sums;
  zeroSums(sums);
  Packed wt, ds[OWN];
  int n = 0;
  bool more = true, staged = false;
  barWaitWarp(barK, 0);
  for (; more; n++) {
    const Thread me = threadOf(fresh((u32)threadIdx.x), wg); // recompute addresses in each iteration
    const u32 stats = base + AT_STATS + n % STAGES * STATBYTES;
    Scores s[OWN], dp;
    float dq[D / 2];
    ring.q.wait(n);
    mmaFence();
#pragma unroll
    for (int i = 0; i < OWN; i++) scores(s[i], base, ring.q.tile(n), me, i);
    if (n > 0) barrierOf(READY + 2 * ((n - 1) & 1) + 1 - wg, 256), issueQueries(dq, base, n - 1, me);
    else mmaCommit();
    if (EARLY) gradOutputs(dp, base, ring.o, n, me);
    mmaWait<OWN + (EARLY ? 1 : 0)>(); // the first S, and with it dV and dK of the tile before
    summed(sums, ring, n - 1, me);
    const bool masked = isMasked(p, w);
    weigh(s[0], p, w, me, stats, 0, masked);
    if (OWN == 2) {
      mmaWait<1>();
      weigh(s[OWN - 1], p, w, me, stats, 1, masked);
    }
    mmaWait<EARLY ? 1 : 0>();
    if (n > 0) passQueries(dq, base, n - 1, staged, me);
    packMaps(wt, ds, s);
    gradTile(sums, wt, ds, dp, base, ring, n, me);
    barrierArrive(READY + 2 * (n & 1) + wg, 256);
    more = w.next(heads);
  }
  const Thread me = threadOf(threadIdx.x, wg);
  float dq[D / 2];
  barrierOf(READY + 2 * ((n - 1) & 1) + 1 - wg, 256);
  issueQueries(dq, base, n - 1, me);
  mmaWait<0>();
  summed(sums, ring, n - 1, me);
  passQueries(dq, base, n - 1, staged, me);
  storeKeys(p, w, sums, me);
  if (staged) barrierOf(FREE + wg, 160);
}

__device__ __forceinline__ void consumeChained(const HopperBackward& p, Walk w, int wg, u32 base, u32 barK, const Rings& ring) {
  const int heads = p.heads / p.groups;
  Sums sums;
  zeroSums(sums);
  Scores s[OWN];
  bool staged = false;
  barWaitWarp(barK, 0);
  ring.q.wait(0);
  mmaFence();
#pragma unroll
  for (int i = 0; i < OWN; i++) scores(s[i], base, ring.q.tile(0), threadOf(threadIdx.x, wg), i);
  for (int n = 0;; n++) {
    const Thread me = threadOf(fresh((u32)threadIdx.x), wg);
    const u32 stats = base + AT_STATS + n % STAGES * STATBYTES;
    const bool masked = isMasked(p, w);
    Packed wt, ds[OWN];
    Scores dp;
    float dq[D / 2];
    mmaWait<1>();
    weigh(s[0], p, w, me, stats, 0, masked);
    mmaWait<0>();
    weigh(s[OWN - 1], p, w, me, stats, 1, masked);
    packMaps(wt, ds, s);
    gradTile(sums, wt, ds, dp, base, ring, n, me);
    const bool more = w.next(heads);
    barrierOf(GRADS, 256);
    mmaWait<0>();
    summed(sums, ring, n, me);
    mmaFence();
    issueQueries(dq, base, n, me);
    if (more) {
      ring.q.wait(n + 1);
      zero(s[0]); // the compiler would keep the last S until here: products read their sums
      mmaFence();
      scores(s[0], base, ring.q.tile(n + 1), me, 0);
      mmaWait<1>();
    } else {
      mmaWait<0>();
    }
    passQueries(dq, base, n, staged, me);
    if (!more) break;
    zero(s[OWN - 1]);
    mmaFence();
    scores(s[OWN - 1], base, ring.q.tile(n + 1), me, 1);
  }
  storeKeys(p, w, sums, threadOf(threadIdx.x, wg));
  if (staged) barrierOf(FREE + wg, 160);
}
