// Tiles of bf16 in shared memory as wgmma and the copy engine see them, and products of them.
//
// A tile of ROWS × W is W/PW panels, one after the other, each ROWS rows of PW = 64 columns (128 bytes, where W is a
// multiple of 64) or 32 (64 bytes). Chunk c of 16 bytes of row r lies at c ^ (r & 7), or c ^ (r/2 & 3) with 64-byte
// rows: the 128- and 64-byte swizzles of both units, as long as a panel begins on 1024 bytes. One tensor map of rank 4
// loads a whole tile: dimensions {PW, T, columns/PW, B}, box {PW, ROWS, W/PW, 1} (see hopperTiles in attn_hopper.go).
#include "hopper.cuh"

template <int ROWS_, int W_, int PW_ = W_ % 64 == 0 ? 64 : 32> struct TileOf {
  static constexpr int ROWS = ROWS_, W = W_, PW = PW_, PANEL = ROWS * PW * 2, BYTES = ROWS * W * 2, STEPS = PW / 16;
  static_assert(W % PW == 0 && ROWS % 8 == 0 && PANEL % 512 == 0, "whole panels of whole swizzle patterns");
  // The descriptor's constant part: stride of 8 rows, swizzle; LEAD is the stride of panels, which only transposed
  // tiles use.
  static constexpr u64 mode(bool lead) {
    return (u64)(PW == 64 ? 1 : 2) << 62 | (u64)(8 * PW * 2 >> 4) << 32 | (u64)(lead ? PANEL >> 4 : 1) << 16;
  }
  // Rows as the outer side of a product (k runs along them): rows from `row`, columns 16·k….
  static __device__ __forceinline__ u64 along(u32 tile, int row, int k) {
    const u32 at = tile + row * (PW * 2) + k / STEPS * PANEL + k % STEPS * 32;
    return mode(false) | (at & 0x3ffff) >> 4;
  }
  // Columns as the outer side (k runs down the rows): rows 16·k…, columns from `column`, a multiple of PW.
  static __device__ __forceinline__ u64 down(u32 tile, int column, int k) {
    const u32 at = tile + column / PW * PANEL + k * (16 * PW * 2);
    return mode(true) | (at & 0x3ffff) >> 4;
  }
};

// d[64,N] = A·Bᵀ: 64 rows of a tile A from rowA, N rows of a tile B from rowB, k along both.
template <typename A, typename B, int M>
__device__ __forceinline__ void rowsByRows(float (&d)[M], u32 a, int rowA, u32 b, int rowB) {
  static_assert(A::W == B::W, "both sides have the same k");
#pragma unroll
  for (int k = 0; k < A::W / 16; k++) wgmmaSS<0, 0>(d, A::along(a, rowA, k), B::along(b, rowB, k), k > 0);
}

// The k-th left fragment of a warp's 16 rows of a tile from `row`, k along them; panels of 64 columns.
template <typename A> __device__ __forceinline__ void leftFragment(u32 (&a)[4], u32 tile, int row, int k, int lane) {
  const int r = row + (lane & 15);
  ldmatrix4(a, tile + k / 4 * A::PANEL + r * 128 + (((2 * (k & 3) + (lane >> 4)) ^ (r & 7)) << 4));
}

// d[64,N] = A·Bᵀ: A as packed fragments, one of four words for each 16 of k; N rows of a tile B, k along them.
template <typename B, int M, int K>
__device__ __forceinline__ void heldByRows(float (&d)[M], const u32 (&a)[K][4], u32 b) {
#pragma unroll
  for (int k = 0; k < K; k++) wgmmaRS<0>(d, a[k], B::along(b, 0, k), k > 0);
}

// d[64,N] += A·B: A as packed fragments, one of four words for each 16 of k; N columns of a tile B from `column`, k
// down its rows.
template <typename B, int M, int K>
__device__ __forceinline__ void addHeld(float (&d)[M], const u32 (&a)[K][4], u32 b, int column, int add = 1) {
#pragma unroll
  for (int k = 0; k < K; k++) wgmmaRS<1>(d, a[k], B::down(b, column, k), k > 0 ? 1 : add);
}

// d[64,N] = Aᵀ·B: 64 columns of a tile A from `column`, N columns of a tile B, k down the rows of both.
template <typename A, typename B, int M>
__device__ __forceinline__ void columnsByColumns(float (&d)[M], u32 a, int column, u32 b) {
  static_assert(A::ROWS == B::ROWS, "both sides have the same k");
#pragma unroll
  for (int k = 0; k < A::ROWS / 16; k++) wgmmaSS<1, 1>(d, A::down(a, column, k), B::down(b, 0, k), k > 0);
}

// A result's columns 16k…16k+15 become the k-th left fragment of the next product.
template <int M> __device__ __forceinline__ void packAll(u32 (&p)[M / 8][4], const float (&s)[M]) {
#pragma unroll
  for (int i = 0; i < M / 2; i++) p[i / 4][i % 4] = packBf16(s[2 * i], s[2 * i + 1]);
}

template <int M> __device__ __forceinline__ void zero(float (&x)[M]) {
#pragma unroll
  for (int i = 0; i < M; i++) x[i] = 0.f;
}

// A ring of tiles between the producer and the consumers: the n-th tile lies in slot n % STAGES. full and empty are the
// addresses of STAGES mbarriers each.
template <int STAGES, int SIZE> struct Ring {
  u32 tiles, full, empty;
  __device__ __forceinline__ u32 tile(int n) const { return tiles + n % STAGES * SIZE; }
  __device__ __forceinline__ u32 fullBar(int n) const { return full + n % STAGES * 8; }
  __device__ __forceinline__ u32 emptyBar(int n) const { return empty + n % STAGES * 8; }
  // The producer's side: waits until the slot is free and announces its bytes, at the slot's barrier or another.
  __device__ __forceinline__ void open(int n, int bytes, u32 bar) const {
    barWait(emptyBar(n), (n / STAGES & 1) ^ 1);
    barExpect(bar, bytes);
  }
  __device__ __forceinline__ void open(int n, int bytes) const { open(n, bytes, fullBar(n)); }
  // A consumer warp waits for the tile. It must not skip one: a wait for the next tile of the slot would pass at once.
  __device__ __forceinline__ void wait(int n) const { barWaitWarp(fullBar(n), n / STAGES & 1); }
  // A consumer warp is done with the tile.
  __device__ __forceinline__ void release(int n, int lane) const {
    if (lane == 0) barArrive(emptyBar(n));
  }
  __device__ __forceinline__ void init(int consumers) const {
    for (int i = 0; i < STAGES; i++) barInit(full + i * 8, 1), barInit(empty + i * 8, consumers);
  }
};
