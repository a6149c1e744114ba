// The tile's products with S shared by all warps: W and dS pass through shared memory to change from the layout of S to
// those of the next products. Used for shapes whose dK and dV fill the registers with 16 keys per warp (see
// attn_backward.cuh).

// How the warps divide S (and dP), dK and dV: warps along columns and rows, fragments of a warp along rows and columns.
// With two maps, half of the warps compute dK of each: larger shares read less shared memory.
constexpr int KW = WARPS / KEYS;
constexpr int SNW = warpsAlongN(BM, BN, WARPS), SMW = WARPS / SNW, SM = BM / 16 / SMW, SN = BN / 16 / SNW;
constexpr int KNW = warpsAlongN(BN, D, KW), KMW = KW / KNW, KM = BN / 16 / KMW, KN = D / 16 / KNW;
constexpr int VNW = warpsAlongN(BN, DV, WARPS), VMW = WARPS / VNW, VM = BN / 16 / VMW, VN = DV / 16 / VNW;
constexpr int BYTES_P = BM * BN * 2; // W, then dS of each map
struct Sums { float dk[KM][2 * KN][4], dv[VM][2 * VN][4]; };

// A warp's part of S: rows row0 + 16·SMW·mt + 8·half, columns 16·SNW·(j/2) + 8·(j%2) + {0, 1} from col0.
struct Cell {
  int row0, col0;
  __device__ __forceinline__ int row(int mt, int half) const { return row0 + 16 * SMW * mt + 8 * half; }
  __device__ __forceinline__ int col(int j) const { return col0 + 16 * SNW * (j >> 1) + 8 * (j & 1); }
};
typedef float Scores[SM][2 * SN][4];
typedef u32 Packed[SM][2 * SN][2]; // pairs of adjacent columns

// With two maps, S_1 and S_2 are computed for a piece of the warp's columns at a time: next to dK and dV, all of both
// would not fit in registers. Their j-th columns are the warp's j0 + j-th.
constexpr int PN = MAPS == 2 && SM * SN > 2 && BN * (KEYS * D + DV) > 64 * THREADS ? 1 : SN;
typedef float Piece[SM][2 * PN][4];

// The right operand of a product, starting at its j0-th fragment.
template <typename S> struct From {
  S side;
  int j0;
  __device__ __forceinline__ void load(u32* r, int j, int k) const { side.load(r, j0 + j, k); }
};

__device__ __forceinline__ void maskScores(Piece& s, const Backward& p, const Walk& w, const Cell& at, int j0) {
#pragma unroll
  for (int mt = 0; mt < SM; mt++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int row = w.m * BM + at.row(mt, half), first = p.start == 0 ? 0 : p.start[w.n0 + min(row, p.T - 1)];
#pragma unroll
      for (int j = 0; j < 2 * PN; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          const int key = w.n * BN + at.col(j0 + j) + e;
          if (key > row || key < first) s[mt][j][2 * half + e] = -INFINITE;
        }
    }
}

// P = exp2(c·s − LSE·log2 e), in place; stats points to the statistic of row 0.
__device__ __forceinline__ void exponentials(Piece& s, const Cell& at, u32 stats, float c) {
#pragma unroll
  for (int mt = 0; mt < SM; mt++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const float lse = ldShared(stats + at.row(mt, half) * (STATS * 4));
#pragma unroll
      for (int j = 0; j < 2 * PN; j++)
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; e++) s[mt][j][e] = ex2(fmaf(s[mt][j][e], c, -lse));
    }
}

__device__ __forceinline__ void pack(Packed& p, const Piece& s, int j0) {
#pragma unroll
  for (int mt = 0; mt < SM; mt++)
#pragma unroll
    for (int j = 0; j < 2 * PN; j++)
#pragma unroll
      for (int half = 0; half < 2; half++) p[mt][j0 + j][half] = packBf16(s[mt][j][2 * half], s[mt][j][2 * half + 1]);
}

// Writes a pair of a packed tile; at is the lane's first address in it.
__device__ __forceinline__ void storePair(u32 at, int mt, int half, int j, u32 x) {
  stShared(tileRight<BN>(at, 2 * SNW * (j >> 1) + (j & 1)) + (mt * 16 * SMW + 8 * half) * (2 * BN), x);
}

__device__ __forceinline__ void storeTile(u32 at, const Packed& p) {
#pragma unroll
  for (int mt = 0; mt < SM; mt++)
#pragma unroll
    for (int j = 0; j < 2 * SN; j++)
#pragma unroll
      for (int half = 0; half < 2; half++) storePair(at, mt, half, j, p[mt][j][half]);
}

// Packs λP2, with P2 in s, into lp, and writes W = P1 − λP2 to shared memory. P1 is not rounded before that, because W
// is small where the maps agree.
__device__ __forceinline__ void subtract(Packed& lp, const Piece& s, const Piece& p1, const Cell& at, u32 stats,
                                         u32 out, int j0) {
#pragma unroll
  for (int mt = 0; mt < SM; mt++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const float lam = ldShared(stats + at.row(mt, half) * (STATS * 4) + 16);
#pragma unroll
      for (int j = 0; j < 2 * PN; j++) {
        const float a = lam * s[mt][j][2 * half], b = lam * s[mt][j][2 * half + 1];
        lp[mt][j0 + j][half] = packBf16(a, b);
        storePair(out, mt, half, j0 + j, packBf16(p1[mt][j][2 * half] - a, p1[mt][j][2 * half + 1] - b));
      }
    }
}

// dS = ±P∘(dP − Δ), to shared memory. delta points to Δ of row 0.
__device__ __forceinline__ void gradScores(const Packed& p, const Scores& dp, const Cell& at, u32 delta,
                                           float sign, u32 out) {
#pragma unroll
  for (int mt = 0; mt < SM; mt++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const float d = ldShared(delta + at.row(mt, half) * (STATS * 4));
#pragma unroll
      for (int j = 0; j < 2 * SN; j++)
        storePair(out, mt, half, j, packBf16(sign * lowBf16(p[mt][j][half]) * (dp[mt][j][2 * half] - d),
                                             sign * highBf16(p[mt][j][half]) * (dp[mt][j][2 * half + 1] - d)));
    }
}

// P_1, packed, and with two maps λ·P_2 and W, of the columns starting at the warp's j0-th.
__device__ __forceinline__ void formMaps(Packed& p1, Packed& p2, const Backward& p, const Walk& w, u32 base, u32 stage,
                                         const Cell& at, u32 out, bool mask, int j0, int sm, int sn, int lane) {
  const u32 stats = stage + MAPS * BYTES_Q + BYTES_O;
  const float c = p.scale * LOG2E;
  Piece s, t;
  clear(s);
  product<SM, PN, D / 16>(s, leftSide<D, false, SMW>(stage, sm, lane),
                          From<Side<D, false, SNW>>{rightSide<D, false, SNW>(base, sn, lane), j0 / 2});
  if (mask) maskScores(s, p, w, at, j0);
  exponentials(s, at, stats, c);
  if (MAPS == 2) {
    clear(t);
    product<SM, PN, D / 16>(
        t, leftSide<D, false, SMW>(stage + BYTES_Q, sm, lane),
        From<Side<D, false, SNW>>{rightSide<D, false, SNW>(base + (KEYS - 1) * BYTES_K, sn, lane), j0 / 2});
    if (mask) maskScores(t, p, w, at, j0);
    exponentials(t, at, stats + 4, c);
    subtract(p2, t, s, at, stats, out, j0);
  }
  pack(p1, s, j0);
}

// The work that does not depend on other warps: W and dS of the current tile, into shared memory.
__device__ __forceinline__ void formTiles(const Backward& p, const Walk& w, u32 base, u32 stage, Sums&,
                                          int warp, int lane) {
  const int sm = warp / SNW, sn = warp % SNW;
  const Cell at = {16 * sm + (lane >> 2), 16 * sn + 2 * (lane & 3)};
  const u32 stats = stage + MAPS * BYTES_Q + BYTES_O,
      out = fresh(tileAt<BN>(base + AT_P, at.row0, 2 * sn) + 4 * (lane & 3));
  const bool mask = w.n * BN + BN - 1 > w.m * BM ||
      (p.start != 0 && w.n * BN < p.start[w.n0 + min(w.m * BM + BM, p.T) - 1]);
  Packed p1, p2;
#pragma unroll
  for (int j0 = 0; j0 < 2 * SN; j0 += 2 * PN) formMaps(p1, p2, p, w, base, stage, at, out, mask, j0, sm, sn, lane);
  if (MAPS == 1) storeTile(out, p1);
  Scores s;
  clear(s);
  product<SM, SN, DV / 16>(s, leftSide<DV, false, SMW>(stage + MAPS * BYTES_Q, sm, lane),
                           rightSide<DV, false, SNW>(base + AT_V, sn, lane));
  gradScores(p1, s, at, stats + 4 * MAPS, 1.f, out + BYTES_P);
  if (MAPS == 2) gradScores(p2, s, at, stats + 12, -1.f, out + 2 * BYTES_P);
}

// The work that needs all warps' W and dS.
__device__ __forceinline__ void addKeys(u32 base, u32 stage, Sums& sums, int warp, int lane) {
  product<VM, VN, BM / 16>(sums.dv, leftSide<BN, true, VMW>(base + AT_P, warp / VNW, lane),
                           rightSide<DV, true, VNW>(stage + MAPS * BYTES_Q, warp % VNW, lane));
#pragma unroll
  for (int i = 0; i < MAPS / KEYS; i++) { // both maps of V2 share their keys
    const int map = KEYS == 2 ? warp / KW : i, place = warp % KW;
    product<KM, KN, BM / 16>(sums.dk, leftSide<BN, true, KMW>(base + AT_P + (1 + map) * BYTES_P, place / KNW, lane),
                             rightSide<D, true, KNW>(stage + map * BYTES_Q, place % KNW, lane));
  }
}

// dS of a map as the left operand of dQ.
__device__ __forceinline__ Side<BN, false, QMW> gradSide(u32 base, int map, int piece, int lane) {
  return leftSide<BN, false, QMW>(base + AT_P + (1 + map) * BYTES_P, piece, lane);
}
