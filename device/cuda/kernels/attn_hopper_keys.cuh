// attn_hopper_backward.cu: the products of K and V with a tile's queries.
// HELD_KEYS: the warpgroup's rows of K and V as left fragments, which are the same for all query tiles: products of S
// and dP then read half as much shared memory.
static_assert(!HELD_KEYS || (KEYS == 1 && !SPLIT && D % 64 == 0 && DV % 64 == 0), "one key head, and registers for it");
struct Keys {
  u32 k[HELD_KEYS ? D / 16 : 1][4], v[HELD_KEYS ? DV / 16 : 1][4];
  __device__ __forceinline__ void load(u32 base, const Thread& me) {
    if (!HELD_KEYS) return;
    const int row = me.row + 16 * me.warp;
#pragma unroll
    for (int i = 0; i < D / 16; i++) leftFragment<TileK>(k[HELD_KEYS ? i : 0], base, row, i, me.lane);
#pragma unroll
    for (int i = 0; i < DV / 16; i++) leftFragment<TileV>(v[HELD_KEYS ? i : 0], base + AT_V, row, i, me.lane);
  }
};

// Issues S of map i of the warpgroup's own.
__device__ __forceinline__ void scores(Scores& s, u32 base, u32 stage, const Keys& keys, const Thread& me, int i) {
  const int map = SPLIT ? me.wg : i;
  if (HELD_KEYS) heldByRows<TileQ>(s, keys.k, stage + map * TileQ::BYTES);
  else rowsByRows<TileK, TileQ>(s, base + (KEYS == 2 ? map : 0) * TileK::BYTES, me.row, stage + map * TileQ::BYTES, 0);
  mmaCommit();
}

// Issues dP of the n-th tile.
__device__ __forceinline__ void gradOutputs(Scores& dp, u32 base, const RingO& ring, int n, const Keys& keys,
                                            const Thread& me) {
  ring.wait(n);
  if (HELD_KEYS) heldByRows<TileO>(dp, keys.v, ring.tile(n));
  else rowsByRows<TileV, TileO>(dp, base + AT_V, me.row, ring.tile(n), 0);
  mmaCommit();
}
