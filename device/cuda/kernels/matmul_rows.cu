// Products of few rows, c[m,n] (+)= x[m,k]·w[n,k]ᵀ: decoding and short prompts. The bound is one read of the weights.
//
// The weights are the tall side of mma.m16n8k16 and the rows of x the narrow one, so that one row wastes nothing that is
// scarce. A block makes 16·R columns of c for 8·X rows; its 8 warps share k in pieces of 64, piece p going to warp p % 8. A lane takes
// 16 bytes, k = 8t…8t+7 of row g, and hands out words 0, 1 and then 2, 3 of both operands as the mma's k pairs; the order of k inside a sum
// is free. What a warp reads is its own, so no barrier stands between the loads and the sums. Three ways to have enough bytes under way:
//   rows    up to 16 rows: AHEAD pieces of weights and x in registers; for up to 8 rows and k = 1024 that is all of them
//   long    up to 8 rows of longer k: all weights of the block in shared memory; with half the columns where there would be fewer blocks than SMs
//   staged  more rows: x is the larger part by then; a ring of half pieces of both in shared memory
// Weights are asked for before the kernels that make x have ended (early.cuh); blocks for up to 8 rows are so small that two kernels share an SM.
//
// An element is the sum over a warp's pieces in order, and then over the warps in order. R, X and AHEAD take no part in it: a row has the
// same bits in any company.
#include "early.cuh"
#include "stream.cuh"

enum { OUT_FLOAT = 1, ACCUMULATE = 2, VEC_X = 4, EARLY_W = 8 };
constexpr int PIECE = 64, WARPS = 8;

// Eight elements of a row of x; 0 beyond the rows and beyond k.
__device__ __forceinline__ uint4 fetchRow(const bf16* p, bool there, bool vec) {
  uint4 v = {0, 0, 0, 0};
  if (!there) return v;
  if (vec) return *(const uint4*)p;
  v.x = p[0] | (u32)p[1] << 16, v.y = p[2] | (u32)p[3] << 16, v.z = p[4] | (u32)p[5] << 16, v.w = p[6] | (u32)p[7] << 16;
  return v;
}

// acc += the product of 32 k: rows g and g+8 of the weights with row g of x.
__device__ __forceinline__ void step32(float* acc, const uint4& lo, const uint4& hi, const uint4& x) {
  const u32 a[4] = {lo.x, hi.x, lo.y, hi.y}, b[2] = {x.x, x.y};
  mma16816(acc, a, b);
  const u32 a2[4] = {lo.z, hi.z, lo.w, hi.w}, b2[2] = {x.z, x.w};
  mma16816(acc, a2, b2);
}

// Adds the warps' sums in order. They lie as [warp][row of x][column], columns padded by 4 so that a warp meets no bank twice.
template <int R, int X>
__device__ __forceinline__ void finish(float (*acc)[X][4], void* c, i64 ldc, int m, int n, int m0, int n0, int flags) {
  extern __shared__ float warpSums[];
  constexpr int LINE = 16 * R + 4;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
#pragma unroll
  for (int r = 0; r < R; r++)
#pragma unroll
    for (int j = 0; j < X; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) warpSums[(warp * 8 * X + 8 * j + 2 * t + (e & 1)) * LINE + 16 * r + g + (e >> 1) * 8] = acc[r][j][e];
  __syncthreads();
  for (int i = threadIdx.x; i < 16 * R * 8 * X; i += 32 * WARPS) {
    const int row = i / (16 * R), col = i % (16 * R);
    if (m0 + row >= m || n0 + col >= n) continue;
    float v = 0.f;
#pragma unroll
    for (int w = 0; w < WARPS; w++) v += warpSums[(w * 8 * X + row) * LINE + col];
    const i64 at = (m0 + row) * ldc + n0 + col;
    if (flags & OUT_FLOAT) ((float*)c)[at] = flags & ACCUMULATE ? ((float*)c)[at] + v : v;
    else ((bf16*)c)[at] = toBf16(flags & ACCUMULATE ? toFloat(((bf16*)c)[at]) + v : v);
  }
}

// Eight elements of rows m0…m0+7 of x for the mma.
struct Rows {
  const bf16* x;
  i64 ld;
  int m, k, flags;
  __device__ __forceinline__ uint4 at(int row, int k0) const { return fetchRow(x + row * ld + k0, k0 < k && row < m, flags & VEC_X); }
};

template <int R, int X, int AHEAD>
__device__ __forceinline__ void rows(const bf16* x, i64 ldx, const bf16* w, i64 ldw, void* c, i64 ldc, int m, int n, int k, int flags) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const int m0 = blockIdx.y * 8 * X, n0 = blockIdx.x * 16 * R;
  const Rows in = {x, ldx, m, k, flags};
  float acc[R][X][4] = {};
  beginNext();
  if (!(flags & EARLY_W)) waitEarlier();
  for (int k0 = PIECE * warp; k0 < k; k0 += PIECE * WARPS * AHEAD) {
    uint4 a[AHEAD][R][2][2]; // [half of 64 k][row g or g+8]
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
#pragma unroll
      for (int r = 0; r < R; r++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
          const int at = k0 + u * PIECE * WARPS + (i >> 1) * 32 + 8 * t, row = n0 + 16 * r + g + (i & 1) * 8;
          a[u][r][i >> 1][i & 1] = {0, 0, 0, 0};
          if (at < k && row < n) a[u][r][i >> 1][i & 1] = stream16(w + row * ldw + at);
        }
    waitEarlier();
    uint4 b[AHEAD][X][2];
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
#pragma unroll
      for (int i = 0; i < 2 * X; i++) b[u][i >> 1][i & 1] = in.at(m0 + 8 * (i >> 1) + g, k0 + u * PIECE * WARPS + (i & 1) * 32 + 8 * t);
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
#pragma unroll
      for (int h = 0; h < 2; h++)
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
          for (int j = 0; j < X; j++) step32(acc[r][j], a[u][r][h][0], a[u][r][h][1], b[u][j][h]);
  }
  waitEarlier(); // warps without a piece
  finish<R, X>(acc, c, ldc, m, n, m0, n0, flags);
}

// BLOCKS on an SM leave a thread the registers that its loads under way need.
#define ROWS(name, R, X, AHEAD, BLOCKS)                                                                                                    \
  extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)                                                                         \
  name(const bf16* x, i64 ldx, const bf16* w, i64 ldw, void* c, i64 ldc, int m, int n, int k, int flags) {                                 \
    rows<R, X, AHEAD>(x, ldx, w, ldw, c, ldc, m, n, k, flags);                                                                             \
  }
ROWS(matmul_rows8_short, 1, 1, 2, 4)
ROWS(matmul_rows8_any, 1, 1, 4, 2)
ROWS(matmul_rows16, 1, 2, 2, 2)

// Up to 8 rows of long k: all of the block's weights go to shared memory, behind the room of the warps' sums, rows `pitch` elements apart: 4 times
// an odd number of 16 bytes, so that a quarter of a warp (two rows, 64 bytes each) meets no bank twice. A warp waits for its own pieces alone.
// COLS is 16, or 8: the mma's other 8 rows are then zeros.
template <int COLS>
__device__ __forceinline__ void longRows(const bf16* x, i64 ldx, const bf16* w, i64 ldw, void* c, i64 ldc, int m, int n, int k, int flags) {
  extern __shared__ float warpSums[];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const int m0 = blockIdx.y * 8, n0 = blockIdx.x * COLS, pitch = (k + PIECE - 1) / PIECE * PIECE + 32;
  bf16* weights = (bf16*)(warpSums + WARPS * 8 * 20);
  const Rows in = {x, ldx, m, k, flags};
  beginNext();
  if (!(flags & EARLY_W)) waitEarlier();
  for (int k0 = PIECE * warp; k0 < k; k0 += PIECE * WARPS)
#pragma unroll
    for (int i = 0; i < COLS / 4; i++) { // four rows of 128 bytes at a time
      const int row = 4 * i + (lane >> 3), at = k0 + (lane & 7) * 8;
      const bool there = n0 + row < n && at < k;
      cpAsync16(sharedAddr(weights + row * pitch + at), there ? w + (n0 + row) * ldw + at : w, there ? 16 : 0);
    }
  cpCommit();
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
  finish<1, 1>(acc, c, ldc, m, min(n, n0 + COLS), m0, n0, flags);
}

#define LONG(name, COLS)                                                                                                                   \
  extern "C" __global__ void __launch_bounds__(32 * WARPS, 4)                                                                              \
  name(const bf16* x, i64 ldx, const bf16* w, i64 ldw, void* c, i64 ldc, int m, int n, int k, int flags) {                                 \
    longRows<COLS>(x, ldx, w, ldw, c, ldc, m, n, k, flags);                                                                                \
  }
LONG(matmul_rows8_long, 16)
LONG(matmul_rows8_half, 8)

// A half piece of `count` rows from row0 on, rows 64 bytes apart: a quarter of a warp reads two rows, and meets no bank twice.
__device__ __forceinline__ void stageHalf(bf16* to, const bf16* from, i64 ld, int row0, int rows, int count, int k0, int k, bool vec) {
  const int lane = threadIdx.x & 31, at = k0 + (lane & 3) * 8;
  for (int r = lane >> 2; r < count; r += 8) {
    const bool there = row0 + r < rows && at < k;
    const bf16* p = from + (row0 + r) * ld + at;
    if (vec) cpAsync16(sharedAddr(to + r * 32 + (lane & 3) * 8), there ? p : from, there ? 16 : 0);
    else *(uint4*)(to + r * 32 + (lane & 3) * 8) = fetchRow(p, there, false);
  }
}

// Each warp has a ring of STAGES half pieces: 16·R rows of weights, then 8·X rows of x.
template <int R, int X>
__device__ __forceinline__ void staged(const bf16* x, i64 ldx, const bf16* w, i64 ldw, void* c, i64 ldc, int m, int n, int k, int flags) {
  extern __shared__ float warpSums[];
  constexpr int STAGES = 3, STAGE = (16 * R + 8 * X) * 32;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const int m0 = blockIdx.y * 8 * X, n0 = blockIdx.x * 16 * R;
  const int pieces = (k + PIECE - 1) / PIECE, steps = pieces > warp ? (pieces - warp + WARPS - 1) / WARPS * 2 : 0;
  bf16* ring = (bf16*)warpSums + warp * STAGES * STAGE;
  const auto begin = [&](int i) { return (warp + WARPS * (i >> 1)) * PIECE + (i & 1) * 32; };
  const auto weights = [&](int i) { stageHalf(ring + i % STAGES * STAGE, w, ldw, n0, n, 16 * R, begin(i), k, true); };
  const auto input = [&](int i) { stageHalf(ring + i % STAGES * STAGE + 16 * R * 32, x, ldx, m0, m, 8 * X, begin(i), k, flags & VEC_X); };
  float acc[R][X][4] = {};
  beginNext();
  if (!(flags & EARLY_W)) waitEarlier();
  for (int i = 0; i < STAGES && i < steps; i++) weights(i);
  waitEarlier();
  for (int i = 0; i < STAGES; i++) {
    if (i < steps) input(i);
    cpCommit();
  }
  for (int i = 0; i < steps; i++) {
    cpWait<STAGES - 1>();
    __syncwarp();
    const bf16* from = ring + i % STAGES * STAGE + g * 32 + 8 * t;
    uint4 a[R][2];
#pragma unroll
    for (int r = 0; r < 2 * R; r++) a[r >> 1][r & 1] = *(const uint4*)(from + r * 8 * 32);
#pragma unroll
    for (int j = 0; j < X; j++) {
      const uint4 b = *(const uint4*)(from + (16 * R + 8 * j) * 32);
#pragma unroll
      for (int r = 0; r < R; r++) step32(acc[r][j], a[r][0], a[r][1], b);
    }
    __syncwarp();
    if (i + STAGES < steps) weights(i + STAGES), input(i + STAGES);
    cpCommit();
  }
  cpWait<0>();
  __syncthreads(); // the rings become the room of the sums
  finish<R, X>(acc, c, ldc, m, n, m0, n0, flags);
}

#define STAGED(name, R, X)                                                                                                                 \
  extern "C" __global__ void __launch_bounds__(32 * WARPS, 1)                                                                              \
  name(const bf16* x, i64 ldx, const bf16* w, i64 ldw, void* c, i64 ldc, int m, int n, int k, int flags) {                                 \
    staged<R, X>(x, ldx, w, ldw, c, ldc, m, n, k, flags);                                                                                  \
  }
STAGED(matmul_rows32_1, 1, 4)
STAGED(matmul_rows32_2, 2, 4)
STAGED(matmul_rows32_3, 3, 4)
STAGED(matmul_rows32_4, 4, 4)
STAGED(matmul_rows64_1, 1, 8)
STAGED(matmul_rows64_2, 2, 8)
STAGED(matmul_rows64_3, 3, 8)
STAGED(matmul_rows64_4, 4, 8)
