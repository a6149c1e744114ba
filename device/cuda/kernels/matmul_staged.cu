// Products of 17 to 256 rows, c[m,n] (+)= x[m,k]·w[n,k]ᵀ, or with the SwiGLU that follows: decoding of many sequences.
// An element has the bits of matmul_rows.cu, whose mma, warps and pieces these are. Bound: one read of the weights; at
// 64 rows latencies, of instructions too, with two warps for each of an SM's schedulers.
//
// Each warp has its own memory: `held` half pieces of weights, 16·R rows each, and `inputs`, two to four, of x, 8·X
// rows each. Both are rings, but where there is room (matmul_rows.go) the first holds all of the warp's weights, so
// that they are all requested before the kernel's turn, and only x, which comes from the L2, is waited for after it.
// held is at least `inputs`, or all.
#include "early.cuh"
#include "left.cuh"
#include "turn.cuh"
#include "warpsums.cuh"

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

// acc += the product of a half piece. A fragment's words come from two loads, so each is moved once; ptxas would move
// it again before every mma, if it could tell that it is a move. Products of one sum are as far apart as registers
// allow: the second waits for the first.
template <int R, int X>
__device__ __forceinline__ void multiplyHalf(float (*acc)[X][4], const bf16* rows, const bf16* columns, u32 id) {
  constexpr int TOGETHER = R == 1 ? 4 : 2;
  u32 a[R][2][4]; // [tile][half of 32 k]
#pragma unroll
  for (int r = 0; r < R; r++) {
    const uint4 lo = *(const uint4*)(rows + r * 16 * 32), hi = *(const uint4*)(rows + (r * 16 + 8) * 32);
    a[r][0][0] = moved(lo.x, id), a[r][0][1] = moved(hi.x, id);
    a[r][0][2] = moved(lo.y, id), a[r][0][3] = moved(hi.y, id);
    a[r][1][0] = moved(lo.z, id), a[r][1][1] = moved(hi.z, id);
    a[r][1][2] = moved(lo.w, id), a[r][1][3] = moved(hi.w, id);
  }
#pragma unroll
  for (int j = 0; j < X; j += TOGETHER) {
    uint4 b[TOGETHER];
#pragma unroll
    for (int u = 0; u < TOGETHER; u++) b[u] = *(const uint4*)(columns + (j + u) * 8 * 32);
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int u = 0; u < TOGETHER; u++)
#pragma unroll
        for (int r = 0; r < R; r++) {
          const u32 x[2] = {h ? b[u].z : b[u].x, h ? b[u].w : b[u].y};
          mma16816(acc[r][j + u], a[r][h], x);
        }
  }
}

// Adds the warps' sums in order, four columns a thread.
template <int R, int X, class Out>
__device__ __forceinline__ void finishFour(Out& out, float (*acc)[X][4], int m, int n, int m0, int n0) {
  storeSums<R, X>(acc);
#pragma unroll 1
  for (int i = threadIdx.x; i < 4 * R * 8 * X; i += 32 * WARPS) {
    const int row = i / (4 * R), col = i % (4 * R) * 4;
    float v[4] = {};
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
      const float4 s = *(const float4*)sumAt<R, X>(w, row, col);
      v[0] += s.x, v[1] += s.y, v[2] += s.z, v[3] += s.w;
    }
    out.putFour(v, m0 + row, n0, col, m0 + row < m ? n - n0 - col : 0);
  }
}

template <int R, int X, class Out>
__device__ __forceinline__ void staged(const bf16* x, i64 ldx, Out out, const bf16* w, i64 ldw, int m, int n, int k,
                                       int flags, int held, int inputs) {
  extern __shared__ float warpSums[];
  constexpr int WEIGHTS = 16 * R * 32, INPUT = 8 * X * 32;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const int m0 = blockIdx.y * 8 * X, n0 = blockIdx.x * 16 * R, first = warp * PIECE + 8 * t;
  const int pieces = (k + PIECE - 1) / PIECE, steps = pieces > warp ? (pieces - warp + WARPS - 1) / WARPS * 2 : 0;
  bf16* ring = (bf16*)warpSums + warp * (held * WEIGHTS + inputs * INPUT) + g * 32 + 8 * t; // the lane's
  bf16* xs = ring + held * WEIGHTS;
  w += out.tile(n0).column(g) * ldw, x += (m0 + g) * ldx;
  const auto at = [&](int i) { return first + (i >> 1) * PIECE * WARPS + (i & 1) * 32; };
  const auto weights = [&](int i, int slot) {
    const bool inside = at(i) < k;
    stageHalf<16 * R>(ring + slot * WEIGHTS, inside ? w + at(i) : w, ldw, out, n - n0 - g, inside);
  };
  const auto input = [&](int i, int slot) {
    const bool inside = at(i) < k;
    const bf16* from = inside ? x + at(i) : x;
    if (flags & VEC_X) stageHalf<8 * X>(xs + slot * INPUT, from, ldx, Plain{}, m - m0 - g, inside);
    else fetchHalf<8 * X>(xs + slot * INPUT, from, ldx, m - m0 - g, inside);
  };
  const u32 id = 0x3210 | (u32)held >> 30; // held is small
  float acc[R][X][4] = {};
  beginNext();
  if (!(flags & EARLY_W)) waitEarlier();
  for (int i = 0; i < held && i < steps; i++) weights(i, i);
  waitEarlier();
  for (int i = 0; i < inputs; i++) {
    if (i < steps) input(i, i);
    cpCommit();
  }
  int slot = 0, place = 0;
#pragma unroll 1
  for (int i = 0; i < steps; i++) {
    if (inputs > 3) cpWait<3>();
    else if (inputs > 2) cpWait<2>();
    else cpWait<1>();
    __syncwarp();
    multiplyHalf<R, X>(acc, ring + slot * WEIGHTS, xs + place * INPUT, id);
    __syncwarp();
    if (i + held < steps) weights(i + held, slot);
    if (i + inputs < steps) input(i + inputs, place);
    cpCommit();
    slot = slot + 1 == held ? 0 : slot + 1;
    place = place + 1 == inputs ? 0 : place + 1;
  }
  cpWait<0>();
  __syncthreads(); // the rings are reused for the sums
  finishFour<R, X>(out, acc, m, n, m0, n0);
}

#define STAGED(R, X, ROWS)                                                                                       \
  extern "C" __global__ void __launch_bounds__(32 * WARPS, 1)                                                    \
  matmul_rows##ROWS##_##R(const bf16* x, i64 ldx, const bf16* w, i64 ldw, void* c, i64 ldc, int m, int n, int k, \
                          int flags, int held, int inputs) {                                                     \
    staged<R, X>(x, ldx, Plain{c, ldc, flags}, w, ldw, m, n, k, flags, held, inputs);                            \
  }                                                                                                              \
  extern "C" __global__ void __launch_bounds__(32 * WARPS, 1)                                                    \
  matmul_gate##ROWS##_##R(const bf16* x, i64 ldx, const bf16* w, i64 ldw, void* c, i64 ldc, int m, int n, int k, \
                          int flags, int held, int inputs, bf16* a, i64 lda) {                                   \
    staged<R, X>(x, ldx, Glu{(bf16*)c, ldc, a, lda, n / 2}, w, ldw, m, n, k, flags, held, inputs);               \
  }
STAGED(1, 4, 32)
STAGED(2, 4, 32)
STAGED(3, 4, 32)
STAGED(4, 4, 32)
STAGED(1, 8, 64)
STAGED(2, 8, 64)
STAGED(3, 8, 64)
STAGED(4, 8, 64)
