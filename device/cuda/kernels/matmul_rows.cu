// Products of up to 16 rows, c[m,n] (+)= x[m,k]·w[n,k]ᵀ: decoding and short prompts. Bound: one read of the weights.
// matmul_staged.cu has those of more rows.
//
// The weights are the tall side of mma.m16n8k16 and the rows of x the narrow one, so that a single row wastes no scarce
// resource. A block computes 16·R columns of c for 8·X rows; its 8 warps divide k in pieces of 64, piece p going to
// warp p % 8. A lane takes 16 bytes, k = 8t…8t+7 of row g, and uses words 0, 1 and then 2, 3 of both operands as the
// mma's k pairs; the order of k inside a sum is free. A warp reads only its own data, so there is no barrier between
// the loads and the sums. Two ways to have enough bytes in flight:
//	rows    AHEAD pieces of weights and x in registers; for up to 8 rows and k = 1024 that is all of them
//	long    up to 8 rows of longer k: all weights of the block in shared memory; with half the columns if there would
//	        be fewer blocks than SMs
// Weights are loaded before the kernels that compute x have ended (early.cuh); blocks for up to 8 rows are so small
// that two kernels share an SM. Those of 16 columns for up to 8 rows can also do the next op (turn.cuh); with weights
// in registers they can also compute x with a norm (left.cuh).
//
// An element is the sum over a warp's pieces in order, and then over the warps in order. It does not depend on R, X and
// AHEAD, and is the same in matmul_staged.cu: a row has the same bits in any batch.
#include "early.cuh"
#include "left.cuh"
#include "stream.cuh"
#include "turn.cuh"
#include "warpsums.cuh"

// acc += the product of 32 k: rows g and g+8 of the weights with row g of x.
__device__ __forceinline__ void step32(float* acc, const uint4& lo, const uint4& hi, const uint4& x) {
  const u32 a[4] = {lo.x, hi.x, lo.y, hi.y}, b[2] = {x.x, x.y};
  mma16816(acc, a, b);
  const u32 a2[4] = {lo.z, hi.z, lo.w, hi.w}, b2[2] = {x.z, x.w};
  mma16816(acc, a2, b2);
}

// Adds the warps' sums in order.
template <int R, int X, class Out>
__device__ __forceinline__ void finish(Out& out, float (*acc)[X][4], int m, int n, int m0, int n0) {
  storeSums<R, X>(acc);
  for (int i = threadIdx.x; i < 16 * R * 8 * X; i += 32 * WARPS) {
    const int row = i / (16 * R), col = i % (16 * R);
    const bool there = m0 + row < m && n0 + col < n;
    float v = 0.f;
    if (there)
#pragma unroll
      for (int w = 0; w < WARPS; w++) v += *sumAt<R, X>(w, row, col);
    out.put(v, m0 + row, n0, col, there);
  }
}

template <int R, int X, int AHEAD, class In, class Out>
__device__ __forceinline__ void rows(In in, Out out, const bf16* w, i64 ldw, int m, int n, int k, int flags) {
  extern __shared__ float warpSums[];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const int m0 = blockIdx.y * 8 * X, n0 = blockIdx.x * 16 * R;
  float acc[R][X][4] = {};
  beginNext();
  if (!(flags & EARLY_W)) waitEarlier();
  bool made = false;
  int k0 = PIECE * warp;
  do { // a warp without a piece multiplies zeros once
    uint4 a[AHEAD][R][2][2]; // [half of 64 k][row g or g+8]
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
#pragma unroll
      for (int r = 0; r < R; r++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
          const int at = k0 + u * PIECE * WARPS + (i >> 1) * 32 + 8 * t,
              row = out.tile(n0 + 16 * r).column(g + (i & 1) * 8);
          a[u][r][i >> 1][i & 1] = {0, 0, 0, 0};
          if (at < k && row < n) a[u][r][i >> 1][i & 1] = stream16(w + row * ldw + at);
        }
    if (!made) {
      in.ahead(), out.ahead(n0);
      waitEarlier();
      in.make(warpSums);
      made = true;
    }
    uint4 b[AHEAD][X][2];
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
#pragma unroll
      for (int i = 0; i < 2 * X; i++)
        b[u][i >> 1][i & 1] = in.at(m0 + 8 * (i >> 1) + g, k0 + u * PIECE * WARPS + (i & 1) * 32 + 8 * t);
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
#pragma unroll
      for (int h = 0; h < 2; h++)
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
          for (int j = 0; j < X; j++) step32(acc[r][j], a[u][r][h][0], a[u][r][h][1], b[u][j][h]);
    k0 += PIECE * WARPS * AHEAD;
  } while (k0 < k);
  in.done();
  finish<R, X>(out, acc, m, n, m0, n0);
}

constexpr int SUMS = WARPS * 8 * 20 * 4; // bytes of the sums of 8 rows

// Up to 8 rows of long k: all of the block's weights go to shared memory, after the warps' sums, rows `pitch` elements
// apart: 4 times an odd number of 16 bytes, so that a quarter of a warp (two rows, 64 bytes each) has no bank
// conflicts. A warp waits only for its own pieces. COLS is 16, or 8: the mma's other 8 rows are then zeros. Fewer
// blocks that iterate over the columns leave shared memory for the next kernel, but lost a third of the speed with 100
// KB instead of 200 KB of an SM in flight (H200).
template <int COLS, class Out>
__device__ __forceinline__ void longRows(Stored in, Out out, const bf16* w, i64 ldw, int m, int n, int k, int flags) {
  extern __shared__ float warpSums[];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const int m0 = blockIdx.y * 8, n0 = blockIdx.x * COLS, pitch = (k + PIECE - 1) / PIECE * PIECE + 32;
  const Tile tile = out.tile(n0);
  bf16* weights = (bf16*)((char*)warpSums + SUMS);
  beginNext();
  if (!(flags & EARLY_W)) waitEarlier();
  for (int k0 = PIECE * warp; k0 < k; k0 += PIECE * WARPS)
#pragma unroll
    for (int i = 0; i < COLS / 4; i++) { // four rows of 128 bytes at a time
      const int row = 4 * i + (lane >> 3), at = k0 + (lane & 7) * 8, column = tile.column(row);
      const bool there = column < n && at < k;
      cpAsync16(sharedAddr(weights + row * pitch + at), there ? w + column * ldw + at : w, there ? 16 : 0);
    }
  cpCommit();
  out.ahead(n0);
  waitEarlier();
  float acc[1][1][4] = {};
  bool landed = false;
  for (int k0 = PIECE * warp; k0 < k; k0 += PIECE * WARPS * 4) {
    uint4 b[4][2];
#pragma unroll
    for (int i = 0; i < 8; i++) b[i >> 1][i & 1] = in.at(m0 + g, k0 + (i >> 1) * PIECE * WARPS + (i & 1) * 32 + 8 * t);
    if (!landed) cpWait<0>(), __syncwarp(), landed = true;
#pragma unroll
    for (int u = 0; u < 4; u++) {
      const int at = k0 + u * PIECE * WARPS + 8 * t;
      if (at - 8 * t >= k) break;
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const bf16* from = weights + g * pitch + at + 32 * h;
        uint4 other = {0, 0, 0, 0};
        if (COLS > 8) other = *(const uint4*)(from + 8 * pitch);
        step32(acc[0][0], *(const uint4*)from, other, b[u][h]);
      }
    }
  }
  finish<1, 1>(out, acc, m, min(n, n0 + COLS), m0, n0);
}

// BLOCKS per SM leave a thread the registers that its loads in flight need.
#define STORED(name, BLOCKS, ...)                                                                          \
  extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)                                         \
  name(const bf16* x, i64 ldx, const bf16* w, i64 ldw, void* c, i64 ldc, int m, int n, int k, int flags) { \
    __VA_ARGS__(Stored{x, ldx, m, k, flags}, Plain{c, ldc, flags}, w, ldw, m, n, k, flags);                \
  }
STORED(matmul_rows8_short, 4, rows<1, 1, 2>)
STORED(matmul_rows8_any, 2, rows<1, 1, 4>)
STORED(matmul_rows16, 2, rows<1, 2, 2>)
STORED(matmul_rows8_long, 4, longRows<16>)
STORED(matmul_rows8_half, 4, longRows<8>)

// The sources and targets of the other kernels, as their parameters.
#define NORM_ARGS                                                                                        \
  bf16 *h, i64 ldh, float *rstd, bf16 *sum, i64 lds, const bf16 *x, i64 ldx, const bf16 *delta, i64 ldd, \
      const bf16 *gain, float eps
#define FROM_NORM Normed{m, k, h, ldh, rstd, sum, lds, x, ldx, delta, ldd, gain, eps, flags, 0, {}}
#define STORED_ARGS const bf16 *x, i64 ldx
#define FROM_MEMORY Stored{x, ldx, m, k, flags}
#define TURN_ARGS                                                                                                \
  const float *table, i64 ldt, const int *angle, int positions, float sign, int dim, int pairs, int k0, int v0,  \
      bf16 *K, i64 ldK, bf16 *V, i64 ldV, const int *slot, const int *pos, const int *pages, i64 ldp, int slots, \
      int perSlot, int size, int lines, int *fault
#define TO_CACHE                                                                                           \
  Turned{(bf16*)c, ldc, table, ldt, angle, positions, sign, dim, pairs, k0, v0, K, ldK, V, ldV, slot, pos, \
         {pages, ldp, slots, perSlot, size, lines}, fault, m, -1, false, false, 0.f, 0.f}
#define GATE_ARGS bf16 *a, i64 lda
#define TO_GATE Glu{(bf16*)c, ldc, a, lda, n / 2}

#define JOINED(name, BLOCKS, IN, IN_ARGS, OUT, OUT_ARGS, ...)                                         \
  extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)                                    \
  name(IN_ARGS, const bf16* w, i64 ldw, void* c, i64 ldc, int m, int n, int k, int flags, OUT_ARGS) { \
    __VA_ARGS__(IN, OUT, w, ldw, m, n, k, flags);                                                     \
  }
JOINED(matmul_turn8_short, 3, FROM_MEMORY, STORED_ARGS, TO_CACHE, TURN_ARGS, rows<1, 1, 2>)
JOINED(matmul_turn8_long, 3, FROM_MEMORY, STORED_ARGS, TO_CACHE, TURN_ARGS, longRows<16>)
JOINED(matmul_gate8_short, 4, FROM_MEMORY, STORED_ARGS, TO_GATE, GATE_ARGS, rows<1, 1, 2>)
JOINED(matmul_gate8_long, 4, FROM_MEMORY, STORED_ARGS, TO_GATE, GATE_ARGS, longRows<16>)
JOINED(matmul_normturn8_short, 3, FROM_NORM, NORM_ARGS, TO_CACHE, TURN_ARGS, rows<1, 1, 2>)
JOINED(matmul_normgate8_short, 3, FROM_NORM, NORM_ARGS, TO_GATE, GATE_ARGS, rows<1, 1, 2>)

extern "C" __global__ void __launch_bounds__(32 * WARPS, 3)
matmul_norm8_short(NORM_ARGS, const bf16* w, i64 ldw, void* c, i64 ldc, int m, int n, int k, int flags) {
  rows<1, 1, 2>(FROM_NORM, Plain{c, ldc, flags}, w, ldw, m, n, k, flags);
}
