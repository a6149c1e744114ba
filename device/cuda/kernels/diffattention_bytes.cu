// DiffAttentionCached of heads with their own keys over an int8 cache (split-K): a warp takes a split of a row and head
// by itself, then another one, without a barrier of the block; few splits have a block each (attn_bytes_few.cuh). The
// sums go to kernel 2 of attn_cached.cuh.
//
// K and then V of a split come in stages of 32 keys, copied into the warp's own ring in shared memory. Copies run ahead
// of the products by the whole ring, into the next split too, so that memory never waits for arithmetic. Rows of a
// stage of V are an odd number of 32 bytes apart, those of K of 64, which avoids bank conflicts.
//
// Both products are of integers, m16n8k32: the bytes as they are, unsigned, with Q and P as 16 bits, the largest of a
// vector being 32,512. Their high and low bytes, both signed, are two columns of the narrow side. What 128, the bytes'
// zero, adds to a sum is known before. Scales of keys multiply scores, those of values P, in fp32. A product's k may be
// in any order as long as both operands have the same, and so may its rows:
//   S = K·Qᵀ: keys are the tall side; a lane takes 16 adjacent bytes of a key, and its words 1 and 3 as those of a
//   second key: the narrow side has columns to spare (Query).
//   Oᵀ = Vᵀ·Pᵀ: columns are the tall side. Of 16 keys a lane takes some columns of keys t, t + 4, t + 8 and t + 12 and
//   transposes them in registers, so that a word holds keys of one column. P is stored in that order (`place`).
//
// HEAD and VALUE are the shape, SPLIT the keys of a split, STAGES those of the ring. Splits begin at multiples of
// SPLIT, and sums have a fixed order, so a row's bits do not depend on its batch. Bound: bytes of K and V.
#include "attn_page.cuh"
#include "attn_ptx.cuh"
#include "early.cuh"

#define LOG2E 1.4426950408889634f
#define LOWEST __uint_as_float(0xff800000u)
typedef unsigned char byte;

constexpr int WARPS = 4, MAPS = 2; // warps of a block
constexpr int PER = SPLIT / 32; // stages of K, and of V; keys of a lane in the softmax
constexpr float MOST = 32512.f;

// Bytes of a row of a stage, and how far rows are apart.
constexpr int K_ROW = MAPS * HEAD, V_ROW = VALUE;
constexpr int apart(int bytes, int unit) { return (bytes + unit - 1) / (2 * unit) * 2 * unit + unit; }
constexpr int K_PITCH = apart(K_ROW, 64), V_PITCH = apart(V_ROW, 32), K_STEPS = K_ROW / 64;
constexpr int SCALES = 32 * K_PITCH; // of a stage of K follow its rows: 16 bytes a key
constexpr int K_STAGE = SCALES + 16 * 32, V_STAGE = 32 * V_PITCH, STAGE = K_STAGE > V_STAGE ? K_STAGE : V_STAGE;
static_assert(SPLIT % 32 == 0 && HEAD % 32 == 0 && VALUE % 32 == 0, "whole stages, steps and words");
static_assert(STAGES == 2, "at an item's end, copies are in the next");
static_assert(WARPS * STAGES * STAGE == SHARED, "attn_bytes.go counts shared memory differently");
// Columns of V that a lane takes at once.
constexpr int COLUMNS = V_ROW % 128 == 0 ? 16 : V_ROW % 64 == 0 ? 8 : 4, CHUNKS = V_ROW / 8 / COLUMNS;

// The scores of a split's keys, then P, and the scales of its values. Columns of operands are 4 banks apart.
struct Scores {
  __align__(16) float score[MAPS][SPLIT + 8];
  float scaleV[SPLIT];
  // A column of the pair that P of a map is.
  __device__ __forceinline__ byte* p(int map, int part) { return (byte*)score[map] + part * (SPLIT + 16); }
};

// The shared memory of a warp, besides the ring.
struct Room {
  __align__(16) byte query[MAPS][2][HEAD + 16];
  Scores own;
  float factor[MAPS];
  int bias[MAPS];
  u32 row[2][SPLIT]; // of the split that is being copied: where its keys and values are, in 16 bytes up to 64 GiB
};

#include "attn_bytes_ring.cuh"

template <int N> __device__ __forceinline__ void load(u32* to, const void* from) {
  if (N == 16) {
    const uint4 x = *(const uint4*)from;
    to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
  } else if (N == 8) {
    const uint2 x = *(const uint2*)from;
    to[0] = x.x, to[1] = x.y;
  } else {
    to[0] = *(const u32*)from;
  }
}

// What a vector is multiplied by, from its largest magnitude; 0 for a NaN, which the products' factor brings back.
__device__ __forceinline__ float factorOf(float most) { return most > 0.f ? __fdividef(MOST, most) : 0.f; }

// x rounded to the nearest integer, |x| < 2^22.
__device__ __forceinline__ int nearest(float x) { return (int)(__float_as_uint(x + 12582912.f) - 0x4b400000u); }

// Element e of a pair of columns.
__device__ __forceinline__ void keepPair(byte* high, byte* low, int e, int n) {
  const int rest = (signed char)(n & 255);
  high[e] = (byte)((n - rest) >> 8), low[e] = (byte)rest;
}

// The largest of both, over the warp.
template <typename T> __device__ __forceinline__ void largest(T (&x)[MAPS]) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1)
#pragma unroll
    for (int i = 0; i < MAPS; i++) {
      const T y = __shfl_xor_sync(0xffffffffu, x[i], o);
      x[i] = y > x[i] ? y : x[i];
    }
}
template <typename T> __device__ __forceinline__ void total(T (&x)[MAPS]) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1)
#pragma unroll
    for (int i = 0; i < MAPS; i++) x[i] += __shfl_xor_sync(0xffffffffu, x[i], o);
}

// The query vectors as operands. factor is what the products' scores are multiplied by, bias what their sums begin
// with. The largest magnitude is that of the bits, so that of a vector with a NaN is one, and the scores are.
__device__ __forceinline__ void keepQuery(Room& r, const bf16* q, float scale) {
  const int lane = threadIdx.x & 31;
  float x[MAPS][HEAD / 32];
  int top[MAPS] = {}, sum[MAPS] = {};
#pragma unroll
  for (int i = 0; i < MAPS; i++)
#pragma unroll
    for (int j = 0; j < HEAD / 32; j++) {
      x[i][j] = toFloat(q[i * HEAD + lane + 32 * j]);
      top[i] = max(top[i], __float_as_int(fabsf(x[i][j])));
    }
  largest(top);
#pragma unroll
  for (int i = 0; i < MAPS; i++) {
    const float most = __int_as_float(top[i]), f = factorOf(most);
#pragma unroll
    for (int j = 0; j < HEAD / 32; j++) {
      const int n = nearest(x[i][j] * f);
      sum[i] += n;
      keepPair(r.query[i][0], r.query[i][1], lane + 32 * j, n);
    }
    if (lane == 0) r.factor[i] = scale * (most * (1.f / MOST));
  }
  total(sum);
  if (lane < MAPS) r.bias[lane] = -128 * (lane == 0 ? sum[0] : sum[1]);
}

// A query of both maps as the narrow side of S's products, of which a step takes 64 bytes of 8 keys: columns 0, 1 are
// the high and low bytes of map 0 that meet words 0 and 2 of a lane's 16, columns 2, 3 those that meet words 1 and 3,
// and columns 4 to 7 are the same of map 1. What belongs to the other map is 0.
struct Query {
  u32 word[K_STEPS][2];
  __device__ __forceinline__ void load(const Room& r) {
    const int lane = threadIdx.x & 31, column = lane >> 2, t = lane & 3, map = column >> 2;
    const byte* from = r.query[map][column & 1] - map * HEAD;
#pragma unroll
    for (int u = 0; u < K_STEPS; u++)
#pragma unroll
      for (int w = 0; w < 2; w++) {
        const int at = 64 * u + 16 * t + 8 * w + 4 * (column >> 1 & 1);
        word[u][w] = at / HEAD == map ? *(const u32*)(from + at) : 0;
      }
  }
};

// The scores of a stage's keys, those of j and on. A lane has the sums of map t/2 for two words of four: even lanes
// finish the first of two groups of 8 keys, odd ones the second.
__device__ __forceinline__ void scores(Scores& to, const Room& r, const Query& q, const byte* stage, int j) {
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, map = t >> 1, odd = t & 1;
  const int bias = r.bias[map];
  const float factor = r.factor[map];
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    int z[2][4] = {}, sum[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
#pragma unroll
      for (int u = 0; u < K_STEPS; u++) {
        const uint4 x = *(const uint4*)(stage + (8 * (i + h) + g) * K_PITCH + 64 * u + 16 * t);
        const u32 y[4] = {x.x, x.y, x.z, x.w};
        mma16832(z[h], y, q.word[u]);
      }
      sum[h] = odd ? 256 * z[h][2] + z[h][3] : 256 * z[h][0] + z[h][1];
    }
    const int other = __shfl_xor_sync(0xffffffffu, odd ? sum[0] : sum[1], 1), key = 8 * (i + odd) + g;
    const float scale = *(const float*)(stage + SCALES + 16 * key + 4 * map);
    to.score[map][j + key] = (float)((odd ? sum[1] : sum[0]) + other + bias) * factor * scale;
  }
  to.scaleV[j + lane] = *(const float*)(stage + SCALES + 16 * lane + 8);
}

// Where P of a key is stored.
__device__ __forceinline__ int place(int key) { return (key & ~15) + 4 * (key & 3) + (key >> 2 & 3); }

constexpr int ALL = -1; // stages

// What a sum over values is multiplied by, and what is added to it before.
struct Unit {
  float factor;
  int bias;
};

// The scores become exp2(s − m), times the value's scale, as an operand; m and l go to stats. Like a query's, the
// largest magnitude is that of the bits: a value that is not finite counts even where exp2(s − m) is 0. Where the
// scores are a block's (from), each of its warps does this, and keeps the operand of one stage (only) for itself.
__device__ __forceinline__ void softmax(Unit (&unit)[MAPS], Scores& to, const Scores& from, int only, int count,
                                        float* stats) {
  const int lane = threadIdx.x & 31;
  float x[MAPS][PER], top[MAPS] = {LOWEST, LOWEST}, sum[MAPS] = {};
  int tall[MAPS] = {}, all[MAPS] = {};
#pragma unroll
  for (int i = 0; i < MAPS; i++)
#pragma unroll
    for (int j = 0; j < PER; j++) {
      x[i][j] = lane + 32 * j < count ? from.score[i][lane + 32 * j] : LOWEST;
      top[i] = fmaxf(top[i], x[i][j]);
    }
  largest(top);
#pragma unroll
  for (int i = 0; i < MAPS; i++)
#pragma unroll
    for (int j = 0; j < PER; j++) {
      x[i][j] = ex2(x[i][j] - top[i]);
      sum[i] += x[i][j];
      if (lane + 32 * j < count) x[i][j] *= from.scaleV[lane + 32 * j];
      tall[i] = max(tall[i], __float_as_int(fabsf(x[i][j])));
    }
  total(sum), largest(tall);
  __syncwarp(); // the scores have been read
#pragma unroll
  for (int i = 0; i < MAPS; i++) {
    const float most = __int_as_float(tall[i]), f = factorOf(most);
#pragma unroll
    for (int j = 0; j < PER; j++) {
      const int n = nearest(x[i][j] * f);
      all[i] += n;
      if (only == ALL || only == j) keepPair(to.p(i, 0), to.p(i, 1), place(lane) + 32 * j, n);
    }
    if (lane == 0 && only <= 0) *(float2*)(stats + 2 * i) = {top[i], sum[i]};
    unit[i].factor = most * (1.f / MOST);
  }
  total(all);
#pragma unroll
  for (int i = 0; i < MAPS; i++) unit[i].bias = -128 * all[i];
}

// Four words of four bytes, transposed.
__device__ __forceinline__ void transpose(u32 (&y)[4], u32 a, u32 b, u32 c, u32 d) {
  const u32 low0 = __byte_perm(a, b, 0x5140), low1 = __byte_perm(c, d, 0x5140), high0 = __byte_perm(a, b, 0x7362),
      high1 = __byte_perm(c, d, 0x7362);
  y[0] = __byte_perm(low0, low1, 0x5410), y[1] = __byte_perm(low0, low1, 0x7632);
  y[2] = __byte_perm(high0, high1, 0x5410), y[3] = __byte_perm(high0, high1, 0x7632);
}

// Adds a stage of V to the sums: tile m has columns 2m and 2m + 1 of the lane. p has a lane's words of P.
__device__ __forceinline__ void addValues(int (&sum)[COLUMNS / 2][4], const byte* stage, const u32* p) {
  const int lane = threadIdx.x & 31, t = lane & 3;
  u32 v[2][4][COLUMNS / 4];
#pragma unroll
  for (int i = 0; i < 8; i++) load<COLUMNS>(v[i / 4][i % 4], stage + (16 * (i / 4) + 4 * (i % 4) + t) * V_PITCH);
#pragma unroll
  for (int w = 0; w < COLUMNS / 4; w++) {
    u32 y[2][4]; // by column
#pragma unroll
    for (int i = 0; i < 2; i++) transpose(y[i], v[i][0][w], v[i][1][w], v[i][2][w], v[i][3][w]);
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const u32 z[4] = {y[0][2 * i], y[0][2 * i + 1], y[1][2 * i], y[1][2 * i + 1]};
      mma16832(sum[2 * w + i], z, p);
    }
  }
}

// The same for all columns, and the words of stage i of P.
__device__ __forceinline__ void addStage(int (&sum)[CHUNKS][COLUMNS / 2][4], Scores& s, const byte* stage, int i) {
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  u32 p[2];
  const byte* from = s.p(g >> 1 & 1, g & 1) + 32 * i + 4 * t;
  load<4>(p, from), load<4>(p + 1, from + 16);
#pragma unroll
  for (int c = 0; c < CHUNKS; c++) addValues(sum[c], stage + COLUMNS * (8 * c + g), p);
}

// Map t's sums of a tile: columns 2m and 2m + 1 of the lane's in chunk c.
__device__ __forceinline__ void store(float* to, int c, int m, const int* z, const Unit& unit) {
  const int g = (threadIdx.x & 31) >> 2;
  *(float2*)(to + COLUMNS * (8 * c + g) + 2 * m) = {(float)(256 * z[0] + z[1] + unit.bias) * unit.factor,
                                                    (float)(256 * z[2] + z[3] + unit.bias) * unit.factor};
}

// An item. slot is that of the oldest stage, which all lanes wait for, read, and leave to the next copy.
__device__ __forceinline__ void attend(Room& r, const Bytes& a, const Item& x, const byte* ring, int& slot,
                                       Ahead& ahead, const bf16* q, float* sums, float* stats, float scale) {
  const int t = threadIdx.x & 3, stages = x.stages();
  const i64 part = (((i64)x.n * a.splits + x.at) * a.H + x.h) * MAPS;
  Unit unit[MAPS] = {};
  int sum[CHUNKS][COLUMNS / 2][4] = {};
  keepQuery(r, q, scale * LOG2E);
  __syncwarp();
  Query query;
  query.load(r);
  for (int i = 0; i < 2 * stages; i++) {
    if (i == stages) softmax(unit, r.own, r.own, ALL, x.count, stats + 2 * part);
    cpWait<STAGES - 1>();
    __syncwarp();
    const byte* stage = ring + slot * STAGE;
    if (i < stages) {
      scores(r.own, r, query, stage, 32 * i);
    } else {
      addStage(sum, r.own, stage, i - stages);
    }
    __syncwarp();
    ahead.copy(r, a);
    slot = slot + 1 == STAGES ? 0 : slot + 1;
  }
  if (t >= MAPS) return;
#pragma unroll
  for (int c = 0; c < CHUNKS; c++)
#pragma unroll
    for (int m = 0; m < COLUMNS / 2; m++)
      store(sums + (part + t) * VALUE, c, m, sum[c][m], t == 0 ? unit[0] : unit[1]);
}

// Grid: as many blocks as there are items for, or as the GPU holds. The order of items has heads, then rows, then
// splits, so that neighbours read adjacent bytes. A dynamic ring for each warp. Where only the rows' newest keys may
// still be in flight (early), a warp whose first split has none of them copies before the wait.
extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
diffattention_bytes(const bf16* q, const byte* k, const byte* v, const int* table, const int* slot, const int* pos,
                    int* fault, float* sums, float* stats, i64 ldq, i64 ldk, i64 ldv, i64 ldt, int H, int N, int splits,
                    float scale, int slots, int pages, int size, int rows, int early) {
  extern __shared__ uint4 cachedShared[];
  __shared__ Room rooms[WARPS];
  beginNext();
  const int warp = threadIdx.x >> 5;
  Room& r = rooms[warp];
  const byte* ring = (const byte*)cachedShared + warp * STAGES * STAGE;
  const Bytes a = {k, v, ldk, ldv, {table, ldt, slots, pages, size, rows}, slot, pos, fault, H, N, splits};
  if (threadIdx.x == 0)
    for (int n = blockIdx.x; n < N; n += gridDim.x)
      if (pos[n] < 0 || pos[n] >= pages * size) report(fault, FAULT_CACHE, pos[n], pages * size);
  Item x = nextItem(a, blockIdx.x * WARPS + warp);
  bool waited = !early || inFlight(a, x.n, x.at * SPLIT, SPLIT);
  if (waited) waitEarlier();
  if (x.at < splits) findRows<PER>(r, a, x, 0);
  Ahead ahead = {x, 0, 0, sharedAddr(ring)};
#pragma unroll 1
  for (int i = 0; i < STAGES; i++) {
    if (!waited && ahead.stage == 2 * x.stages()) waitEarlier(), waited = true;
    ahead.copy(r, a);
  }
  if (!waited) waitEarlier();
  int oldest = 0;
  for (; x.at < splits; x = ahead.item) // the copies are two stages ahead, which an item has
    attend(r, a, x, ring, oldest, ahead, q + x.n * ldq + (i64)x.h * MAPS * HEAD, sums, stats, scale);
  cpWait<0>();
}

#include "attn_bytes_few.cuh"
