// Products of many rows with at most 16 heads, the gradients of V2's λ = σ(x·Wᵀ): c = a·b with k ≤ 16 (bf16, a [rows, K], b
// [K, cols]), and c = aᵀ·x (fp32 [K, cols], a sum over all rows). Both are bound by bytes, and a library's tile is mostly
// padding. K is a multiple of 4. A block is 64 threads of 4 adjacent columns × LANES rows at a time, so a thread holds
// 4·K weights, or 4·K sums, and reads its row's K elements of a, which all 64 share, through the L1.
constexpr int LANES = 4, FLIGHT = 4; // rows that a thread has in flight

__device__ __forceinline__ void load4(float* x, const bf16* p) {
  const uint2 v = *(const uint2*)p;
  x[0] = lowBf16(v.x), x[1] = highBf16(v.x), x[2] = lowBf16(v.y), x[3] = highBf16(v.y);
}

__device__ __forceinline__ float half(const uint2& v, int e) {
  const u32 x = e < 2 ? v.x : v.y;
  return e % 2 == 0 ? lowBf16(x) : highBf16(x);
}

// The rows r, r + step, … of a thread, FLIGHT of them, as bf16: their elements of a, and 4 columns of x, or zeros.
template <int K> struct Rows {
  uint2 a[FLIGHT][K / 4], x[FLIGHT];
  __device__ __forceinline__ void load(const bf16* from, i64 lda, const bf16* at, i64 ldx, i64 r, i64 step, i64 rows, bool both) {
#pragma unroll
    for (int i = 0; i < FLIGHT; i++) {
      const bool in = r + i * step < rows;
#pragma unroll
      for (int j = 0; j < K / 4; j++) {
        a[i][j] = {0, 0};
        if (in) a[i][j] = *(const uint2*)(from + (r + i * step) * lda + 4 * j);
      }
      x[i] = {0, 0};
      if (in && both) x[i] = *(const uint2*)(at + (r + i * step) * ldx);
    }
  }
};

template <int K>
__device__ __forceinline__ void addProduct(bf16* c, i64 ldc, const bf16* a, i64 lda, const bf16* b, i64 ldb, i64 rows, int cols, int add) {
  const int col = (blockIdx.y * 64 + threadIdx.x % 64) * 4;
  if (col >= cols) return;
  float w[K][4];
#pragma unroll
  for (int j = 0; j < K; j++) load4(w[j], b + j * ldb + col);
  const i64 step = (i64)gridDim.x * LANES;
  for (i64 r = (i64)blockIdx.x * LANES + threadIdx.x / 64; r < rows; r += FLIGHT * step) {
    Rows<K> in;
    in.load(a, lda, c + col, ldc, r, step, rows, add);
#pragma unroll
    for (int i = 0; i < FLIGHT; i++) {
      float z[4] = {0.f, 0.f, 0.f, 0.f};
#pragma unroll
      for (int j = 0; j < K; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) z[e] = fmaf(half(in.a[i][j / 4], j % 4), w[j][e], z[e]);
#pragma unroll
      for (int e = 0; e < 4; e++) z[e] += half(in.x[i], e);
      if (r + i * step < rows) *(uint2*)(c + (r + i * step) * ldc + col) = {packBf16(z[0], z[1]), packBf16(z[2], z[3])};
    }
  }
}

// part[p][K][cols]: the sums over rows p·LANES…, every gridDim.x·LANES-th group of LANES.
template <int K>
__device__ __forceinline__ void sumProduct(float* part, const bf16* a, i64 lda, const bf16* x, i64 ldx, i64 rows, int cols) {
  __shared__ float room[LANES][64][4];
  const int thread = threadIdx.x % 64, lane = threadIdx.x / 64, col = (blockIdx.y * 64 + thread) * 4;
  const bool there = col < cols;
  float z[K][4] = {};
  const i64 step = (i64)gridDim.x * LANES;
  for (i64 r = (i64)blockIdx.x * LANES + lane; r < rows && there; r += FLIGHT * step) {
    Rows<K> in;
    in.load(a, lda, x + col, ldx, r, step, rows, true);
#pragma unroll
    for (int i = 0; i < FLIGHT; i++)
#pragma unroll
      for (int j = 0; j < K; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) z[j][e] = fmaf(half(in.a[i][j / 4], j % 4), half(in.x[i], e), z[j][e]);
  }
#pragma unroll
  for (int j = 0; j < K; j++) {
    __syncthreads();
#pragma unroll
    for (int e = 0; e < 4; e++) room[lane][thread][e] = z[j][e];
    __syncthreads();
    if (lane != 0 || !there) continue;
    float4 sum = {0.f, 0.f, 0.f, 0.f};
#pragma unroll
    for (int l = 0; l < LANES; l++)
      sum.x += room[l][thread][0], sum.y += room[l][thread][1], sum.z += room[l][thread][2], sum.w += room[l][thread][3];
    *(float4*)(part + ((i64)blockIdx.x * K + j) * cols + col) = sum;
  }
}

// c[j, col] (+)= the parts, 32 lanes of them in a fixed order: blocks of 32 elements.
extern "C" __global__ void __launch_bounds__(1024) narrow_finish(float* c, i64 ldc, const float* part, int parts, int all, int cols, int add) {
  __shared__ float room[32][33];
  const int lane = threadIdx.x >> 5, x = threadIdx.x & 31, at = blockIdx.x * 32 + x;
  float sum = 0.f;
  if (at < all)
#pragma unroll 8
    for (int p = lane; p < parts; p += 32) sum += part[(i64)p * all + at];
  room[lane][x] = sum;
  __syncthreads();
  if (lane != 0 || at >= all) return;
  float total = room[0][x];
#pragma unroll
  for (int l = 1; l < 32; l++) total += room[l][x];
  float* to = c + at / cols * ldc + at % cols;
  *to = add ? *to + total : total;
}

#define NARROW(K)                                                                                                                          \
  extern "C" __global__ void __launch_bounds__(256, 2) narrow_add_##K(bf16* c, i64 ldc, const bf16* a, i64 lda, const bf16* b, i64 ldb,       \
                                                                   i64 rows, int cols, int add) {                                          \
    addProduct<K>(c, ldc, a, lda, b, ldb, rows, cols, add);                                                                                \
  }                                                                                                                                        \
  extern "C" __global__ void __launch_bounds__(256, 2) narrow_sum_##K(float* part, const bf16* a, i64 lda, const bf16* x, i64 ldx, i64 rows,  \
                                                                   int cols) {                                                             \
    sumProduct<K>(part, a, lda, x, ldx, rows, cols);                                                                                       \
  }
NARROW(4)
NARROW(8)
NARROW(12)
NARROW(16)
