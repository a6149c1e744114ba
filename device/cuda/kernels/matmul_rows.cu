// Products of few rows, c[m,n] (+)= x[m,k]·w[n,k]ᵀ: decoding and short prompts. Bound: one read of the weights.
//
// The weights are the tall side of mma.m16n8k16 and the rows of x the narrow one, so that a single row wastes no scarce
// resource. A block computes 16·R columns of c for 8·X rows; its 8 warps divide k in pieces of 64, piece p going to
// warp p % 8. A lane takes 16 bytes, k = 8t…8t+7 of row g, and uses words 0, 1 and then 2, 3 of both operands as the
// mma's k pairs; the order of k inside a sum is free. A warp reads only its own data, so there is no barrier between
// the loads and the sums. Three ways to have enough bytes in flight:
//	rows    up to 16 rows: AHEAD pieces of weights and x in registers; for up to 8 rows and k = 1024 that is all of
//	        them
//	long    up to 8 rows of longer k: all weights of the block in shared memory; with half the columns if there would
//	        be fewer blocks than SMs
//	staged  more rows: half pieces in shared memory, all or most of the weights and a ring of x, the larger part
// Weights are loaded before the kernels that compute x have ended (early.cuh); blocks for up to 8 rows are so small
// that two kernels share an SM. Those of 16 columns for up to 8 rows can also do the next op (turn.cuh); with weights
// in registers they can also compute x with a norm (left.cuh).
//
// An element is the sum over a warp's pieces in order, and then over the warps in order. It does not depend on R, X and
// AHEAD: a row has the same bits in any batch.
#include "early.cuh"
#include "left.cuh"
#include "stream.cuh"
#include "turn.cuh"

// acc += the product of 32 k: rows g and g+8 of the weights with row g of x.
__device__ __forceinline__ void step32(float* acc, const uint4& lo, const uint4& hi, const uint4& x) {
  const u32 a[4] = {lo.x, hi.x, lo.y, hi.y}, b[2] = {x.x, x.y};
  mma16816(acc, a, b);
  const u32 a2[4] = {lo.z, hi.z, lo.w, hi.w}, b2[2] = {x.z, x.w};
  mma16816(acc, a2, b2);
}

// Adds the warps' sums in order. They are stored as [warp][row of x][column], columns padded by 4 to avoid bank
// conflicts.
template <int R, int X, class Out>
__device__ __forceinline__ void finish(Out& out, float (*acc)[X][4], int m, int n, int m0, int n0) {
  extern __shared__ float warpSums[];
  constexpr int LINE = 16 * R + 4;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
#pragma unroll
  for (int r = 0; r < R; r++)
#pragma unroll
    for (int j = 0; j < X; j++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        warpSums[(warp * 8 * X + 8 * j + 2 * t + (e & 1)) * LINE + 16 * r + g + (e >> 1) * 8] = acc[r][j][e];
  __syncthreads();
  for (int i = threadIdx.x; i < 16 * R * 8 * X; i += 32 * WARPS) {
    const int row = i / (16 * R), col = i % (16 * R);
    const bool there = m0 + row < m && n0 + col < n;
    float v = 0.f;
    if (there)
#pragma unroll
      for (int w = 0; w < WARPS; w++) v += warpSums[(w * 8 * X + row) * LINE + col];
    out.put(v, m0 + row, n0 + (col & ~15), col & 15, there);
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

// Copies a half piece of up to ROWS rows, 64 bytes apart: a quarter of a warp reads two rows without bank conflicts.
// from is the lane's element of the first row that it copies, one in eight; row r lies of.skip(r) rows after it, and
// `left` is the rows from there on. What is not inside becomes 0. Nothing is copied to rows that do not exist: they
// have no part in the sums of others.
template <int ROWS, class Of>
__device__ __forceinline__ void stageHalf(bf16* to, const bf16* from, i64 ld, const Of& of, int left, bool inside) {
  const u32 at = sharedAddr(to);
#pragma unroll
  for (int r = 0; r < ROWS; r += 8)
    if (r < left) cpAsync16(at + r * 64, from + (i64)of.skip(r) * (int)ld, inside ? 16 : 0);
}
// The same of rows that are not aligned.
template <int ROWS>
__device__ __forceinline__ void fetchHalf(bf16* to, const bf16* from, i64 ld, int left, bool inside) {
#pragma unroll 1
  for (int r = 0; r < ROWS && r < left; r += 8) *(uint4*)(to + r * 32) = fetchRow(from + r * ld, inside, false);
}

// Each warp has its own memory: `held` half pieces of weights, 16·R rows each, and two of x, 8·X rows each. Both are
// rings, but where there is room (matmul_rows.go) the first holds all of the warp's weights, so that they are all
// requested before the kernel's turn, and only x, which comes from the L2, is waited for after it. held is at least 2.
template <int R, int X, class Out>
__device__ __forceinline__ void staged(const bf16* x, i64 ldx, Out out, const bf16* w, i64 ldw, int m, int n, int k,
                                       int flags, int held) {
  extern __shared__ float warpSums[];
  constexpr int WEIGHTS = 16 * R * 32, INPUT = 8 * X * 32;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const int m0 = blockIdx.y * 8 * X, n0 = blockIdx.x * 16 * R, first = warp * PIECE + 8 * t;
  const int pieces = (k + PIECE - 1) / PIECE, steps = pieces > warp ? (pieces - warp + WARPS - 1) / WARPS * 2 : 0;
  bf16* ring = (bf16*)warpSums + warp * (held * WEIGHTS + 2 * INPUT) + g * 32 + 8 * t; // the lane's
  bf16* inputs = ring + held * WEIGHTS;
  w += out.tile(n0).column(g) * ldw, x += (m0 + g) * ldx;
  const auto weights = [&](int i, int slot) {
    const int at = first + (i >> 1) * PIECE * WARPS + (i & 1) * 32;
    stageHalf<16 * R>(ring + slot * WEIGHTS, at < k ? w + at : w, ldw, out, n - n0 - g, at < k);
  };
  const auto input = [&](int i, int half) {
    const int at = first + (i >> 1) * PIECE * WARPS + half * 32;
    const bf16* from = at < k ? x + at : x;
    if (flags & VEC_X) stageHalf<8 * X>(inputs + half * INPUT, from, ldx, Plain{}, m - m0 - g, at < k);
    else fetchHalf<8 * X>(inputs + half * INPUT, from, ldx, m - m0 - g, at < k);
  };
  float acc[R][X][4] = {};
  beginNext();
  if (!(flags & EARLY_W)) waitEarlier();
  for (int i = 0; i < held && i < steps; i++) weights(i, i);
  waitEarlier();
#pragma unroll
  for (int half = 0; half < 2; half++) {
    if (steps > 0) input(0, half);
    cpCommit();
  }
  int slot = 0;
  for (int i = 0; i < steps; i += 2)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      cpWait<1>();
      __syncwarp();
      const bf16 *rows = ring + slot * WEIGHTS, *columns = inputs + half * INPUT;
      uint4 a[R][2];
#pragma unroll
      for (int r = 0; r < 2 * R; r++) a[r >> 1][r & 1] = *(const uint4*)(rows + r * 8 * 32);
#pragma unroll
      for (int j = 0; j < X; j++) {
        const uint4 b = *(const uint4*)(columns + j * 8 * 32);
#pragma unroll
        for (int r = 0; r < R; r++) step32(acc[r][j], a[r][0], a[r][1], b);
      }
      __syncwarp();
      if (i + half + held < steps) weights(i + half + held, slot);
      if (i + 2 < steps) input(i + 2, half);
      cpCommit();
      slot = slot + 1 == held ? 0 : slot + 1;
    }
  cpWait<0>();
  __syncthreads(); // the rings are reused for the sums
  finish<R, X>(out, acc, m, n, m0, n0);
}

#define STAGED(R, X, ROWS)                                                                                         \
  extern "C" __global__ void __launch_bounds__(32 * WARPS, 1)                                                      \
  matmul_rows##ROWS##_##R(const bf16* x, i64 ldx, const bf16* w, i64 ldw, void* c, i64 ldc, int m, int n, int k,   \
                          int flags, int held) {                                                                   \
    staged<R, X>(x, ldx, Plain{c, ldc, flags}, w, ldw, m, n, k, flags, held);                                      \
  }                                                                                                                \
  extern "C" __global__ void __launch_bounds__(32 * WARPS, 1)                                                      \
  matmul_gate##ROWS##_##R(const bf16* x, i64 ldx, const bf16* w, i64 ldw, void* c, i64 ldc, int m, int n, int k,   \
                          int flags, int held, GATE_ARGS) {                                                        \
    staged<R, X>(x, ldx, TO_GATE, w, ldw, m, n, k, flags, held);                                                   \
  }
STAGED(1, 4, 32)
STAGED(2, 4, 32)
STAGED(3, 4, 32)
STAGED(4, 4, 32)
STAGED(1, 8, 64)
STAGED(2, 8, 64)
STAGED(3, 8, 64)
STAGED(4, 8, 64)
