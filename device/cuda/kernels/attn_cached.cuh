// Attention of single rows to a paged cache (split-K), one map or the difference of two.
//
// Kernel 1: a block for (row, group) takes the row's keys in splits and computes, for each query vector of the group's
// heads and each split, m = max s, l = Σ exp2(s − m), O = Σ exp2(s − m)·v, with s = scale·log2 e·q·k. All of a split's
// K and V, up to 100 KB, is loaded at once with cp.async; the next split's K is loaded as soon as this one's has been
// used, then its V. Two or three blocks share an SM, so that memory never waits for arithmetic. K and V are read once
// for all query vectors of the group: both maps, and all heads that share them. After the loads the chain of dependent
// steps dominates, so both products use the tensor cores: S = K·Qᵀ with keys as the tall side of m16n8k16 and query
// vectors as the narrow one, and Oᵀ = Vᵀ·Pᵀ with columns as the tall side, where a vector of P is two narrow columns,
// bf16(p) and bf16(p − bf16(p)), which is exact and costs nothing extra. Rows of K and V are an odd number of 16 bytes
// apart, which avoids bank conflicts. If only one row's newest key may still be in flight (`early`), everything before
// it is loaded while the kernels that compute the query still run (early.cuh).
//
// Kernel 2 adds a row's splits, subtracts the maps and applies the head norm; all its loads are issued before the first
// result is used.
//
// The start of a split depends only on the shape and the key's position, and each row is summed separately in a fixed
// order, so a row's bits do not depend on its batch. Bound: bytes of K and V, (keys·D + DV)·2 per group and position.
//
// BYTES: an int8 cache, an element being scale·(byte − 128) with one scale per row and head, at the end of the row
// (device.Cache). Bytes are copied unchanged and become fp16 between shared memory and the tensor cores, exactly and by
// two instructions for two of them: 1024 + x is 0x6400 | x. Queries are fp16 too, which holds bf16's mantissa. Scales
// of keys are applied to the scores, those of values to P, both in fp32; P is relative to the split's largest scale,
// times 1024, so that what matters of it is no subnormal half. A product's k and its rows may be in any order, so a
// thread takes adjacent bytes: four of a key, or two columns of a value.
//
// PACKED, where SPLIT is known: the softmax leaves P as the two 16-bit parts that the product takes, in place of the
// scores; otherwise every tile of 16 columns packs P again, which is a third of the kernel's instructions with bytes.
//
// HEAD, VALUE, KEYS and SPLIT (keys per split) are the shape, or 0 for one known at run time; THREADS are those of a
// split, BLOCKS the blocks of an SM that registers must allow. In shared memory and in the splits' sums heads are
// padded with zeros to the next multiple of 16.
#ifndef BYTES
#define BYTES 0
#endif
#define PACKED (SPLIT > 0)
#ifndef BLOCKS
#define BLOCKS (768 / THREADS)
#endif
static_assert(SPLIT % 64 == 0, "P of whole steps of 64 keys");
#include "attn_page.cuh"
#include "attn_ptx.cuh"
#include "early.cuh"

#define LOG2E 1.4426950408889634f
#define LOWEST __uint_as_float(0xff800000u)

#if BYTES
typedef unsigned char Cell;
#define CELLS 16
#define NOTHING 128
#else
typedef bf16 Cell; // of the cache
#define CELLS 8 // in 16 bytes
#define NOTHING 0
#endif

struct Cached {
  const Cell *k, *v;
  i64 ldk, ldv;
  int H, G, d, dv, keyHeads, keysOfSplit, vec;
  __device__ __forceinline__ int D() const { return HEAD ? HEAD : d; }
  __device__ __forceinline__ int DV() const { return VALUE ? VALUE : dv; }
  __device__ __forceinline__ int keys() const { return KEYS ? KEYS : keyHeads; }
  __device__ __forceinline__ int split() const { return SPLIT ? SPLIT : keysOfSplit; }
  __device__ __forceinline__ int vectors() const { return H / G * MAPS; }
  __device__ __forceinline__ int wideD() const { return (D() + 15) / 16 * 16; }
  __device__ __forceinline__ int wideDV() const { return (DV() + 15) / 16 * 16; }
  __device__ __forceinline__ int pitchK() const { return keys() * wideD() + CELLS; }
  __device__ __forceinline__ int pitchV() const { return wideDV() + CELLS; }
  __device__ __forceinline__ int pitchQ() const { return wideD() + 8; }
  __device__ __forceinline__ int pitchS() const { return split() + 8; }
};

#include "attn_cached_load.cuh"

// The bits of an element of a query as the product takes it. A NaN stays one, which fminf and fmaxf would hide.
__device__ __forceinline__ bf16 asOperand(bf16 x) {
  if (!BYTES) return x;
  const float y = toFloat(x);
  return (bf16)(packHalf(y > 65504.f ? 65504.f : y < -65504.f ? -65504.f : y, 0.f) & 0xffff);
}

// score[i][s] = scale·q_i·k_s for the split's keys. A warp takes 16 keys of one key head, with up to 8 of its query
// vectors at a time.
__device__ __forceinline__ void splitScores(const Cached& a, float* score, const Cell* K, const float* scales,
                                            const bf16* query, int count, float scale) {
  constexpr int STEPS = HEAD ? HEAD / 16 : 1;
  // Query vectors per key head; a constant if the shape is.
  const int each = a.vectors() / a.keys(), tiles = a.split() / 16;
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  for (int item = threadIdx.x >> 5; item < tiles * a.keys(); item += THREADS / 32) {
    const int j = item / tiles, s0 = item % tiles * 16;
    if (s0 >= count) continue;
#if BYTES
    const Cell* at = K + (s0 + g) * a.pitchK() + j * a.wideD() + 4 * t;
#else
    const u32 at = sharedAddr(K + (s0 + (lane & 15)) * a.pitchK() + j * a.wideD() + (lane >> 4) * 8);
#endif
    for (int h = 0; h < each; h += 8) {
      // Vectors beyond the last repeat it.
      const bf16* q = query + (min(h + g, each - 1) * a.keys() + j) * a.pitchQ() + (BYTES ? 4 : 2) * t;
      float z[4] = {0.f, 0.f, 0.f, 0.f};
      for (int c = 0; c < a.wideD(); c += 16 * STEPS) {
        u32 k[STEPS][4], x[STEPS][2]; // all loads, then all products
#pragma unroll
        for (int u = 0; u < STEPS; u++) {
          x[u][0] = *(const u32*)(q + c + 16 * u), x[u][1] = *(const u32*)(q + c + 16 * u + (BYTES ? 2 : 8));
#if BYTES
          loadKeys(k[u], at + c + 16 * u, a.pitchK());
#else
          ldmatrix4(k[u], at + 2 * (c + 16 * u));
#endif
        }
#pragma unroll
        for (int u = 0; u < STEPS; u++) MMA(z, k[u], x[u]);
      }
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int i = h + 2 * t + (e & 1), s = s0 + g + (e >> 1) * 8;
        if (i < each) score[(i * a.keys() + j) * a.pitchS() + s] = scale * z[e] * (BYTES ? scales[4 * s + j] : 1.f);
      }
    }
  }
}

#if BYTES
__device__ __forceinline__ u32 packParts(float x, float y) { return packHalf(x, y); }
__device__ __forceinline__ float lowPart(u32 x) { return lowHalf(x); }
__device__ __forceinline__ float highPart(u32 x) { return highHalf(x); }
#else
__device__ __forceinline__ u32 packParts(float x, float y) { return packBf16(x, y); }
__device__ __forceinline__ float lowPart(u32 x) { return lowBf16(x); }
__device__ __forceinline__ float highPart(u32 x) { return highBf16(x); }
#endif

// Element s of a vector's P, which is p, or with PACKED p's leading part at s and the rest of it a split further. All
// scores of the vector have been read.
__device__ __forceinline__ void storeP(float* score, int s, int split, float p) {
  if (!PACKED) {
    score[s] = p;
    return;
  }
  const u32 high = packParts(p, 0.f);
  ((bf16*)score)[s] = (bf16)(high & 0xffff);
  ((bf16*)score)[split + s] = (bf16)(packParts(p - lowPart(high), 0.f) & 0xffff);
}

// The scores of a query vector become exp2(s − m), times the value's scale over `tall` if there is one, and 0 beyond
// the last key; m and l go to stats, tall, the largest scale / 1024, to the score after the last. One warp per vector.
__device__ __forceinline__ void splitSoftmax(const Cached& a, float* score, const float* scales, float* stats,
                                             int count) {
  constexpr int PER = (SPLIT ? SPLIT : THREADS) / 32; // scores of a lane
  const int lane = threadIdx.x & 31;
  for (int i = threadIdx.x >> 5; i < a.vectors(); i += THREADS / 32) {
    float x[PER], top = LOWEST, sum = 0.f, tall = 0.f;
#pragma unroll
    for (int u = 0; u < PER; u++) {
      const int s = lane + 32 * u;
      x[u] = s < count ? score[i * a.pitchS() + s] : LOWEST;
      top = fmaxf(top, x[u]);
      if (BYTES && s < count) tall = fmaxf(tall, scales[4 * s]);
    }
    top = warpMax(top);
    if (BYTES) tall = warpMax(tall) * (1.f / 1024);
    __syncwarp(); // all lanes have read their scores: P takes their place
    const float inverse = tall > 0.f ? 1.f / tall : 0.f;
#pragma unroll
    for (int u = 0; u < PER; u++) {
      const int s = lane + 32 * u;
      const float p = s < count ? ex2(x[u] - top) : 0.f;
      if (s < a.split())
        storeP(score + i * a.pitchS(), s, a.split(), BYTES && s < count ? p * (scales[4 * s] * inverse) : p);
      sum += p;
    }
    sum = warpSum(sum);
    if (lane == 0) *(float2*)(stats + 2 * i) = {top, sum};
    if (BYTES && lane == 0) score[i * a.pitchS() + a.split()] = tall;
  }
}

// Elements s + 2t and the next of a vector's P as bf16 or fp16, or the rounding error of that. Beyond the last key they
// are 0, as the softmax left them, but may not be read: key `from` of the last step is read in their place.
__device__ __forceinline__ u32 packPart(const float* score, int s, int from, int split, int t, bool rest) {
  if (PACKED) return ((const u32*)score)[(rest ? split / 2 : 0) + s / 2 + t];
  const float2 x = *(const float2*)(score + from + 2 * t);
  const u32 high = packParts(x.x, x.y), low = packParts(x.x - lowPart(high), x.y - highPart(high));
  return s == from ? rest ? low : high : 0;
}

// O of up to 4 query vectors starting at i0. A warp takes 16 columns and 64 keys; the 64s are added in order.
__device__ __forceinline__ void splitValues(const Cached& a, const float* score, const Cell* V, float* room, float* to,
                                            int count, int i0) {
  const int wide = a.wideDV(), tiles = wide / 16, parts = (count + 63) / 64, some = min(4, a.vectors() - i0);
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  const float* p = score + (i0 + min(g & 3, some - 1)) * a.pitchS(); // vectors beyond the last repeat it
  for (int item = threadIdx.x >> 5; item < tiles * parts; item += THREADS / 32) {
    const int m0 = item % tiles * 16, part = item / tiles;
#if BYTES
    const Cell* at = V + 2 * t * a.pitchV() + m0 + 2 * g;
#else
    const u32 at = sharedAddr(V + ((lane >> 4) * 8 + (lane & 7)) * a.pitchV() + m0 + (lane >> 3 & 1) * 8);
#endif
    float z[4] = {0.f, 0.f, 0.f, 0.f};
    u32 v[4][4], x[4][2];
    // No branch, so that all loads are issued first: steps beyond the last key repeat the last, times 0.
#pragma unroll
    for (int u = 0; u < 4; u++) {
      const int s = 64 * part + 16 * u, from = min(s, (count - 1) / 16 * 16);
      x[u][0] = packPart(p, s, from, a.split(), t, g > 3), x[u][1] = packPart(p, s + 8, from + 8, a.split(), t, g > 3);
#if BYTES
      loadValues(v[u], at + from * a.pitchV(), a.pitchV());
#else
      ldmatrix4t(v[u], at + 2 * from * a.pitchV());
#endif
    }
#pragma unroll
    for (int u = 0; u < 4; u++) MMA(z, v[u], x[u]);
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const float both = z[e] + __shfl_xor_sync(0xffffffffu, z[e], 2);
      const int i = 2 * t + (e & 1);
      if (i < some) room[(part * some + i) * wide + m0 + (BYTES ? 2 * g + (e >> 1) : g + (e >> 1) * 8)] = both;
    }
  }
  __syncthreads();
  for (int x = threadIdx.x; x < some * wide; x += THREADS) {
    float z = 0.f;
#pragma unroll 4
    for (int j = 0; j < parts; j++) z += room[j * some * wide + x];
    to[i0 * wide + x] = BYTES ? z * score[(i0 + x / wide) * a.pitchS() + a.split()] : z;
  }
  __syncthreads();
}

// A part of the cache: the location of its keys and values in shared memory, and their cache lines.
struct Part {
  Cell *K, *V;
  float *scaleK, *scaleV; // for bytes: four per key
  int* row;
  int first, count;
};

// Loads the keys, or values, of the part's rows from…to−1, as a separate group.
__device__ __forceinline__ void stageKeys(const Cached& a, const Part& p, int g, int from, int to) {
  stage(p.K + from * a.pitchK(), a.pitchK(), a.k, a.ldk, (i64)g * a.keys() * a.D(), p.row + from, to - from, a.keys(),
        a.D(), a.vec);
#if BYTES
  stageScales(p.scaleK + 4 * from, a.k, a.ldk, (a.G * a.keys() * a.D() + 15) / 16 * 16, g * a.keys(),
              p.row + from, to - from);
  // The softmax needs them.
  stageScales(p.scaleV + 4 * from, a.v, a.ldv, (a.G * a.DV() + 15) / 16 * 16, g, p.row + from, to - from);
#endif
  cpCommit();
}
__device__ __forceinline__ void stageValues(const Cached& a, const Part& p, int g, int from, int to) {
  stage(p.V + from * a.pitchV(), a.pitchV(), a.v, a.ldv, (i64)g * a.DV(), p.row + from, to - from, 1, a.DV(), a.vec);
  cpCommit();
}

// The values of keys beyond the split's last, up to the next 16, become zeros: uninitialised memory might not be
// finite.
__device__ __forceinline__ void clearValues(const Cached& a, Cell* V, int count) {
  if (BYTES) return; // any byte is finite
  const int pieces = a.wideDV() / CELLS, all = ((count + 15) / 16 * 16 - count) * pieces;
  for (int i = threadIdx.x; i < all; i += THREADS)
    *(uint4*)(V + (count + i / pieces) * a.pitchV() + i % pieces * CELLS) = {0, 0, 0, 0};
}

// Finds the cache lines of the part that begins at key first of a slot.
__device__ __forceinline__ void findRows(Part& p, int first, int last, int split, const Pages& cache, int slot,
                                         int* fault) {
  p.first = first, p.count = max(0, min(last - first + 1, split));
  for (int s = threadIdx.x; s < p.count; s += THREADS) p.row[s] = pageRow(cache, slot, first + s, fault);
}

struct Split {
  Cached a;
  Pages cache;
  const bf16* q;
  i64 ldq;
  const int *slot, *pos;
  int *fault, splits;
  float *sums, *stats, scale;
};

// Grid (groups, concurrent splits, rows): concurrent blocks read whole rows of the cache, and blocks beyond a row's
// last key come last and exit at once. With MORE, a block continues with the splits after the concurrent ones. Shared
// memory: K, V, the query vectors, their scores and, with MORE, sums of 64 keys each and the cache lines of two splits,
// which otherwise reuse the memory of K and the scores.
template <bool MORE> __device__ __forceinline__ void attendSplits(const Split& p, bool early) {
  extern __shared__ uint4 cachedShared[];
  const Cached& a = p.a;
  const int g = blockIdx.x, split = a.split(), vectors = a.vectors(), wide = a.wideD(),
      room = p.cache.pages * p.cache.size;
  const i64 n = blockIdx.z;
  const int last = min(p.pos[n], p.splits * split - 1), mine = p.slot[n];
  if (threadIdx.x == 0 && (p.pos[n] < 0 || p.pos[n] >= room)) report(p.fault, FAULT_CACHE, p.pos[n], room);
  const int sums = (split + 63) / 64 * min(vectors, 4) * a.wideDV(); // of 64 keys each
  Cell *K = (Cell*)cachedShared, *V = K + max(split * a.pitchK(), (int)(4 / sizeof(Cell)) * sums);
  float* scales = (float*)(V + split * a.pitchV());
  bf16* query = (bf16*)(scales + (BYTES ? 8 * split : 0));
  float *score = (float*)(query + vectors * a.pitchQ()), *parts = MORE ? score + vectors * a.pitchS() : (float*)K;
  int* row = MORE ? (int*)(parts + sums) : (int*)score; // used until all keys are loaded
  if (blockIdx.y > 0 && (int)blockIdx.y * split > last) return; // the first split stays: see early.cuh
  if (!early || last < 0) waitEarlier();
  Part here = {K, V, scales, scales + 4 * split, row, 0, 0},
      next = {K, V, scales, scales + 4 * split, row + split, 0, 0};
  const float *scaleK = scales + (g * a.keys() & 3), *scaleV = scales + 4 * split + (g & 3);
  findRows(here, blockIdx.y * split, last, split, p.cache, mine, p.fault);
  __syncthreads();
  const int sure = early && here.first + here.count > last ? here.count - 1 : here.count;
  stageKeys(a, here, g, 0, sure);
  stageValues(a, here, g, 0, sure);
  clearValues(a, V, here.count);
  waitEarlier();
#pragma unroll 2
  for (int i = threadIdx.x; i < vectors * wide; i += THREADS)
    query[i / wide * a.pitchQ() + i % wide] = i % wide < a.D()
        ? asOperand(p.q[n * p.ldq + ((i64)g * vectors + i / wide) * a.D() + i % wide]) : (bf16)0;
  if (sure < here.count) { // the newest key, also in two groups: all but the last must be there
    stageKeys(a, here, g, sure, here.count);
    stageValues(a, here, g, sure, here.count);
  }
  for (int at = blockIdx.y; here.count > 0; at += gridDim.y) {
    const i64 part = (n * p.splits + at) * a.H * MAPS + g * vectors;
    if (MORE) findRows(next, here.first + gridDim.y * split, last, split, p.cache, mine, p.fault);
    cpWait<1>();
    __syncthreads();
    splitScores(a, score, K, scaleK, query, here.count, p.scale * LOG2E);
    __syncthreads();
    if (MORE && !BYTES) stageKeys(a, next, g, 0, next.count);
    splitSoftmax(a, score, scaleV, p.stats + 2 * part, here.count);
    if (MORE && BYTES) __syncthreads(), stageKeys(a, next, g, 0, next.count); // the scales of values have been read
    cpWait<MORE>();
    __syncthreads();
    for (int i = 0; i < vectors; i += 4) splitValues(a, score, V, parts, p.sums + part * a.wideDV(), here.count, i);
    if (!MORE) break;
    stageValues(a, next, g, 0, next.count);
    clearValues(a, V, next.count);
    int* used = here.row;
    here = next, next.row = used;
  }
}

#define SPLIT_ARGS                                                                                                     \
  const bf16 *q, const Cell *k, const Cell *v, const int *table, const int *slot, const int *pos, int *fault,          \
      float *sums, float *stats, i64 ldq, i64 ldk, i64 ldv, i64 ldt, int H, int G, int D, int DV, int keys,            \
      int keysOfSplit, int splits, int vec, float scale, int slots, int pages, int size, int rows, int early
#define SPLIT_CALL                                                                                                     \
  {{k, v, ldk, ldv, H, G, D, DV, keys, keysOfSplit, vec}, {table, ldt, slots, pages, size, rows},                      \
   q, ldq, slot, pos, fault, splits, sums, stats, scale}, early

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) KERNEL_SPLIT(SPLIT_ARGS) {
  beginNext();
  attendSplits<false>(SPLIT_CALL);
}
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) KERNEL_SPLITS(SPLIT_ARGS) {
  beginNext();
  attendSplits<true>(SPLIT_CALL);
}

#include "attn_cached_join.cuh"
