// Tiles of bf16 in shared memory and products of them on the tensor cores.
//
// A tile has rows of W columns, W/8 chunks of 16 bytes each. Chunk c of row r is stored at c ^ x(r) of its row, so that
// the eight rows of an 8×8 matrix are in eight different groups of banks whether a warp reads along rows or down
// columns: x(r) = r mod 8 if a row is a multiple of 128 bytes, r/2 mod 4 if it is an odd multiple of 64 (W = 96).
// Fragments are 16×16. A warp among S adjacent ones takes fragments w, w+S, w+2S, … of a side: with S a power of two
// the address of a fragment is then (the lane's own address ^ constant) + constant, one instruction or none.
#include "attn_ptx.cuh"

// AHEAD 0 loads fragments only when they are used: fewer registers, and other warps hide the latency.
#ifndef AHEAD
#define AHEAD 1
#endif

template <int W> __device__ __forceinline__ u32 tileAt(u32 base, int row, int chunk) {
  static_assert(W % 64 == 0 || W % 64 == 32, "a row is a multiple of 64 bytes");
  int x = W % 64 == 0 ? row & 7 : (row >> 1) & 3;
  return base + row * (2 * W) + ((chunk ^ x) << 4);
}

// Moves an address from tileAt to the right by some chunks, none of whose bits were set in the first chunk.
template <int W> __device__ __forceinline__ u32 tileRight(u32 at, int chunks) {
  constexpr int mask = W % 64 == 0 ? 7 : 3;
  return (at ^ ((chunks & mask) << 4)) + ((chunks & ~mask) << 4);
}

// Starts copying ROWS rows of W columns from src (rows ld apart); rows at and after `rows` become 0. If an iteration of
// the block is a multiple of 8 rows, the swizzle stays the same and both addresses only advance.
template <int ROWS, int W, int THREADS>
__device__ __forceinline__ void tileLoad(u32 base, const bf16* src, i64 ld, int rows, int tid) {
  constexpr int chunks = W / 8, all = ROWS * chunks, turns = (all + THREADS - 1) / THREADS, step = THREADS / chunks;
  constexpr bool even = THREADS % chunks == 0 && step % 8 == 0;
  int r = tid / chunks, c = tid % chunks;
  const bf16* from = src + r * ld + c * 8;
  const u32 to = fresh(tileAt<W>(base, r, c));
#pragma unroll
  for (int i = 0; i < turns; i++) {
    if (!even) {
      int at = tid + i * THREADS;
      if (at >= all) break;
      r = at / chunks, c = at % chunks;
      bool in = r < rows;
      cpAsync16(tileAt<W>(base, r, c), src + (in ? r * ld : 0) + c * 8, in ? 16 : 0);
    } else {
      bool in = r + i * step < rows;
      cpAsync16(to + i * step * (2 * W), in ? from : src, in ? 16 : 0);
      from = fresh(from + step * ld);
    }
  }
}

// One side of a product as a tile. For the left side (rows m) FLIP means that the tile is stored [k][m], for the right
// side (columns n) that it is stored [k][n]; otherwise [m][k] and [n][k].
template <int W, bool FLIP, int STRIDE> struct Side {
  u32 at;
  __device__ __forceinline__ void load(u32* r, int i, int k) const {
    if (FLIP)
      ldmatrix4t(r, tileRight<W>(at, 2 * i * STRIDE) + k * (16 * 2 * W));
    else
      ldmatrix4(r, tileRight<W>(at, 2 * k) + i * STRIDE * (16 * 2 * W));
  }
};
template <int W, bool FLIP, int STRIDE>
__device__ __forceinline__ Side<W, FLIP, STRIDE> leftSide(u32 base, int piece, int lane) {
  if (FLIP) return {fresh(tileAt<W>(base, ((lane >> 4) << 3) + (lane & 7), 2 * piece + ((lane >> 3) & 1)))};
  return {fresh(tileAt<W>(base, 16 * piece + (lane & 15), lane >> 4))};
}
template <int W, bool FLIP, int STRIDE>
__device__ __forceinline__ Side<W, FLIP, STRIDE> rightSide(u32 base, int piece, int lane) {
  if (FLIP) return {fresh(tileAt<W>(base, lane & 15, 2 * piece + (lane >> 4)))};
  return {fresh(tileAt<W>(base, 16 * piece + ((lane >> 4) << 3) + (lane & 7), (lane >> 3) & 1))};
}

// acc[M][2N] (tiles of 16×8) += left·right over K steps of 16. Each fragment is loaded one step of N before it is used.
template <int M, int N, int K, typename L, typename R>
__device__ __forceinline__ void product(float (&acc)[M][2 * N][4], L left, R right) {
  u32 a[2][M][4], b[2][4];
#pragma unroll
  for (int i = 0; i < M; i++) left.load(a[0][i], i, 0);
  if (AHEAD) right.load(b[0], 0, 0);
#pragma unroll
  for (int x = 0; x < K * N; x++) {
    const int k = x / N, j = x % N;
    if (!AHEAD && j == 0 && k > 0) {
#pragma unroll
      for (int i = 0; i < M; i++) left.load(a[k & 1][i], i, k);
    }
    if (!AHEAD) right.load(b[x & 1], j, k);
    if (AHEAD && x + 1 < K * N) right.load(b[(x + 1) & 1], (x + 1) % N, (x + 1) / N);
    if (AHEAD && j == (N > 1 ? N - 2 : 0) && k + 1 < K) {
#pragma unroll
      for (int i = 0; i < M; i++) left.load(a[(k + 1) & 1][i], i, k + 1);
    }
#pragma unroll
    for (int i = 0; i < M; i++) {
      mma16816(acc[i][2 * j], a[k & 1][i], b[x & 1]);
      mma16816(acc[i][2 * j + 1], a[k & 1][i], b[x & 1] + 2);
    }
  }
}

template <int M, int N> __device__ __forceinline__ void clear(float (&acc)[M][N][4]) {
#pragma unroll
  for (int i = 0; i < M; i++)
#pragma unroll
    for (int j = 0; j < N; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) acc[i][j][e] = 0.f;
}

// Sum and maximum over the four lanes that share a row of an accumulator.
__device__ __forceinline__ float rowSum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
__device__ __forceinline__ float rowMax(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

// Transposes among four lanes: each holds one word of each of four pieces, the word at its lane's index; afterwards
// lane t holds the whole piece t.
__device__ __forceinline__ void gather4(u32 (&x)[4], int t) {
#pragma unroll
  for (int bit = 1; bit <= 2; bit <<= 1)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (i & bit) continue;
      const bool upper = (t & bit) != 0;
      const u32 got = (u32)__shfl_xor_sync(0xffffffffu, (int)(upper ? x[i] : x[i | bit]), bit);
      if (upper) x[i] = got;
      else x[i | bit] = got;
    }
}

// Writes a row's share of one warp among NW, N pieces of 8 columns, of which each of the row's four lanes t holds two:
// 16 bytes at a time, which fill the memory's sectors of 32, as far as there are four pieces.
template <int N, int NW>
__device__ __forceinline__ void storePieces(bf16* row, const u32 (&x)[N], int n, int t, bool live) {
#pragma unroll
  for (int j = 0; j + 4 <= N; j += 4) {
    u32 v[4] = {x[j], x[j + 1], x[j + 2], x[j + 3]};
    gather4(v, t);
    if (live) *(uint4*)(row + 16 * ((j / 2 + t / 2) * NW + n) + 8 * (t & 1)) = {v[0], v[1], v[2], v[3]};
  }
#pragma unroll
  for (int j = N & ~3; j < N; j++)
    if (live) *(u32*)(row + 16 * (j / 2 * NW + n) + 8 * (j & 1) + 2 * t) = x[j];
}

// How warps divide an output of M × N: the number of warps along N that reads the fewest fragments.
constexpr int warpsAlongN(int m, int n, int warps) {
  int best = 0, cost = 1 << 30;
  for (int wn = 1; wn <= warps; wn *= 2) {
    int wm = warps / wn;
    if ((m / 16) % wm != 0 || (n / 16) % wn != 0) continue;
    if (m / wm + n / wn < cost) {
      cost = m / wm + n / wn;
      best = wn;
    }
  }
  return best;
}

#define LOG2E 1.4426950408889634f
#define LN2 0.6931471805599453f
#define INFINITE __uint_as_float(0x7f800000u)
