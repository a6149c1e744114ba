// Attention of single rows to a paged cache (split-K), one map or the difference of two.
//
// Kernel 1: a block for (row, group) takes the row's keys in splits of 64 and gives, for each query vector of the group's heads
// and each split, m = max s, l = Σ exp2(s − m), O = Σ exp2(s − m)·v, with s = scale·log2 e·q·k. V is read once for four query
// vectors: both maps of two heads. A lane asks for eight pieces of 16 bytes before it uses the first, so that three blocks
// on an SM keep 48 KB under way. Kernel 2 adds a row's splits, subtracts the maps and applies the head norm.
// Where a split begins depends on the key's position alone and each row is summed by itself in a fixed order, so a row's
// bits do not depend on its company. Bound: bytes of K and V, (keys·D + DV)·2 per group and position.
#include "attn_page.cuh"

constexpr int SPLIT = 64, WARPS = 4, AHEAD = 8, AT_ONCE = 4, WIDE = 256; // AT_ONCE query vectors and WIDE columns of V in one pass
#define LOG2E 1.4426950408889634f
#define LOWEST __uint_as_float(0xff800000u)

struct Cached {
  const bf16 *k, *v;
  i64 ldk, ldv;
  int H, G, D, DV, keys, vec;
};

// The smallest power of two of lanes that hold n columns, 8 each.
__device__ __forceinline__ int lanesFor(int n) {
  int l = 1;
  while (8 * l < n) l *= 2;
  return l;
}

// Eight elements as they lie in memory; those from `left` on are 0.
__device__ __attribute__((noinline)) uint4 fetchSome(const bf16* p, int left) {
  u32 x[4] = {};
#pragma unroll
  for (int i = 0; i < 8; i++)
    if (i < left) x[i >> 1] |= (u32)p[i] << (16 * (i & 1));
  return {x[0], x[1], x[2], x[3]};
}
__device__ __forceinline__ uint4 fetch8(const bf16* p, int left, bool vec) {
  if (vec && left >= 8) return *(const uint4*)p;
  return fetchSome(p, left);
}
__device__ __forceinline__ void unpack8(float* x, const uint4& v) {
  x[0] = lowBf16(v.x), x[1] = highBf16(v.x), x[2] = lowBf16(v.y), x[3] = highBf16(v.y);
  x[4] = lowBf16(v.z), x[5] = highBf16(v.z), x[6] = lowBf16(v.w), x[7] = highBf16(v.w);
}

// score[i][s] = q_i·k_s for the split's keys; a group of lanes for each key head of a key.
__device__ __forceinline__ void splitScores(const Cached& a, float* score, const float* query, const int* rows, int count, int g) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, l = lanesFor(a.D), per = 32 / l, mine = lane % l;
  const int vectors = a.H / a.G * MAPS, two = a.keys - 1, left = a.D - 8 * mine;
  for (int i0 = warp * per; i0 < count << two; i0 += WARPS * per * AHEAD) { // the same turns for all lanes of a warp
    uint4 raw[AHEAD];
#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      const int item = i0 + u * WARPS * per + lane / l, s = item >> two;
      raw[u] = {0, 0, 0, 0};
      if (s < count && rows[s] >= 0 && left > 0) raw[u] = fetch8(a.k + rows[s] * a.ldk + ((i64)g * a.keys + (item & two)) * a.D + 8 * mine, left, a.vec);
    }
#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      const int item = i0 + u * WARPS * per + lane / l, s = item >> two;
      float x[8];
      unpack8(x, raw[u]);
      for (int i = 0; i < vectors; i += 1 + two) {
        const float* q = query + (i + (item & two)) * a.D + 8 * mine;
        float z = 0.f;
#pragma unroll
        for (int e = 0; e < 8; e++)
          if (e < left) z = fmaf(x[e], q[e], z);
        for (int o = l / 2; o > 0; o >>= 1) z += __shfl_xor_sync(0xffffffffu, z, o);
        if (mine == 0 && s < count) score[(i + (item & two)) * SPLIT + s] = z;
      }
    }
  }
}

// The scores of a query vector become exp2(s − m); m and l go to stats.
__device__ __forceinline__ void splitSoftmax(const Cached& a, float* score, float* stats, int count) {
  const int lane = threadIdx.x & 31, vectors = a.H / a.G * MAPS;
  for (int i = threadIdx.x >> 5; i < vectors; i += WARPS) {
    float top = LOWEST, sum = 0.f;
    for (int s = lane; s < count; s += 32) top = fmaxf(top, score[i * SPLIT + s]);
    top = warpMax(top);
    for (int s = lane; s < count; s += 32) {
      const float p = exp2f(score[i * SPLIT + s] - top);
      score[i * SPLIT + s] = p;
      sum += p;
    }
    sum = warpSum(sum);
    if (lane == 0) stats[2 * i] = top, stats[2 * i + 1] = sum;
  }
}

// O of query vectors i0… and columns c0…: lanes hold 8 columns, groups of lanes and warps take keys in turn.
__device__ __forceinline__ void splitValues(const Cached& a, const float* score, float* room, float* to, const int* rows, int count, int g, int i0, int c0) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, wide = min(a.DV - c0, WIDE), l = lanesFor(wide), per = 32 / l;
  const int vectors = a.H / a.G * MAPS, c = c0 + 8 * (lane % l), left = a.DV - c;
  float acc[AT_ONCE][8] = {};
  for (int s0 = warp * per + lane / l; s0 < count; s0 += WARPS * per * AHEAD) {
    uint4 raw[AHEAD];
#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      const int s = s0 + u * WARPS * per;
      raw[u] = {0, 0, 0, 0};
      if (s < count && rows[s] >= 0 && left > 0) raw[u] = fetch8(a.v + rows[s] * a.ldv + (i64)g * a.DV + c, left, a.vec);
    }
#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      const int s = s0 + u * WARPS * per;
      float x[8];
      unpack8(x, raw[u]);
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) {
        const float p = i0 + i < vectors && s < count ? score[(i0 + i) * SPLIT + s] : 0.f;
#pragma unroll
        for (int e = 0; e < 8; e++) acc[i][e] = fmaf(p, x[e], acc[i][e]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < AT_ONCE; i++)
#pragma unroll
    for (int e = 0; e < 8; e++) {
      float z = acc[i][e];
      for (int o = 16; o >= l; o >>= 1) z += __shfl_xor_sync(0xffffffffu, z, o);
      if (lane < l) room[(warp * AT_ONCE + i) * WIDE + 8 * lane + e] = z;
    }
  __syncthreads();
  for (int x = threadIdx.x; x < AT_ONCE * wide; x += 32 * WARPS) {
    const int i = x / wide, col = x % wide;
    if (i0 + i >= vectors) break;
    float z = 0.f;
    for (int w = 0; w < WARPS; w++) z += room[(w * AT_ONCE + i) * WIDE + col];
    to[(i64)(i0 + i) * a.DV + c0 + col] = z;
  }
  __syncthreads();
}

// Grid (splits at a time, groups, rows).
extern "C" __global__ void __launch_bounds__(32 * WARPS)
KERNEL_SPLIT(const bf16* q, const bf16* k, const bf16* v, const int* table, const int* slot, const int* pos, int* fault, float* sums, float* stats,
             i64 ldq, i64 ldk, i64 ldv, i64 ldt, int H, int G, int D, int DV, int keys, int splits, int vec, float scale,
             int slots, int pages, int size, int rows) {
  extern __shared__ float cachedShared[];
  __shared__ int row[SPLIT];
  const Cached a = {k, v, ldk, ldv, H, G, D, DV, keys, vec};
  const Pages cache = {table, ldt, slots, pages, size, rows};
  const int g = blockIdx.y, vectors = H / G * MAPS, last = min(pos[blockIdx.z], splits * SPLIT - 1);
  const i64 n = blockIdx.z;
  if (threadIdx.x == 0 && (pos[n] < 0 || pos[n] >= pages * size)) report(fault, FAULT_CACHE, pos[n], pages * size);
  if ((int)blockIdx.x * SPLIT > last) return;
  float *query = cachedShared, *score = query + vectors * D, *room = score + vectors * SPLIT;
  for (int i = threadIdx.x; i < vectors * D; i += 32 * WARPS) query[i] = scale * LOG2E * toFloat(q[n * ldq + (i64)g * vectors * D + i]);
  for (int split = blockIdx.x; split * SPLIT <= last; split += gridDim.x) {
    const int first = split * SPLIT, count = min(last - first + 1, SPLIT);
    const i64 at = (n * splits + split) * H * MAPS + g * vectors;
    for (int s = threadIdx.x; s < count; s += 32 * WARPS) row[s] = pageRow(cache, slot[n], first + s, fault);
    __syncthreads();
    splitScores(a, score, query, row, count, g);
    __syncthreads();
    splitSoftmax(a, score, stats + 2 * at, count);
    __syncthreads();
    for (int i = 0; i < vectors; i += AT_ONCE)
      for (int c = 0; c < DV; c += WIDE) splitValues(a, score, room, sums + at * DV, row, count, g, i, c);
  }
}

constexpr int JOIN = 1024;

// Each split's factor exp2(m − max m) for one map, into shared memory; the answer is the sum Σ factor·l.
__device__ __forceinline__ float joinFactors(float* factor, const float* stats, i64 next, int used, float* room) {
  float top = LOWEST, sum = 0.f;
  for (int s = threadIdx.x; s < used; s += JOIN) top = fmaxf(top, stats[s * next]);
  top = blockMax(top, room);
  for (int s = threadIdx.x; s < used; s += JOIN) {
    factor[s] = exp2f(stats[s * next] - top);
    sum = fmaf(factor[s], stats[s * next + 1], sum);
  }
  return blockSum(sum, room); // and the factors are there
}

// Grid (heads, rows). A thread for each column, and for each of as many groups of splits as there is room for.
extern "C" __global__ void __launch_bounds__(JOIN)
KERNEL_JOIN(const float* sums, const float* stats, const int* pos, const float* lam, const bf16* weight, bf16* out, bf16* raw, float* rstd,
            i64 ldlam, i64 ldo, i64 ldraw, i64 ldrstd, int H, int DV, int splits, int each, int norm, float eps, float gain) {
  extern __shared__ float cachedShared[]; // factors, [MAPS][splits]
  __shared__ float room[32], part[JOIN];
  const int h = blockIdx.x, used = min(max(pos[blockIdx.y], 0) / SPLIT + 1, splits), wide = 8 * lanesFor(DV);
  const int c = threadIdx.x % wide, group = threadIdx.x / wide, groups = JOIN / wide;
  const i64 n = blockIdx.y, at = n * splits * H * MAPS + h * MAPS;
  float x = 0.f;
#pragma unroll
  for (int i = 0; i < MAPS; i++) {
    float* factor = cachedShared + i * splits;
    const float total = joinFactors(factor, stats + 2 * (at + i), 2 * (i64)H * MAPS, used, room);
    const float* from = sums + (at + i) * DV;
    float z = 0.f;
    if (c < DV)
#pragma unroll 8
      for (int s = group; s < used; s += groups) z = fmaf(factor[s], from[(i64)s * H * MAPS * DV + c], z);
    part[threadIdx.x] = z;
    __syncthreads();
    z = 0.f;
    for (int j = 0; j < groups; j++) z += part[j * wide + c];
    const float f = i == 0 ? 1.f : each ? -lam[n * ldlam + h] : -lam[0];
    x += f * (z / total);
    __syncthreads();
  }
  const bool mine = group == 0 && c < DV;
  const float rs = norm ? rsqrtf(blockSum(mine ? x * x : 0.f, room) / DV + eps) : 1.f;
  if (!mine) return;
  if (norm && raw != 0) raw[n * ldraw + (i64)h * DV + c] = toBf16(x);
  out[n * ldo + (i64)h * DV + c] = toBf16(norm ? x * gain * rs * (weight != 0 ? toFloat(weight[c]) : 1.f) : x);
  if (norm && rstd != 0 && threadIdx.x == 0) rstd[n * ldrstd + h] = rs;
}
