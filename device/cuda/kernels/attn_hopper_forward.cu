// Causal attention forward on Hopper's wgmma and copy engine, one map (MAPS 1) or the difference of two (MAPS 2):
//
//   A_i = softmax(Scale·Q_i·K_iᵀ),  raw = A_1·V  or  (A_1 − λ·A_2)·V,  out = HeadNorm(raw).
//
// Built for one shape by attn_hopper.go, which holds the table of tiles and checks SHARED against the layout below.
// A block owns ROWS query rows of one head. Its first warpgroup is the producer: one thread loads Q once, then tiles of
// BN keys, K and V in rings of two slots each, from the diagonal down. The others are consumers, each with 64 rows and
// PER maps: with PER = MAPS warpgroup w has rows 64w…, with PER 1 of two maps warpgroup w has map w of the same 64
// rows, and the last step subtracts through shared memory.
//
// Blocks of a sequence and head are started longest first, those of the last `last` heads and sequences together by
// length, so that no long block is left when the others end. LOOP: as many blocks as SMs, each of which takes one place
// after the other from a ticket: the next place's loads run under the stores of the one before.
//
// PAGED: queries are chunks of prompts, keys and values lie in the pages of a cache. A chunk {first row, end, past,
// slot} holds positions past, past + 1, … of a slot; a block is (query tile, head, chunk), and the producer's warp
// loads a tile whole where its pages are neighbours in the cache, and else page by page, one box of `page` rows for
// each panel. In the tile in which the sequence ends, the rows after its end, which may hold anything, become zeros
// (clearEnd): their weights are 0, but 0 times infinity or NaN is NaN.
//
// A consumer walks over items (tile, map). While the tensor cores form S of item n and then add P(n−1)·V, its threads
// take the exponentials of item n: the softmax of one item runs beside the P·V of the item before, be that the other
// map's or the last tile's. The running maximum is raised only when it grows by 2^8 or more, so accumulators are almost
// never rescaled.
//
// Registers of a consumer thread: O takes PER·DV/2, S BN/2, P BN/4; the table keeps the sum under 216 of 240 (144 of
// 160). Bound per tile of ROWS × BN, in cycles of the SM: ROWS·BN·MAPS·(D + DV)/2048 of wgmma, ROWS·BN·MAPS/16 of ex2.
#include "attn_tile.cuh"
#include "hopper_tile.cuh"
#include "hopper_args.cuh"
#include "hopper_order.cuh"

constexpr int D = HEAD, DV = VALUE, THREADS = 128 * (1 + WGS), ROWS = 64 * WGS * PER / MAPS, STAGES = 2;
constexpr float RAISE = 8.f;
typedef TileOf<ROWS, D> TileQ;
typedef TileOf<BN, D> TileK;
typedef TileOf<BN, DV> TileV;

// Shared memory: Q of each map, the rings of K (KEYS tiles a slot) and V, the barriers; with LOOP that of a free Q and
// the ring of tickets, with PAGED that of clearEnd.
constexpr int AT_K = MAPS * TileQ::BYTES, AT_V = AT_K + STAGES * KEYS * TileK::BYTES,
              AT_BAR = AT_V + STAGES * TileV::BYTES;
constexpr int BARRIERS = 1 + 4 * STAGES, AT_FREE = AT_BAR + BARRIERS * 8, AT_END = AT_FREE,
              AT_TICKETS = AT_FREE + (LOOP || PAGED) * 8;
static_assert(AT_TICKETS + LOOP * TICKETS == SHARED, "attn_hopper.go counts shared memory differently");
static_assert(!LOOP || (MAPS == PER && !PAGED), "the next tile of K may lie where O2 passes");
static_assert(MAPS == PER || 64 * DV * 4 <= STAGES * KEYS * TileK::BYTES, "O2 passes through the ring of K");
enum { MAP2_DONE = 1, MAP2_READY = 2, TURN = 3 }; // named barriers; TURN + w is warpgroup w's turn to multiply

typedef Ring<STAGES, KEYS * TileK::BYTES> RingK;
typedef Ring<STAGES, TileV::BYTES> RingV;

// A block's position: its sequence's rows n0…n0+rows−1, of which m0… are its own, after `past` positions; and the key
// tiles they see, last…from.
struct Place {
  int m0, h, b, last, from, rows, past, slot;
  i64 n0;
};
__device__ __forceinline__ Place placeOf(const HopperForward& p, int block) {
  Place at;
  const Turn turn = turnOfBlock(block, PAGED ? (int)gridDim.x : (p.t + ROWS - 1) / ROWS, p.items, p.last);
  at.h = turn.item % p.heads, at.b = turn.item / p.heads;
  at.rows = p.t, at.past = 0, at.slot = 0;
  at.n0 = (i64)at.b * p.t;
  if (PAGED) {
    const int* chunk = p.chunks + 4 * at.b;
    at.n0 = chunk[0], at.rows = chunk[1] - chunk[0], at.past = chunk[2], at.slot = chunk[3], at.b = 0;
  }
  at.m0 = (turn.of - 1 - turn.tile) * ROWS;  // long rows first
  at.last = (at.past + min(at.m0 + ROWS, at.rows) - 1) / BN;
  at.from = p.start == 0 ? 0 : p.start[at.n0 + at.m0] / BN;
  return at;
}

// The row of the cache from which on the tile of keys that starts at position `key` lies in one piece, or −1: then its
// pages are in disorder, or the sequence ends in it.
__device__ __forceinline__ int wholeAt(const HopperForward& p, const Place& at, int key) {
  const int first = key / p.page, pages = BN / p.page, i = min((int)threadIdx.x, pages - 1);
  if (first + pages > (at.past + at.rows - 1) / p.page + 1) return -1;
  const int page = p.table[at.slot * p.ldtable + first + i], zero = __shfl_sync(0xffffffffu, page, 0);
  return anyLane(page != zero + i) ? -1 : zero * p.page;
}

// A tile of keys or values starting at position `key`, columns starting at panel `first`: whole, at row `whole` of the
// cache if keys are paged, or page by page by all lanes of the warp. Pages after the sequence's last are zeros: boxes
// outside the tensor.
template <typename Tile>
__device__ __forceinline__ void loadTile(const HopperForward& p, const Place& at, u32 dst, const TensorMap* map,
                                         const TensorMap* pageMap, int key, int whole, int first, u32 bar) {
  if (!PAGED || whole >= 0) {
    if (!PAGED || threadIdx.x == 0) tmaLoad(dst, map, 0, PAGED ? whole : key, first, at.b, bar);
    return;
  }
  constexpr int PANELS = Tile::W / Tile::PW;
  const int end = (at.past + at.rows - 1) / p.page;
  for (int i = threadIdx.x; i < BN / p.page * PANELS; i += 32) {
    const int page = key / p.page + i / PANELS;
    const int row = (page > end ? -1 : p.table[at.slot * p.ldtable + page]) * p.page;
    tmaLoad(dst + i % PANELS * Tile::PANEL + i / PANELS * p.page * (2 * Tile::PW), pageMap, 0, row, first + i % PANELS,
            0, bar);
  }
}

// Waits until the slot is free, for all lanes that load, and announces its bytes at a barrier.
template <typename R> __device__ __forceinline__ void openSlot(const R& ring, int n, int bytes, u32 bar) {
  if (!PAGED || threadIdx.x == 0) ring.open(n, bytes, bar);
  if (PAGED) __syncwarp();
}

// The first tile of values of a walk, in which the sequence ends before row `end`: the rest of that row's page becomes
// zeros. The tile comes by a barrier of its own and is handed on when it is clean: consumers see no difference.
__device__ __forceinline__ void clearEnd(const HopperForward& p, const RingV& v, u32 bar, int end) {
  const u32 from = v.tile(0) + end * (TileV::PW * 2), none[4] = {0, 0, 0, 0};
  const int bytes = (p.page - end % p.page) * (TileV::PW * 2); // of a panel: swizzles stay within rows
  barWaitWarp(bar, 0);
#pragma unroll 1
  for (int i = 16 * threadIdx.x; i < bytes; i += 16 * 32)
#pragma unroll
    for (int panel = 0; panel < DV / TileV::PW; panel++) stShared4(from + panel * TileV::PANEL + i, none);
  proxyFence();
  __syncwarp();
  if (threadIdx.x == 0) barArrive(v.fullBar(0));
}

// The producer: one thread, or a warp if keys are paged. n0 is the number of tiles that have gone through the rings.
__device__ __forceinline__ void produce(const HopperForward& p, const Place& at, u32 base, u32 barQ, RingK k, RingV v,
                                        int n0) {
  const int grp = at.h / (p.heads / p.groups);
  if (threadIdx.x == 0) {
    barExpect(barQ, MAPS * TileQ::BYTES);
#pragma unroll
    for (int i = 0; i < MAPS; i++)
      tmaLoad(base + i * TileQ::BYTES, &p.q, 0, (PAGED ? (int)at.n0 : 0) + at.m0, (at.h * MAPS + i) * (D / TileQ::PW),
              at.b, barQ);
  }
  const int end = at.past + at.rows - at.last * BN; // of the sequence, in the first tile
  int before = -1; // where the tile before lies
  for (int n = 0; n <= at.last - at.from + 1; n++) {  // K one tile ahead of V
    const int key = (at.last - n) * BN, whole = PAGED && n <= at.last - at.from ? wholeAt(p, at, key) : -1;
    const int at0 = n0 + n;
    if (n <= at.last - at.from) {
      openSlot(k, at0, KEYS * TileK::BYTES, k.fullBar(at0));
#pragma unroll
      for (int i = 0; i < KEYS; i++)
        loadTile<TileK>(p, at, k.tile(at0) + i * TileK::BYTES, &p.k, &p.pagek, key, whole,
                        (grp * KEYS + i) * (D / TileK::PW), k.fullBar(at0));
    }
    if (n > 0) {
      const bool ends = PAGED && n == 1 && end < BN && end % p.page != 0;
      const u32 bar = ends ? base + AT_END : v.fullBar(at0 - 1);
      openSlot(v, at0 - 1, TileV::BYTES, bar);
      loadTile<TileV>(p, at, v.tile(at0 - 1), &p.v, &p.pagev, key + BN, before, grp * (DV / TileV::PW), bar);
      if (ends) clearEnd(p, v, bar, end);
    }
    before = whole;
  }
}

// The producer of all places that the block takes.
__device__ __forceinline__ void produceAll(const HopperForward& p, u32 base, u32 barQ, const RingK& k, const RingV& v) {
  const int blocks = p.items * ((p.t + ROWS - 1) / ROWS);
  const Tickets tickets = ticketsAt(base + AT_TICKETS);
  int ticket = blockIdx.x, n0 = 0;
  for (int i = 0;; i++) {
    tickets.give(i, ticket);
    if (ticket >= blocks) return;
    const Place at = placeOf(p, ticket);
    barWait(base + AT_FREE, (i & 1) ^ 1);
    produce(p, at, base, barQ, k, v, n0);
    n0 += at.last - at.from + 1;
    const int taken = atomicAdd(p.ticket, 1);
    ticket = gridDim.x + taken;
    if (taken == blocks - 1) *p.ticket = 0; // nobody will ask again: as the next launch wants it
  }
}

// A consumer thread: rows row and row + 8, columns 8j + 2t and the next of every piece j of 8.
struct Thread {
  int wg, lane, t, row, tile;  // tile is the first row of its 64 in Q's tile
  int first[2];  // where the rows' documents begin
};

struct State {
  float s[BN / 2]; // S, then P of the current item
  u32 p[BN / 16][4]; // P of the previous item, packed
  float o[PER][DV / 2], top[PER][2], sum[PER][2];
};

// S outside the causal triangle, or before the row's document, becomes −inf.
__device__ __forceinline__ void mask(float (&s)[BN / 2], const Thread& w, int key) {
#pragma unroll
  for (int i = 0; i < BN / 2; i++) {
    const int half = i >> 1 & 1, at = key + 8 * (i >> 2) + 2 * w.t + (i & 1);
    if (at > w.row + 8 * half || at < w.first[half]) s[i] = -INFINITE;
  }
}

// One item of the online softmax: s becomes P relative to the running maximum; f are the factors of earlier sums.
__device__ __forceinline__ void softmax(float (&s)[BN / 2], float (&top)[2], float (&sum)[2], float (&f)[2], float c) {
#pragma unroll
  for (int half = 0; half < 2; half++) {
    float x = -INFINITE, z = 0.f;
#pragma unroll
    for (int i = 2 * half; i < BN / 2; i += 4) x = fmaxf(x, fmaxf(s[i], s[i + 1]));
    x = rowMax(x) * c;
    const float old = top[half], now = x > old + RAISE ? x : old; // from −inf any x is a raise
    const float base = now == -INFINITE ? 0.f : now;
    f[half] = now == old ? 1.f : ex2(old - base);
#pragma unroll
    for (int i = 2 * half; i < BN / 2; i += 4) {
      s[i] = ex2(fmaf(s[i], c, -base));
      s[i + 1] = ex2(fmaf(s[i + 1], c, -base));
      z += s[i] + s[i + 1];
    }
    top[half] = now;
    sum[half] = sum[half] * f[half] + z;
  }
}

__device__ __forceinline__ void rescale(float (&o)[DV / 2], const float (&f)[2]) {
  if (!anyLane(f[0] != 1.f || f[1] != 1.f)) return;
#pragma unroll
  for (int i = 0; i < DV / 2; i++) o[i] *= f[i >> 1 & 1];
}

// Warpgroups alternate in issuing products, so that one computes exponentials while the other multiplies.
__device__ __forceinline__ void myTurn(const Thread& w) {
  if (ORDER) barrierOf(TURN + w.wg, 256);
}
__device__ __forceinline__ void yourTurn(const Thread& w) {
  if (ORDER) barrierArrive(TURN + 1 - w.wg, 256);
}

// S of map MAP and tile n of the walk.
template <int MAP> __device__ __forceinline__ void scores(State& x, const Thread& w, u32 base, const RingK& k, int n) {
  const int map = PER == MAPS ? MAP : w.wg;
  const u32 keys = k.tile(n) + (KEYS == 2 ? map : 0) * TileK::BYTES;
  rowsByRows<TileQ, TileK>(x.s, base + map * TileQ::BYTES, w.tile, keys, 0);
  mmaCommit();
}

// Item (n, MAP) except the first: S, overlapping P·V of the previous item; then P of this one.
template <int MAP> __device__ __forceinline__ void step(State& x, const Thread& w, u32 base, const RingK& k,
                                                        const RingV& v, int n, int key, int late, float c) {
  constexpr int BEFORE = MAP == 0 ? PER - 1 : MAP - 1;
  const int vn = MAP == 0 ? n - 1 : n;
  if (MAP == 0) k.wait(n);
  myTurn(w);
  mmaFence();
  scores<MAP>(x, w, base, k, n);
  if (BEFORE == 0) v.wait(vn);
  addHeld<TileV>(x.o[BEFORE], x.p, v.tile(vn), 0);
  mmaCommit();
  yourTurn(w);
  mmaWait<1>();
  pin(x.s);
  if (MAP == PER - 1) k.release(n, w.lane);
  if (key + BN - 1 > w.row - (w.lane >> 2) || key < late) mask(x.s, w, key);
  float f[2];
  softmax(x.s, x.top[MAP], x.sum[MAP], f, c);
  mmaWait<0>();
  pin(x.o[BEFORE]);
  if (BEFORE == PER - 1) v.release(vn, w.lane);
  rescale(x.o[MAP], f);
  packAll(x.p, x.s);
}

// The first item, without a P·V to overlap.
__device__ __forceinline__ void start(State& x, const Thread& w, u32 base, const RingK& k, int n, int key, float c) {
  k.wait(n);
  myTurn(w);
  mmaFence();
  scores<0>(x, w, base, k, n);
  yourTurn(w);
  mmaWait<0>();
  pin(x.s);
  if (PER == 1) k.release(n, w.lane);
  mask(x.s, w, key);
  float f[2];
  softmax(x.s, x.top[0], x.sum[0], f, c);
  packAll(x.p, x.s);
}

#include "attn_hopper_finish.cuh"

// The i-th place of the block; n is the number of tiles that have gone through the rings.
__device__ __forceinline__ void attend(const HopperForward& p, const Place& at, int wg, u32 base, u32 barQ,
                                       const RingK& k, const RingV& v, int i, int& n) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & 3;
  Thread w = {wg, lane, lane & 3, 0, PER == MAPS ? 64 * wg : 0, {-at.past, -at.past}};
  const int m = at.m0 + w.tile;
  w.row = m + 16 * warp + (lane >> 2);
  int late = -at.past; // keys before this are outside some row's document; keys count from the sequence's first row
  if (p.start != 0) {
    w.first[0] = p.start[at.n0 + min(w.row, p.t - 1)], w.first[1] = p.start[at.n0 + min(w.row + 8, p.t - 1)];
    late = p.start[at.n0 + min(m + 63, p.t - 1)];
  }
  State x;
#pragma unroll
  for (int i = 0; i < PER; i++) {
    zero(x.o[i]);
    x.top[i][0] = x.top[i][1] = -INFINITE, x.sum[i][0] = x.sum[i][1] = 0.f;
  }
  const float c = p.scale * LOG2E;
  const int end = n + at.last - at.from + 1;
  int key = at.last * BN - at.past;
  for (; key > m + 63; n++, key -= BN) { // beyond this warpgroup's diagonal
    k.wait(n), k.release(n, lane), v.wait(n), v.release(n, lane);
#pragma unroll
    for (int i = 0; i < PER; i++) myTurn(w), yourTurn(w); // one for each of the tile's items
  }
  barWaitWarp(barQ, i & 1);
  start(x, w, base, k, n, key, c);
  if (PER == 2) step<PER - 1>(x, w, base, k, v, n, key, late, c);
  for (n++, key -= BN; n < end; n++, key -= BN) {
    step<0>(x, w, base, k, v, n, key, late, c);
    if (PER == 2) step<PER - 1>(x, w, base, k, v, n, key, late, c);
  }
  if (LOOP && lane == 0) barArrive(base + AT_FREE);
  if (PER == 1) v.wait(n - 1);
  mmaFence();
  addHeld<TileV>(x.o[PER - 1], x.p, v.tile(n - 1), 0);
  mmaCommit();
  mmaWait<0>();
  pin(x.o[PER - 1]);
  if (LOOP) v.release(n - 1, lane);
  finish(p, at, w, x, base);
}

__device__ __forceinline__ void consume(const HopperForward& p, int wg, u32 base, u32 barQ, const RingK& k,
                                        const RingV& v) {
  int n = 0;
  if (ORDER && wg == 1) barrierArrive(TURN, 256);
  if (LOOP) {
    const Tickets tickets = ticketsAt(base + AT_TICKETS);
    const int blocks = p.items * ((p.t + ROWS - 1) / ROWS);
    for (int i = 0;; i++) {
      const int ticket = tickets.take(i);
      if (ticket >= blocks) break;
      attend(p, placeOf(p, ticket), wg, base, barQ, k, v, i, n);
    }
  } else {
    attend(p, placeOf(p, blockOf()), wg, base, barQ, k, v, 0, n);
  }
  if (ORDER && wg == 0) barrierOf(TURN, 256); // the last arrival of the other: a block must end with no arrival pending
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    attn_hopper_forward(const __grid_constant__ HopperForward arg) {
  const HopperForward& p = INDIRECT ? *(const HopperForward*)arg.self : arg;
  const u32 base = sharedTiles(), barQ = base + AT_BAR;
  const RingK k = {base + AT_K, barQ + 8, barQ + 8 + 8 * STAGES};
  const RingV v = {base + AT_V, barQ + 8 + 16 * STAGES, barQ + 8 + 24 * STAGES};
  if (PAGED) {
    const Place at = placeOf(p, blockOf());
    if (at.m0 >= at.rows) return;  // the grid is that of the longest chunk
  }
  if (threadIdx.x == 0) {
    barInit(barQ, 1);
    k.init(4 * WGS), v.init(4 * WGS);
    if (PAGED) barInit(base + AT_END, 1);
    if (LOOP) barInit(base + AT_FREE, 4 * WGS), ticketsAt(base + AT_TICKETS).init(4 * WGS);
    barInitDone();
  }
  __syncthreads();
  const int wg = warpgroup();
  if (wg == 0) {
    registersDown<PRODUCER>();
    if (threadIdx.x == 0) tmaPrefetch(&p.q), tmaPrefetch(&p.k), tmaPrefetch(&p.v);
    if (threadIdx.x < (PAGED ? 32 : 1)) {
      if (LOOP) produceAll(p, base, barQ, k, v);
      else produce(p, placeOf(p, blockOf()), base, barQ, k, v, 0);
    }
  } else {
    registersUp<CONSUMER>();
    consume(p, wg - 1, base, barQ, k, v);
  }
}
