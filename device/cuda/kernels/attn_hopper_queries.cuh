// dQ of attn_hopper_backward.cu: whose share a warpgroup forms, and how it is added in order, by threads or by the copy
// engine.

// Whose dQ a warpgroup forms at the n-th tile: of a map, of one of its units, or of every second tile.
struct Share {
  bool mine;
  int map, unit;
  i64 at;  // of the unit and map among all
};
__device__ __forceinline__ Share shareOf(const HopperBackward& p, const Walk& w, int n, int wg) {
  const int tiles = (p.t + BM - 1) / BM, map = MAPS == 2 ? wg : 0, unit = UNITS == 2 ? wg : 0;
  const i64 at = (((i64)(w.b * p.heads + w.h) * tiles + w.m) * UNITS + unit) * MAPS + map;
  return {MAPS == 2 || UNITS == 2 || (n & 1) == wg, map, unit, at};
}

// Key tiles that come before this one in the sum of dQ: those with later keys, or those with earlier ones.
__device__ __forceinline__ int turnOf(const HopperBackward& p, const Walk& w) {
  if (w.up) return w.n - (p.start == 0 ? 0 : p.start[w.n0 + w.m * BM] / BN);
  return (min(w.m * BM + BM, p.t) - 1) / BN - w.n;
}

// Pieces of a share that the copy engine adds, COPIED of them at a time in ROUNDS rounds; threads add the others. FILL:
// all at once, those that the area has no room for in what the tile has done with: dSᵀ of the warpgroup's map. It must
// be read before the next tile's is stored.
constexpr int STAGEDPIECES = FILL ? PIECES : COPIED * ROUNDS, LEFT = TileS::BYTES / PIECE;
static_assert(STAGEDPIECES <= PIECES, "a share has PIECES pieces");
static_assert(AREAS == 1 || ROUNDS == 1, "rounds share an area");
static_assert(!FILL || (MAPS == 2 && !SPLIT && AREAS == 1 && ROUNDS == 1 && BUFFERS == 1 && COPIED + LEFT == PIECES),
              "FILL is for shapes whose share has no other room");

// Where piece x of the i-th share of warpgroup wg is staged. A warpgroup's shares alternate between AREAS areas.
__device__ __forceinline__ u32 pieceAt(u32 base, int wg, int i, int x) {
  if (x < COPIED) return base + AT_DQ + ((i % AREAS * 2 + wg) * COPIED + x) * PIECE;
  return base + AT_S + wg * TileS::BYTES + (x - COPIED) * PIECE;
}

// The barrier STAGED or FREE of the i-th share.
__device__ __forceinline__ int areaBarrier(int of, int wg, int i) { return of + i % AREAS * 2 + wg; }

// One round: COUNT pieces from x0 go to their places, once those have been read, and addStaged adds them from there.
template <int COUNT>
__device__ __forceinline__ void stagePieces(const float* dq, int x0, u32 base, int share, bool wait, const Thread& me) {
  if (wait) barrierOf(areaBarrier(FREE, me.wg, share), 160);
#pragma unroll
  for (int x = 0; x < COUNT; x++) {
    const float* d = dq + 4 * (x0 + x);
    const u32 y[4] = {__float_as_uint(d[0]), __float_as_uint(d[1]), __float_as_uint(d[2]), __float_as_uint(d[3])};
    stShared4(pieceAt(base, me.wg, share, x) + me.tid * 16, y);
  }
  proxyFence();
}

// Adds the tile's share to dQ, after the key tiles that come before it (turnOf); seen is their counter as read before,
// staged is the number of shares that the warpgroup has staged.
__device__ __forceinline__ void addQueries(const HopperBackward& p, const Walk& w, u32 base, u32 grads, int seen,
                                           const int* counter, const Share& s, int staged, const Thread& me) {
  const int before = turnOf(p, w);
  float dq[D / 2];
  mmaFence();
  columnsByColumns<TileS, TileK>(dq, grads + s.map * TileS::BYTES, 64 * s.unit,
                                 base + (KEYS == 2 ? s.map : 0) * TileK::BYTES);
  mmaCommit();
  if (ADDS == 2 && STAGEDPIECES < PIECES && before > __shfl_sync(0xffffffffu, seen, 0)) { // uniform across the warp
    if (me.lane == 0)
      while (loadAcquire(counter) < before) {}
    __syncwarp();
  }
  mmaWait<0>();
  pin(dq);
  if (FILL) barrierOf(OWN_READ + me.wg, 128);
  else if (!SPLIT && BUFFERS == 1) barrierArrive(READ + me.wg, 256);
#pragma unroll
  for (int r = 0; r + 1 < ROUNDS; r++) {
    stagePieces<COPIED>(dq, r * COPIED, base, staged, staged > 0 || r > 0, me);
    barrierArrive(STAGED + me.wg, 160);
  }
  if (FILL) stagePieces<PIECES>(dq, 0, base, staged, false, me);
  else if (COPIED > 0) stagePieces<COPIED>(dq, STAGEDPIECES - COPIED, base, staged, staged >= AREAS || ROUNDS > 1, me);
  float* sum = p.sums + s.at * (64 * D) + me.tid * 4;
#pragma unroll
  for (int x = STAGEDPIECES; x < PIECES; x++) {
    if (ADDS != 2 ? ADDS == 1 : before > 0) redAdd4(sum + x * 512, dq + 4 * x);
    else if (ADDS == 2 || dq[4 * x] == 1e30f)
      *(float4*)(sum + x * 512) = {dq[4 * x], dq[4 * x + 1], dq[4 * x + 2], dq[4 * x + 3]};
  }
  if (COPIED > 0) barrierArrive(areaBarrier(STAGED, me.wg, staged), 160);
}

__device__ __forceinline__ void sendPieces(float* sum, u32 from, int pieces, bool add) {
  if (add) bulkAdd(sum, from, pieces * PIECE);
  else bulkStore(sum, from, pieces * PIECE);
}

// A producer warp adds what warpgroup wg has staged, in order, and announces it once memory has it: consumers wait
// neither for their turn nor for the L2.
__device__ __forceinline__ void addStaged(const HopperBackward& p, int wg, u32 base) {
  const int heads = p.heads / p.groups;
  const bool first = (threadIdx.x & 31) == 0;
  int n = 0, staged = 0;
  Walk w;
  for (Walks all; all.next(p, base, w);) do {
      const Share s = shareOf(p, w, n++, wg);
      if (!s.mine) continue;
      float* sum = p.sums + s.at * (64 * D);
      const int before = turnOf(p, w);
      for (int r = 0; r < ROUNDS; r++, sum += COPIED * (PIECE / 4)) {
        barrierOf(areaBarrier(STAGED, wg, staged), 160);
        if (first) {
          if (r == 0)
            while (loadAcquire(p.counts + s.at) < before) {}
          proxyFenceGlobal();
          sendPieces(sum, pieceAt(base, wg, staged, 0), COPIED, before > 0);
          if (FILL) sendPieces(sum + COPIED * (PIECE / 4), pieceAt(base, wg, staged, COPIED), LEFT, before > 0);
          bulkCommit();
          bulkWaitRead();
        }
        __syncwarp();
        barrierArrive(areaBarrier(FREE, wg, staged), 160);
        if (FILL) barrierArrive(READ + wg, 160);
      }
      staged++;
      if (first) bulkWait(), addRelease(p.counts + s.at, 1);
    } while (w.next(heads));
}
