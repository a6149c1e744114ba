// Products c[m,n] (+)= op(a)[m,k]·op(b)[k,n] for which neither cuBLASLt nor matmul_rows.cu is used: few rows, which
// must have the same bits in any batch, with weights that are transposed or not 16-byte aligned, and shapes that the
// library rejects.
//
// A block computes a BM×64 tile over its part of k: tiles of 64 k are loaded by cp.async, three or four in flight, with
// rows padded by 16 bytes so that ldmatrix has no bank conflicts; 4 warps multiply with mma.m16n8k16. An element is the
// sum over k in steps of 16, in order, within parts that depend only on n and k, and the parts are added in order by
// matmul_reduce: its bits depend on neither BM nor m. For few rows the bound is one read of the weights.
enum { OUT_FLOAT = 1, ACCUMULATE = 2, VEC_A = 4, VEC_B = 8 };

// Copies rows × COLS elements from (r0, c0) of a matrix to shared memory, zeros beyond rmax and cmax.
template <int ROWS, int COLS, int LD>
__device__ __forceinline__ void fetch(bf16* to, const bf16* x, i64 ldx, int r0, int c0, int rmax, int cmax, bool vec) {
  for (int i = threadIdx.x; i < ROWS * (COLS / 8); i += 128) {
    int r = i / (COLS / 8), c = i % (COLS / 8) * 8;
    int n = r0 + r < rmax ? cmax - (c0 + c) : 0;
    n = n < 0 ? 0 : n > 8 ? 8 : n;
    bf16* dst = to + r * LD + c;
    const bf16* src = n > 0 ? x + (r0 + r) * ldx + c0 + c : x;
    if (vec) {
      cpAsync16(sharedAddr(dst), src, 2 * n);
    } else {
#pragma unroll
      for (int e = 0; e < 8; e++) dst[e] = e < n ? src[e] : (bf16)0;
    }
  }
}

template <int BM, bool TA, bool TB>
__device__ __forceinline__ void tile(const bf16* a, i64 lda, const bf16* b, i64 ldb, void* c, i64 ldc, int m, int n,
                                     int k, int per, float* part, int flags) {
  constexpr int BN = 64, BK = 64, STAGES = BM == 16 ? 4 : 3;
  constexpr int WM = BM == 16 ? 16 : 32, WN = BM == 16 ? 16 : 32;
  constexpr int LA = (TA ? BM : BK) + 8, LB = (TB ? BK : BN) + 8;
  constexpr int SA = (TA ? BK : BM) * LA, SB = (TB ? BN : BK) * LB;
  extern __shared__ uint4 room16[];
  bf16* room = (bf16*)room16;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int wm = BM == 16 ? 0 : (warp >> 1) * 32, wn = BM == 16 ? warp * 16 : (warp & 1) * 32;
  int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN, k0 = blockIdx.z * per, k1 = k0 + per < k ? k0 + per : k;
  int steps = k1 > k0 ? (k1 - k0 + BK - 1) / BK : 0;
  float acc[WM / 16][WN / 8][4];
#pragma unroll
  for (int i = 0; i < WM / 16; i++)
#pragma unroll
    for (int j = 0; j < WN / 8; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) acc[i][j][e] = 0.f;

  auto load = [&](int s) {
    if (s < steps) {
      bf16 *as = room + s % STAGES * (SA + SB), *bs = as + SA;
      int at = k0 + s * BK;
      if (TA) fetch<BK, BM, LA>(as, a, lda, at, m0, k1, m, flags & VEC_A);
      else fetch<BM, BK, LA>(as, a, lda, m0, at, m, k1, flags & VEC_A);
      if (TB) fetch<BN, BK, LB>(bs, b, ldb, n0, at, n, k1, flags & VEC_B);
      else fetch<BK, BN, LB>(bs, b, ldb, at, n0, k1, n, flags & VEC_B);
    }
    cpCommit();
  };
#pragma unroll
  for (int s = 0; s < STAGES - 1; s++) load(s);
  for (int s = 0; s < steps; s++) {
    cpWait<STAGES - 2>();
    __syncthreads();
    load(s + STAGES - 1);
    const bf16 *as = room + s % STAGES * (SA + SB), *bs = as + SA;
#pragma unroll
    for (int kk = 0; kk < BK; kk += 16) {
      u32 af[WM / 16][4], bf[4];
#pragma unroll
      for (int i = 0; i < WM / 16; i++) {
        if (TA) ldmatrix4t(af[i], sharedAddr(as + (kk + (lane & 7) + (lane >> 4) * 8) * LA + wm + i * 16 +
                                             (lane >> 3 & 1) * 8));
        else ldmatrix4(af[i], sharedAddr(as + (wm + i * 16 + (lane & 15)) * LA + kk + (lane >> 4) * 8));
      }
#pragma unroll
      for (int j = 0; j < WN / 16; j++) {
        if (TB)
          ldmatrix4(bf, sharedAddr(bs + (wn + j * 16 + (lane & 7) + (lane >> 4) * 8) * LB + kk + (lane >> 3 & 1) * 8));
        else ldmatrix4t(bf, sharedAddr(bs + (kk + (lane & 15)) * LB + wn + j * 16 + (lane >> 4) * 8));
#pragma unroll
        for (int i = 0; i < WM / 16; i++) {
          mma16816(acc[i][2 * j], af[i], bf);
          mma16816(acc[i][2 * j + 1], af[i], bf + 2);
        }
      }
    }
  }

  int g = lane >> 2, t = lane & 3;
#pragma unroll
  for (int i = 0; i < WM / 16; i++)
#pragma unroll
    for (int j = 0; j < WN / 8; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        int r = m0 + wm + i * 16 + g + (e >> 1) * 8, col = n0 + wn + j * 8 + 2 * t + (e & 1);
        if (r >= m || col >= n) continue;
        float v = acc[i][j][e];
        if (part) {
          part[((i64)blockIdx.z * m + r) * n + col] = v;
        } else if (flags & OUT_FLOAT) {
          float* to = (float*)c + r * ldc + col;
          *to = flags & ACCUMULATE ? *to + v : v;
        } else {
          bf16* to = (bf16*)c + r * ldc + col;
          *to = toBf16(flags & ACCUMULATE ? toFloat(*to) + v : v);
        }
      }
}

#define MATMUL(name, BM, TA, TB)                                                                                    \
  extern "C" __global__ void __launch_bounds__(128)                                                                 \
  name(const bf16* a, i64 lda, const bf16* b, i64 ldb, void* c, i64 ldc, int m, int n, int k, int per, float* part, \
       int flags) {                                                                                                 \
    tile<BM, TA, TB>(a, lda, b, ldb, c, ldc, m, n, k, per, part, flags);                                            \
  }
MATMUL(matmul_nn_16, 16, false, false)
MATMUL(matmul_nt_16, 16, false, true)
MATMUL(matmul_tn_16, 16, true, false)
MATMUL(matmul_tt_16, 16, true, true)
MATMUL(matmul_nn_64, 64, false, false)
MATMUL(matmul_nt_64, 64, false, true)
MATMUL(matmul_tn_64, 64, true, false)
MATMUL(matmul_tt_64, 64, true, true)

// c (+)= Σ_p part[p], in order of p.
extern "C" __global__ void matmul_reduce(void* c, i64 ldc, const float* part, int m, int n, int parts, int flags) {
  i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x, all = (i64)m * n;
  if (at >= all) return;
  float v = 0.f;
  for (int p = 0; p < parts; p++) v += part[p * all + at];
  i64 to = at / n * ldc + at % n;
  if (flags & OUT_FLOAT) ((float*)c)[to] = flags & ACCUMULATE ? ((float*)c)[to] + v : v;
  else ((bf16*)c)[to] = toBf16(flags & ACCUMULATE ? toFloat(((bf16*)c)[to]) + v : v);
}
