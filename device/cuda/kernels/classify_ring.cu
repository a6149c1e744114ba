// The cross-entropy of classify.cu with its gradient, for rows that fit into shared memory: each logit is read from
// memory once instead of twice.
//
//	lse = log Σ exp(z),  loss = lse − z[target],  dz = scale·(exp(z − lse) − onehot)
//
// Persistent blocks, one per SM, each takes every gridDim.x-th row. One producer thread loads rows in chunks of 16 KB
// by the copy engine into a ring of SLOTS; 16 consumer warps read a chunk for the running maximum and sum as soon as it
// arrives, keep the row in its slots, and read it again for dz, which frees the slots chunk by chunk for the next row.
// So memory is busy while exponentials are taken, except for one reduction over the block per row. dz replaces z in
// place as bf16, as in classify.cu: all of a row is in shared memory before any of it is written.
//
// Bound: 4+2 bytes per logit; by count 6,300 cycles of ex2 for a row of 50,304, whose bytes take 16,000 at an SM's
// share of the memory.
#include "hopper_tile.cuh"

constexpr int CONSUMERS = 512, WARPS = CONSUMERS / 32, CHUNK = 16384, FLOATS = CHUNK / 4;
constexpr int PARTS = FLOATS / (4 * CONSUMERS); // pieces of 4 logits of a chunk that belong to a thread
constexpr int AT_BAR = SLOTS * CHUNK, AT_ROOM = AT_BAR + 16 * SLOTS;
static_assert(AT_ROOM + 2 * 2 * 4 * WARPS == SHARED, "classify.go counts shared memory differently");
enum { REDUCE = 1 };  // named barrier of the consumers
typedef Ring<SLOTS, CHUNK> RingZ;
#define LOG2E 1.4426950408889634f
#define LOWEST __uint_as_float(0xff800000u)

// The thread's part u of a chunk, in units of log2: logits after the last class count as −inf.
__device__ __forceinline__ void readPart(float (&v)[4], u32 chunk, int first, int u, int classes) {
  const int at = 4 * (u * CONSUMERS + (int)threadIdx.x), left = classes - first - at;
  u32 x[4] = {};
  if (left > 0) ldShared4(x, chunk + 4 * at);
#pragma unroll
  for (int i = 0; i < 4; i++) v[i] = i < left ? LOG2E * __uint_as_float(x[i]) : LOWEST;
}

// Maximum and sum of the thread's logits, over all chunks of the row whose first is the n-th.
__device__ __forceinline__ void sumRow(float& top, float& sum, const RingZ& ring, int n, int chunks, int classes) {
  top = LOWEST, sum = 0.f;
  for (int c = 0; c < chunks; c++) {
    ring.wait(n + c);
    float v[PARTS][4], m = top;
#pragma unroll
    for (int u = 0; u < PARTS; u++) {
      readPart(v[u], ring.tile(n + c), c * FLOATS, u, classes);
#pragma unroll
      for (int i = 0; i < 4; i++) m = fmaxf(m, v[u][i]);
    }
    if (m > top) sum *= ex2(top - m), top = m;
    if (m == LOWEST) continue; // only padding so far
#pragma unroll
    for (int u = 0; u < PARTS; u++)
#pragma unroll
      for (int i = 0; i < 4; i++) sum += ex2(v[u][i] - top);
  }
}

// log2 Σ 2^v over all consumers, in every one of them. Two rooms in turn, so that one barrier is enough.
__device__ __forceinline__ float reduceRow(float top, float sum, u32 room) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  float most = warpMax(top);
  sum = warpSum(sum == 0.f ? 0.f : sum * ex2(top - most));
  if (lane == 0) stShared(room + 8 * warp, most), stShared(room + 8 * warp + 4, sum);
  barrierOf(REDUCE, CONSUMERS);
  const float2 x = lane < WARPS ? ldShared2(room + 8 * lane) : float2{LOWEST, 0.f};
  most = warpMax(x.x);
  return most + lg2(warpSum(x.y == 0.f ? 0.f : x.y * ex2(x.x - most)));
}

// dz of the thread's logits, in place of z. Frees the row's slots.
__device__ __forceinline__ void gradRow(float* row, const RingZ& ring, int n, int chunks, int classes, int target,
                                        float lse, float scale) {
  const bool ok = target >= 0;
  for (int c = 0; c < chunks; c++) {
    float v[PARTS][4];
#pragma unroll
    for (int u = 0; u < PARTS; u++) readPart(v[u], ring.tile(n + c), c * FLOATS, u, classes);
    __syncwarp();
    ring.release(n + c, threadIdx.x & 31);
#pragma unroll
    for (int u = 0; u < PARTS; u++) {
      const int at = c * FLOATS + 4 * (u * CONSUMERS + (int)threadIdx.x), left = classes - at;
#pragma unroll
      for (int i = 0; i < 4; i++) v[u][i] = ok ? scale * (ex2(v[u][i] - lse) - (at + i == target ? 1.f : 0.f)) : 0.f;
      bf16* to = (bf16*)row + at;
      if (left >= 4) {
        *(uint2*)to = {packBf16(v[u][0], v[u][1]), packBf16(v[u][2], v[u][3])};
      } else {
#pragma unroll
        for (int i = 0; i < 4; i++) if (i < left) to[i] = toBf16(v[u][i]);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(CONSUMERS + 32, 1)
    classify_ring(float* loss, float* z, i64 ld, const int* targets, int rows, int classes, float scale, int* fault) {
  const u32 base = sharedTiles();
  const RingZ ring = {base, base + AT_BAR, base + AT_BAR + 8 * SLOTS};
  const int chunks = (classes + FLOATS - 1) / FLOATS;
  if (threadIdx.x == 0) {
    ring.init(WARPS);
    barInitDone();
  }
  __syncthreads();
  int n = 0;
  if (threadIdx.x >= CONSUMERS) {
    if (threadIdx.x > CONSUMERS) return;
    for (int r = blockIdx.x; r < rows; r += gridDim.x)
      for (int c = 0; c < chunks; c++, n++) {
        const int left = ((int)ld - c * FLOATS) * 4, bytes = left < CHUNK ? left : CHUNK;
        ring.open(n, bytes);
        bulkLoad(ring.tile(n), z + r * ld + c * FLOATS, bytes, ring.fullBar(n));
      }
    return;
  }
  for (int r = blockIdx.x, turn = 0; r < rows; r += gridDim.x, n += chunks, turn ^= 1) {
    int target = targets[r];
    if (target < 0 || target >= classes) {
      if (target != -1 && threadIdx.x == 0) report(fault, FAULT_CLASSIFY, target, classes);
      target = -1;
    }
    float top, sum;
    sumRow(top, sum, ring, n, chunks, classes);
    const float lse = reduceRow(top, sum, base + AT_ROOM + turn * (8 * WARPS));
    if (threadIdx.x == 0) { // its warp has not yet freed the target's slot
      const float at = target < 0 ? 0.f : ldShared(ring.tile(n + target / FLOATS) + target % FLOATS * 4);
      loss[r] = target < 0 ? 0.f : lse * 0.6931471805599453f - at;
    }
    gradRow(z + r * ld, ring, n, chunks, classes, target, lse, scale);
  }
}
