// The tile's products with warps that own keys. A warp computes Sᵀ of its KM·16 keys and QC queries at a time. The
// layout of a product's result is that of the next one's left operand, so Pᵀ and dSᵀ feed dV and dK from registers;
// only dSᵀ goes to shared memory, for dQ. Used for one map and shapes whose dK and dV leave room for 32 keys per warp
// (D = DV = 64): there a 64 × 128 tile reads 240 KB of shared memory, against 336 KB with S shared, and warps need not
// wait for each other before dQ.
constexpr int KW = WARPS, KNW = 1, KMW = WARPS, KM = BN / 16 / WARPS, KN = D / 16;
constexpr int VNW = 1, VMW = WARPS, VM = KM, VN = DV / 16;
constexpr int QC = 32, CN = QC / 16;
struct Sums { float dk[KM][2 * KN][4], dv[VM][2 * VN][4]; };

typedef float Scores[KM][2 * CN][4];
typedef u32 Packed[KM][CN][4]; // left fragments: rows are keys, k runs over queries

// A packed result as the left operand of a product.
struct Held {
  const Packed& f;
  __device__ __forceinline__ void load(u32* r, int i, int k) const {
#pragma unroll
    for (int e = 0; e < 4; e++) r[e] = f[i][k][e];
  }
};

// The lane's keys and queries: key(mt, half) and query(j, e) count from the tile's first.
struct Cell {
  int key0, query0;
  __device__ __forceinline__ int key(int mt, int half) const { return key0 + 16 * WARPS * mt + 8 * half; }
  __device__ __forceinline__ int query(int j, int e) const { return query0 + 8 * j + e; }
};

__device__ __forceinline__ void maskScores(Scores& s, const Backward& p, const Walk& w, const Cell& at) {
#pragma unroll
  for (int j = 0; j < 2 * CN; j++)
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const int row = w.m * BM + at.query(j, e), first = p.start == 0 ? 0 : p.start[w.n0 + min(row, p.T - 1)];
#pragma unroll
      for (int mt = 0; mt < KM; mt++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
          const int key = w.n * BN + at.key(mt, half);
          if (key > row || key < first) s[mt][j][2 * half + e] = -INFINITE;
        }
    }
}

// P = exp2(c·s − LSE·log2 e), in place; stats points to the statistic of query 0.
__device__ __forceinline__ void exponentials(Scores& s, const Cell& at, u32 stats, float c) {
#pragma unroll
  for (int j = 0; j < 2 * CN; j++)
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const float lse = ldShared(stats + at.query(j, e) * (STATS * 4));
#pragma unroll
      for (int mt = 0; mt < KM; mt++)
#pragma unroll
        for (int half = 0; half < 2; half++) s[mt][j][2 * half + e] = ex2(fmaf(s[mt][j][2 * half + e], c, -lse));
    }
}

__device__ __forceinline__ void pack(Packed& p, const Scores& s) {
#pragma unroll
  for (int mt = 0; mt < KM; mt++)
#pragma unroll
    for (int j = 0; j < 2 * CN; j++)
#pragma unroll
      for (int half = 0; half < 2; half++)
        p[mt][j >> 1][2 * (j & 1) + half] = packBf16(s[mt][j][2 * half], s[mt][j][2 * half + 1]);
}

// dS = P∘(dP − Δ), packed in place of P, and to shared memory as rows of keys; out is the lane's first address there.
__device__ __forceinline__ void gradScores(Packed& p, const Scores& dp, const Cell& at, u32 delta, u32 out) {
#pragma unroll
  for (int j = 0; j < 2 * CN; j++) {
    const float d0 = ldShared(delta + at.query(j, 0) * (STATS * 4)),
        d1 = ldShared(delta + at.query(j, 1) * (STATS * 4));
#pragma unroll
    for (int mt = 0; mt < KM; mt++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        u32& x = p[mt][j >> 1][2 * (j & 1) + half];
        x = packBf16(lowBf16(x) * (dp[mt][j][2 * half] - d0), highBf16(x) * (dp[mt][j][2 * half + 1] - d1));
        stShared(tileRight<BM>(out, j) + (mt * 16 * WARPS + 8 * half) * (2 * BM), x);
      }
  }
}

// One chunk of QC queries, starting at query c.
__device__ __forceinline__ void formChunk(const Backward& p, const Walk& w, u32 base, u32 stage, Sums& sums, int c,
                                          bool mask, int warp, int lane) {
  const Cell at = {16 * warp + (lane >> 2), c + 2 * (lane & 3)};
  const u32 stats = stage + BYTES_Q + BYTES_O, o = stage + BYTES_Q + c * (2 * DV), q = stage + c * (2 * D);
  const u32 out = fresh(tileAt<BM>(base + AT_P, at.key0, c / 8) + 4 * (lane & 3));
  Scores s;
  Packed pt;
  clear(s);
  product<KM, CN, D / 16>(s, leftSide<D, false, WARPS>(base, warp, lane), rightSide<D, false, 1>(q, 0, lane));
  if (mask) maskScores(s, p, w, at);
  exponentials(s, at, stats, p.scale * LOG2E);
  pack(pt, s);
  product<VM, VN, CN>(sums.dv, Held{pt}, rightSide<DV, true, 1>(o, 0, lane));
  clear(s);
  product<KM, CN, DV / 16>(s, leftSide<DV, false, WARPS>(base + AT_V, warp, lane), rightSide<DV, false, 1>(o, 0, lane));
  gradScores(pt, s, at, stats + 4, out);
  product<KM, KN, CN>(sums.dk, Held{pt}, rightSide<D, true, 1>(q, 0, lane));
}

// The work that does not depend on other warps: everything except dQ.
__device__ __forceinline__ void formTiles(const Backward& p, const Walk& w, u32 base, u32 stage, Sums& sums,
                                          int warp, int lane) {
  static_assert(MAPS == 1 && KEYS == 1, "registers do not suffice for two maps");
  const bool mask = w.n * BN + BN - 1 > w.m * BM ||
      (p.start != 0 && w.n * BN < p.start[w.n0 + min(w.m * BM + BM, p.T) - 1]);
#pragma unroll 1
  for (int c = 0; c < BM; c += QC) formChunk(p, w, base, stage, sums, c, mask, warp, lane);
}

__device__ __forceinline__ void addKeys(u32, u32, Sums&, int, int) {}

// dS as the left operand of dQ.
__device__ __forceinline__ Side<BM, true, QMW> gradSide(u32 base, int, int piece, int lane) {
  return leftSide<BM, true, QMW>(base + AT_P, piece, lane);
}
