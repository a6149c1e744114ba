// attn_hopper_backward.cu: dSᵀ of a tile, in shared memory for dQ and in registers for dK.
//
// PAIRS (V1, heads of 128, under trial): two blocks of a cluster have neighbouring key tiles of a group and walk over the
// same query tiles. Block r forms dQ of map r for both: it has the other's keys of that map, and gets the other's dSᵀ of
// it, 8 KB a tile through distributed shared memory, in the place of its own of the other map, which it sends away. So dQ
// is added to half as often, with 128 keys at a time; each warpgroup forms half of its columns. A tile that only one of
// both sees is zeros in the other. Sums have the order of pairs, and in a pair the block's own keys come first.
#if PAIRS
#define IN_PAIRS __cluster_dims__(2, 1, 1)
#else
#define IN_PAIRS
#endif
static_assert(!PAIRS || (SPLIT && MAPS == 2 && KEYS == 2 && BM == BN && BUFFERS == 1 && D % 128 == 0 && !LOOP && !FILL && !SKIP),
              "a map for each block of the pair, and its columns as whole panels for each warpgroup");
// Barriers of a pair. GOT: the other's dSᵀ of this block's map is there; TAKEN: the other has read what this block sent.
constexpr int AT_GOT = AT_TICKET - 16, AT_TAKEN = AT_TICKET - 8;
__device__ __forceinline__ void initPair(u32 base) { barInit(base + AT_GOT, 4), barInit(base + AT_TAKEN, 8); }

// Both blocks have begun and have the ticket of the first.
__device__ __forceinline__ void beginPair(u32 base) {
  pairSync();
  if (threadIdx.x == 0 && pairRank() == 1) stShared(base + AT_TICKET, ldPeer(peerOf(base + AT_TICKET)));
}

// dSᵀ of the warpgroup's map for the n-th tile: to this block's tile, or to the second one of the block whose map it is.
__device__ __forceinline__ void passGrads(const Packed& p, u32 base, u32 grads, int n, const Thread& me) {
  if (me.wg == pairRank()) {
    storeGrads(p, grads, me);
    return;
  }
  barWaitPeer(base + AT_TAKEN, (n & 1) ^ 1);
  const u32 there = peerOf(grads + TileS::BYTES);
#pragma unroll
  for (int k = 0; k < BM / 16; k++)
#pragma unroll
    for (int i = 0; i < 4; i++) { // row g or g + 8, columns 2t or 2t + 8
      const int row = 16 * me.warp + (me.lane >> 2) + 8 * (i & 1);
      stPeer(there + row * 128 + (((2 * k + (i >> 1)) ^ (row & 7)) << 4) + 4 * me.t, p[k][i]);
    }
  proxyFencePeer();
  __syncwarp();
  if (me.lane == 0) barArrivePeer(peerOf(base + AT_GOT));
}

// Issues dQ of the warpgroup's columns: the block's own keys, then the other's.
__device__ __forceinline__ void queriesOfPair(float (&dq)[4 * SHARE], u32 base, u32 grads, const Thread& me) {
  columnsByColumns<TileS, TileK>(dq, grads, 0, base + pairRank() * TileK::BYTES, me.wg * (D / 2));
  columnsByColumns<TileS, TileK>(dq, grads + TileS::BYTES, 0, base + KEYS * TileK::BYTES, me.wg * (D / 2), 1);
}

// The warp has read the other's dSᵀ.
__device__ __forceinline__ void gradsRead(u32 base, const Thread& me) {
  if (me.lane == 0) barArrivePeer(peerOf(base + AT_TAKEN));
}

// dS of the warpgroup's maps: to shared memory, and into dK, still in flight.
__device__ __forceinline__ void formGrads(u32 base, u32 stage, u32 stats, u32 grads, int n, Sums& sums, Packed (&ds)[OWN],
                                          const Scores& dp, const Thread& me) {
#pragma unroll
  for (int i = 0; i < OWN; i++) {
    const int map = SPLIT ? me.wg : i;
    gradScores(ds[i], dp, me, stats + (MAPS + map) * (BM * 4), map == 1 ? -1.f : 1.f);
    if (PAIRS) passGrads(ds[i], base, grads, n, me);
    else storeGrads(ds[i], grads + map * TileS::BYTES, me);
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
