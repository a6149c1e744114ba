// Attention of single rows to a paged cache (split-K), one map or the difference of two.
//
// Kernel 1: a block for (row, group) takes the row's keys in splits and gives, for each query vector of the group's heads
// and each split, m = max s, l = Σ exp2(s − m), O = Σ exp2(s − m)·v, with s = scale·log2 e·q·k. All of a split's K and V, up to 100 KB, is asked
// for at once by cp.async, and two or three blocks share an SM, so that the memory never waits for arithmetic. K and V are read
// once for all query vectors of the group: both maps, and all heads that share them. A thread makes whole scores, one key head of
// one key, so that no sum crosses lanes; rows of K are an odd number of 16 bytes apart and meet no bank twice.
// Where only one row's newest key may still be on its way (`early`), everything before it is asked for while the kernels that make the query
// still run (early.cuh).
// Kernel 2 adds a row's splits, subtracts the maps and applies the head norm; its sums are under way before the weights are known.
//
// Where a split begins depends on the shape and the key's position alone and each row is summed by itself in a fixed order, so a row's
// bits do not depend on its company. Bound: bytes of K and V, (keys·D + DV)·2 per group and position.
//
// HEAD, VALUE, KEYS and SPLIT (keys of a split) are the shape, or 0 for one that is known at run time; THREADS are those of a split. In
// shared memory and in the splits' sums heads are as wide as the next multiple of 8, with zeros behind their end.
#include "attn_page.cuh"
#include "attn_ptx.cuh"
#include "early.cuh"

#define LOG2E 1.4426950408889634f
#define LOWEST __uint_as_float(0xff800000u)

struct Cached {
  const bf16 *k, *v;
  i64 ldk, ldv;
  int H, G, d, dv, keyHeads, keysOfSplit, vec;
  __device__ __forceinline__ int D() const { return HEAD ? HEAD : d; }
  __device__ __forceinline__ int DV() const { return VALUE ? VALUE : dv; }
  __device__ __forceinline__ int keys() const { return KEYS ? KEYS : keyHeads; }
  __device__ __forceinline__ int split() const { return SPLIT ? SPLIT : keysOfSplit; }
  __device__ __forceinline__ int vectors() const { return H / G * MAPS; }
  __device__ __forceinline__ int wideD() const { return (D() + 7) / 8 * 8; }
  __device__ __forceinline__ int wideDV() const { return (DV() + 7) / 8 * 8; }
  __device__ __forceinline__ int pitchK() const { return (keys() * wideD() / 8 | 1) * 8; }
};

__device__ __forceinline__ void unpack8(float* x, const uint4& v) {
  x[0] = lowBf16(v.x), x[1] = highBf16(v.x), x[2] = lowBf16(v.y), x[3] = highBf16(v.y);
  x[4] = lowBf16(v.z), x[5] = highBf16(v.z), x[6] = lowBf16(v.w), x[7] = highBf16(v.w);
}

// Asks for `heads` heads of width n of the rows' cache lines, from column c0 on; rows that do not exist become zeros.
__device__ __forceinline__ void stage(bf16* to, int pitch, const bf16* from, i64 ld, i64 c0, const int* rows, int count, int heads, int n, bool vec) {
  if (vec) {
    const int pieces = heads * n / 8;
    const u32 base = sharedAddr(to);
    for (int i = threadIdx.x; i < count * pieces; i += THREADS) {
      const int s = i / pieces, p = i % pieces, row = rows[s];
      cpAsync16(base + 2 * (s * pitch + 8 * p), from + (row < 0 ? 0 : row) * ld + c0 + 8 * p, row < 0 ? 0 : 16);
    }
    return;
  }
  const int wide = (n + 7) / 8 * 8;
  for (int i = threadIdx.x; i < count * heads * wide; i += THREADS) {
    const int s = i / (heads * wide), c = i % (heads * wide), head = c / wide, e = c % wide;
    to[s * pitch + c] = rows[s] >= 0 && e < n ? from[rows[s] * ld + c0 + head * n + e] : (bf16)0;
  }
}

// Scores of one key with N query vectors that are `next` floats apart; vectors beyond `left` repeat the last.
template <int N>
__device__ __forceinline__ void scoreKey(float* z, const bf16* key, const float* query, int next, int left, int wide) {
  float odd[N];
#pragma unroll
  for (int i = 0; i < N; i++) z[i] = odd[i] = 0.f;
#pragma unroll 4
  for (int c = 0; c < wide; c += 8) {
    float x[8];
    unpack8(x, *(const uint4*)(key + c));
#pragma unroll
    for (int i = 0; i < N; i++) {
      const float* at = query + min(i, left - 1) * next + c;
      const float4 a = *(const float4*)at, b = *(const float4*)(at + 4);
      z[i] = fmaf(x[0], a.x, z[i]), odd[i] = fmaf(x[1], a.y, odd[i]), z[i] = fmaf(x[2], a.z, z[i]), odd[i] = fmaf(x[3], a.w, odd[i]);
      z[i] = fmaf(x[4], b.x, z[i]), odd[i] = fmaf(x[5], b.y, odd[i]), z[i] = fmaf(x[6], b.z, z[i]), odd[i] = fmaf(x[7], b.w, odd[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < N; i++) z[i] += odd[i];
}

template <int N>
__device__ __forceinline__ void scoreSome(const Cached& a, float* score, const bf16* K, const float* query, int s, int j, int h) {
  float z[N];
  const int left = a.vectors() / a.keys() - h, first = h * a.keys() + j;
  scoreKey<N>(z, K + s * a.pitchK() + j * a.wideD(), query + first * a.wideD(), a.keys() * a.wideD(), left, a.wideD());
#pragma unroll
  for (int i = 0; i < N; i++)
    if (i < left) score[(first + i * a.keys()) * a.split() + s] = z[i];
}

// score[i][s] = q_i·k_s for the split's keys; a thread for each key head of a key.
__device__ __forceinline__ void splitScores(const Cached& a, float* score, const bf16* K, const float* query, int count) {
  const int each = a.vectors() / a.keys(); // query vectors of a key head
  for (int item = threadIdx.x; item < a.split() * a.keys(); item += THREADS) {
    const int s = item % a.split(), j = item / a.split();
    if (s >= count) continue;
    for (int h = 0; h < each; h += 4) {
      if (each - h >= 3) scoreSome<4>(a, score, K, query, s, j, h);
      else if (each - h == 2) scoreSome<2>(a, score, K, query, s, j, h);
      else scoreSome<1>(a, score, K, query, s, j, h);
    }
  }
}

// The scores of a query vector become exp2(s − m); m and l go to stats. A warp for each vector.
__device__ __forceinline__ void splitSoftmax(const Cached& a, float* score, float* stats, int count) {
  const int lane = threadIdx.x & 31;
  for (int i = threadIdx.x >> 5; i < a.vectors(); i += THREADS / 32) {
    float top = LOWEST, sum = 0.f;
    for (int s = lane; s < count; s += 32) top = fmaxf(top, score[i * a.split() + s]);
    top = warpMax(top);
    for (int s = lane; s < count; s += 32) {
      const float p = ex2(score[i * a.split() + s] - top);
      score[i * a.split() + s] = p;
      sum += p;
    }
    sum = warpSum(sum);
    if (lane == 0) *(float2*)(stats + 2 * i) = {top, sum};
  }
}

// O of N query vectors from i0 on: a thread holds 8 columns and takes every groups-th key; the groups are added in order.
template <int N>
__device__ __forceinline__ void splitValues(const Cached& a, const float* score, const bf16* V, float* room, float* to, int count, int i0) {
  const int wide = a.wideDV(), pieces = wide / 8, groups = THREADS / pieces, p = threadIdx.x % pieces, group = threadIdx.x / pieces;
  float acc[N][8] = {};
  if (group < groups)
#pragma unroll 4
    for (int s = group; s < count; s += groups) {
      float x[8];
      unpack8(x, *(const uint4*)(V + s * wide + 8 * p));
#pragma unroll
      for (int i = 0; i < N; i++) {
        const float f = score[(i0 + i) * a.split() + s];
#pragma unroll
        for (int e = 0; e < 8; e++) acc[i][e] = fmaf(f, x[e], acc[i][e]);
      }
    }
  if (group < groups)
#pragma unroll
    for (int i = 0; i < N; i++) {
      float* at = room + (group * N + i) * wide + 8 * p;
      *(float4*)at = {acc[i][0], acc[i][1], acc[i][2], acc[i][3]};
      *(float4*)(at + 4) = {acc[i][4], acc[i][5], acc[i][6], acc[i][7]};
    }
  __syncthreads();
  for (int x = threadIdx.x; x < N * wide; x += THREADS) {
    float z = 0.f;
    for (int j = 0; j < groups; j++) z += room[j * N * wide + x];
    to[i0 * wide + x] = z;
  }
  __syncthreads();
}

// Asks for the keys (then a group of their own) and values of the split's rows from…to−1.
__device__ __forceinline__ void stageRows(const Cached& a, bf16* K, bf16* V, const int* row, int g, int from, int to) {
  stage(K + from * a.pitchK(), a.pitchK(), a.k, a.ldk, (i64)g * a.keys() * a.D(), row + from, to - from, a.keys(), a.D(), a.vec);
  cpCommit();
  stage(V + from * a.wideDV(), a.wideDV(), a.v, a.ldv, (i64)g * a.DV(), row + from, to - from, 1, a.DV(), a.vec);
  cpCommit();
}

// Grid (splits at a time, groups, rows). Shared memory: room for K (then for the groups' sums), V, the query vectors, their scores.
extern "C" __global__ void __launch_bounds__(THREADS, 768 / THREADS)
KERNEL_SPLIT(const bf16* q, const bf16* k, const bf16* v, const int* table, const int* slot, const int* pos, int* fault, float* sums, float* stats,
             i64 ldq, i64 ldk, i64 ldv, i64 ldt, int H, int G, int D, int DV, int keys, int keysOfSplit, int splits, int roomK, int vec, float scale,
             int slots, int pages, int size, int rows, int early) {
  extern __shared__ uint4 cachedShared[];
  __shared__ int row[THREADS];
  const Cached a = {k, v, ldk, ldv, H, G, D, DV, keys, keysOfSplit, vec};
  const Pages cache = {table, ldt, slots, pages, size, rows};
  beginNext();
  const int g = blockIdx.y, split = a.split(), vectors = a.vectors(), wide = a.wideD();
  const int last = min(pos[blockIdx.z], splits * split - 1), mine = slot[blockIdx.z];
  const i64 n = blockIdx.z;
  if (threadIdx.x == 0 && (pos[n] < 0 || pos[n] >= pages * size)) report(fault, FAULT_CACHE, pos[n], pages * size);
  bf16 *K = (bf16*)cachedShared, *V = K + roomK;
  float *query = (float*)(V + split * a.wideDV()), *score = query + vectors * wide;
  if (!early || (int)blockIdx.x * split > last) waitEarlier();
  for (int at = blockIdx.x; at * split <= last; at += gridDim.x) {
    const int first = at * split, count = min(last - first + 1, split);
    const i64 part = (n * splits + at) * H * MAPS + g * vectors;
    for (int s = threadIdx.x; s < count; s += THREADS) row[s] = pageRow(cache, mine, first + s, fault);
    __syncthreads();
    const int sure = early && first + count > last ? count - 1 : count;
    stageRows(a, K, V, row, g, 0, sure);
    if (at == (int)blockIdx.x) {
      waitEarlier();
      for (int i = threadIdx.x; i < vectors * wide; i += THREADS)
        query[i] = i % wide < a.D() ? scale * LOG2E * toFloat(q[n * ldq + ((i64)g * vectors + i / wide) * a.D() + i % wide]) : 0.f;
    }
    if (sure < count) {
      stageRows(a, K, V, row, g, sure, count);
      cpWait<0>();
    } else {
      cpWait<1>();
    }
    __syncthreads();
    splitScores(a, score, K, query, count);
    __syncthreads();
    splitSoftmax(a, score, stats + 2 * part, count);
    cpWait<0>();
    __syncthreads();
    float* to = sums + part * a.wideDV();
    for (int i = 0; i < vectors;) {
      if (vectors - i >= 4) splitValues<4>(a, score, V, (float*)K, to, count, i), i += 4;
      else if (vectors - i >= 2) splitValues<2>(a, score, V, (float*)K, to, count, i), i += 2;
      else splitValues<1>(a, score, V, (float*)K, to, count, i), i++;
    }
  }
}

constexpr int JOIN = 384, BATCH = 4; // splits whose sums a thread asks for at once

// One map's largest m and Σ exp2(m − top)·l over the splits. Each warp finds both by itself: no barrier.
__device__ __forceinline__ float2 joinTotal(const float* stats, i64 next, int used) {
  const int lane = threadIdx.x & 31;
  float top = LOWEST, sum = 0.f;
  for (int s = lane; s < used; s += 32) top = fmaxf(top, stats[s * next]);
  top = warpMax(top);
  for (int s = lane; s < used; s += 32) {
    const float2 x = *(const float2*)(stats + s * next);
    sum = fmaf(ex2(x.x - top), x.y, sum);
  }
  return {top, warpSum(sum)};
}

// Grid (heads, rows). A thread takes 4 columns of every groups-th split.
extern "C" __global__ void __launch_bounds__(JOIN, 2)
KERNEL_JOIN(const float* sums, const float* stats, const int* pos, const float* lam, const bf16* weight, bf16* out, bf16* raw, float* rstd,
            i64 ldlam, i64 ldo, i64 ldraw, i64 ldrstd, int H, int DV, int split, int splits, int each, int norm, float eps, float gain) {
  extern __shared__ uint4 cachedShared[];
  __shared__ float room[32];
  beginNext();
  const int h = blockIdx.x, used = min(max(pos[blockIdx.y], 0) / split + 1, splits), wide = (DV + 7) / 8 * 8;
  const int columns = wide / 4, groups = JOIN / columns, c = threadIdx.x % columns * 4, group = threadIdx.x / columns;
  const i64 n = blockIdx.y, at = n * splits * H * MAPS + h * MAPS, next = (i64)H * MAPS;
  float *part = (float*)cachedShared, *factor = part + JOIN * 4; // [groups][wide], [MAPS][splits]
  float4 x = {0.f, 0.f, 0.f, 0.f};
  waitEarlier();
  for (int s0 = group; s0 < used + group; s0 += groups * BATCH) { // the same turns for all threads: the first has a barrier
    float4 z[MAPS][BATCH];
#pragma unroll
    for (int i = 0; i < MAPS; i++)
#pragma unroll
      for (int u = 0; u < BATCH; u++) {
        const int s = s0 + u * groups;
        z[i][u] = {0.f, 0.f, 0.f, 0.f};
        if (s < used && group < groups) z[i][u] = *(const float4*)(sums + (at + s * next + i) * wide + c);
      }
    if (s0 == group) {
#pragma unroll
      for (int i = 0; i < MAPS; i++) {
        const float2 t = joinTotal(stats + 2 * (at + i), 2 * next, used);
        const float f = (i == 0 ? 1.f : each ? -lam[n * ldlam + h] : -lam[0]) / t.y;
        for (int s = threadIdx.x; s < used; s += JOIN) factor[i * splits + s] = f * ex2(stats[2 * (at + i) + s * 2 * next] - t.x);
      }
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < MAPS; i++)
#pragma unroll
      for (int u = 0; u < BATCH; u++) {
        const int s = s0 + u * groups;
        const float f = s < used ? factor[i * splits + s] : 0.f;
        x.x = fmaf(f, z[i][u].x, x.x), x.y = fmaf(f, z[i][u].y, x.y), x.z = fmaf(f, z[i][u].z, x.z), x.w = fmaf(f, z[i][u].w, x.w);
      }
  }
  if (group < groups) *(float4*)(part + group * wide + c) = x;
  __syncthreads();
  const int col = threadIdx.x;
  float y = 0.f;
  if (col < DV)
    for (int j = 0; j < groups; j++) y += part[j * wide + col];
  const float rs = norm ? rsqrtf(blockSum(y * y, room) / DV + eps) : 1.f;
  if (col >= DV) return;
  if (norm && raw != 0) raw[n * ldraw + (i64)h * DV + col] = toBf16(y);
  out[n * ldo + (i64)h * DV + col] = toBf16(norm ? y * gain * rs * (weight != 0 ? toFloat(weight[col]) : 1.f) : y);
  if (norm && rstd != 0 && col == 0) rstd[n * ldrstd + h] = rs;
}
