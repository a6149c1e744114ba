// attn_hopper_backward.cu: the query tiles that a block walks over, its tickets, and its producer.
// A block's position: keys n·BN…, group of sequence b, and an iteration over (head, query tile).
struct Walk {
  i64 n0;
  int n, b, group, h, m, from, to;
  bool up;  // earlier keys are added first
  __device__ __forceinline__ bool next(int heads) {
    if (++m <= to) return true;
    m = from;
    return ++h < (group + 1) * heads;
  }
};

// The query tiles that see key tile n: from its diagonal to the last whose first document reaches back to it.
__device__ __forceinline__ Walk findWalk(const HopperBackward& p, int ticket) {
  Walk w;
  const Turn turn = turnOfBlock(ticket, (p.t + BN - 1) / BN, p.items, p.last);
  w.up = turn.together;
  w.n = w.up ? turn.tile : turn.of - 1 - turn.tile;
  w.b = turn.item / p.groups, w.group = turn.item % p.groups;
  w.n0 = (i64)w.b * p.t;
  w.from = w.n * BN / BM, w.to = (p.t - 1) / BM;
  if (p.start != 0)
    for (int lo = w.from, hi = w.to;;) {
      w.to = lo;
      if (lo >= hi) break;
      const int mid = (lo + hi + 1) / 2;
      if (p.start[w.n0 + mid * BM] / BN <= w.n) lo = mid;
      else hi = mid - 1;
    }
  w.h = w.group * (p.heads / p.groups);
  w.m = w.from;
  return w;
}

// The producer's thread; n is the number of tiles that have gone through the rings.
__device__ __forceinline__ void produce(const HopperBackward& p, Walk w, u32 base, u32 barK, const Rings& ring,
                                        int& n) {
  const int heads = p.heads / p.groups, tiles = (p.t + BM - 1) / BM;
  barExpect(barK, KEYS * TileK::BYTES + TileV::BYTES);
#pragma unroll
  for (int i = 0; i < KEYS; i++)
    tmaLoad(base + i * TileK::BYTES, &p.k, 0, w.n * BN, (w.group * KEYS + i) * (D / TileK::PW), w.b, barK);
  tmaLoad(base + AT_V, &p.v, 0, w.n * BN, w.group * (DV / PWV), w.b, barK);
  do {
    const u32 at = ring.q.tile(n), bar = ring.q.fullBar(n);
    ring.q.open(n, STAGE + STATBYTES);
#pragma unroll
    for (int i = 0; i < MAPS; i++)
      tmaLoad(at + i * TileQ::BYTES, &p.q, 0, w.m * BM, (w.h * MAPS + i) * (D / TileQ::PW), w.b, bar);
    const i64 tile = (i64)(w.b * p.heads + w.h) * tiles + w.m;
    bulkLoad(base + AT_STATS + n % STAGES * STATBYTES, p.stats + tile * (BM * ROOM), STATBYTES, bar);
    ring.o.open(n, TileO::BYTES);
    tmaLoad(ring.o.tile(n), &p.o, 0, w.m * BM, w.h * (DV / PWV), w.b, ring.o.fullBar(n));
    n++;
  } while (w.next(heads));
}

// The walks of a block: the one of its ticket, or those of all tickets that it takes. Every warp that follows them has
// its own.
struct Walks {
  int i = -1;
  __device__ __forceinline__ bool next(const HopperBackward& p, u32 base, Walk& w) {
    i++;
    if (!LOOP) {
      if (i == 0) w = findWalk(p, __float_as_int(ldShared(base + AT_TICKET)));
      return i == 0;
    }
    const int ticket = ticketsAt(base + AT_TICKET).take(i);
    if (ticket >= p.items * ((p.t + BN - 1) / BN)) return false;
    w = findWalk(p, ticket);
    return true;
  }
};

// The producer of all walks.
__device__ __forceinline__ void produceAll(const HopperBackward& p, u32 base, u32 barK, const Rings& ring) {
  const int blocks = p.items * ((p.t + BN - 1) / BN);
  int n = 0;
  for (int i = 0;; i++) {
    const int ticket = atomicAdd(p.ticket, 1);
    ticketsAt(base + AT_TICKET).give(i, ticket);
    if (ticket >= blocks) return;
    barWait(base + AT_FREE, (i & 1) ^ 1);
    produce(p, findWalk(p, ticket), base, barK, ring, n);
  }
}
