// The kernel of diffattention_bytes.cu for few splits, such as those of one row: a block takes one, each of its warps a
// stage. K and V of a stage are in flight together, and no copy follows. Scores meet in shared memory, where each warp
// reads all of them for the softmax. Sums over values are of integers, which the warps may add in any order, and all
// else is done in the same order as by one warp: the bits are the same.
static_assert(PER == WARPS, "a stage of K and one of V for each warp");
constexpr int TILES = CHUNKS * COLUMNS / 2;
static_assert(TILES % WARPS == 0 && TILES * 16 * sizeof(uint4) <= K_STAGE, "a warp's sums fit in its stage of K");

// Adds the warps' sums, by way of their stages of K, and stores them: each warp those of some tiles. The lanes t < MAPS
// have all of them.
__device__ __forceinline__ void joinWarps(float* sums, const int (&sum)[CHUNKS][COLUMNS / 2][4], byte* rings,
                                          const Unit (&unit)[MAPS]) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, t = lane & 3, at = (lane >> 2) * MAPS + t;
  if (t < MAPS)
#pragma unroll
    for (int i = 0; i < TILES; i++) {
      const int* z = sum[i / (COLUMNS / 2)][i % (COLUMNS / 2)];
      ((uint4*)(rings + warp * STAGES * STAGE))[16 * i + at] = {(u32)z[0], (u32)z[1], (u32)z[2], (u32)z[3]};
    }
  __syncthreads();
  if (t >= MAPS) return;
#pragma unroll
  for (int i = 0; i < TILES / WARPS; i++) {
    const int tile = warp * (TILES / WARPS) + i;
    int z[4] = {};
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
      const uint4 y = ((const uint4*)(rings + w * STAGES * STAGE))[16 * tile + at];
      z[0] += (int)y.x, z[1] += (int)y.y, z[2] += (int)y.z, z[3] += (int)y.w;
    }
    store(sums + t * VALUE, tile / (COLUMNS / 2), tile % (COLUMNS / 2), z, t == 0 ? unit[0] : unit[1]);
  }
}

// Grid: a block for each item. Where only the rows' newest keys may still be in flight (early), stages without any of
// them are copied before the wait.
extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
diffattention_bytes_few(const bf16* q, const byte* k, const byte* v, const int* table, const int* slot, const int* pos,
                        int* fault, float* sums, float* stats, i64 ldq, i64 ldk, i64 ldv, i64 ldt, int H, int N,
                        int splits, float scale, int slots, int pages, int size, int rows, int early) {
  extern __shared__ uint4 cachedShared[];
  __shared__ Room rooms[WARPS];
  __shared__ Scores common;
  beginNext();
  const int warp = threadIdx.x >> 5;
  Room& r = rooms[warp];
  byte *rings = (byte*)cachedShared, *ring = rings + warp * STAGES * STAGE;
  const Bytes a = {k, v, ldk, ldv, {table, ldt, slots, pages, size, rows}, slot, pos, fault, H, N, splits};
  if (threadIdx.x == 0)
    for (int n = blockIdx.x; n < N; n += gridDim.x)
      if (pos[n] < 0 || pos[n] >= pages * size) report(fault, FAULT_CACHE, pos[n], pages * size);
  const Item x = itemOf(a, blockIdx.x);
  const bool mine = 32 * warp < x.count; // the stage has keys
  if (!early || inFlight(a, x.n, x.at * SPLIT + 32 * warp, 32)) waitEarlier();
  if (mine) findRows<1>(r, a, x, warp);
#pragma unroll
  for (int i = 0; i < 2; i++) {
    if (mine) copyStage(r, a, sharedAddr(ring) + i * STAGE, x, i, 1);
    cpCommit();
  }
  waitEarlier();
  if (x.count <= 0) return;
  const i64 part = (((i64)x.n * splits + x.at) * H + x.h) * MAPS;
  Unit unit[MAPS] = {};
  int sum[CHUNKS][COLUMNS / 2][4] = {};
  if (mine) keepQuery(r, q + x.n * ldq + (i64)x.h * MAPS * HEAD, scale * LOG2E);
  cpWait<1>();
  __syncwarp();
  if (mine) {
    Query query;
    query.load(r);
    scores(common, r, query, ring, 32 * warp);
  }
  __syncthreads();
  softmax(unit, r.own, common, warp, x.count, stats + 2 * part);
  cpWait<0>();
  __syncwarp();
  if (mine) addStage(sum, r.own, ring + STAGE, warp);
  joinWarps(sums + part * VALUE, sum, rings, unit);
}
