// The splits that a warp of diffattention_bytes.cu takes one after the other, and the copies of their keys and values
// into its ring, which run ahead of the products.
struct Bytes {
  const byte *k, *v;
  i64 ldk, ldv;
  Pages cache;
  const int *slot, *pos;
  int* fault;
  int H, N, splits;
};

// A split of a row and head.
struct Item {
  int id, h, n, at, count; // keys
  __device__ __forceinline__ int stages() const { return (count + 31) / 32; } // of K, and of V
};

__device__ __forceinline__ Item itemOf(const Bytes& a, int id) {
  const int rest = id / a.H, n = rest % a.N, at = rest / a.N;
  const int last = at < a.splits ? min(max(a.pos[n], -1), a.splits * SPLIT - 1) : -1;
  return {id, id % a.H, n, at, min(last - at * SPLIT + 1, SPLIT)};
}
// The first of a warp's items from id on that has keys; beyond the last one there is none.
__device__ __forceinline__ Item nextItem(const Bytes& a, int id) {
  Item x = itemOf(a, id);
  while (x.count <= 0 && x.at < a.splits) x = itemOf(a, x.id + gridDim.x * WARPS);
  return x;
}

// Whether the newest key of a row, which the kernel before this one may still write, is among `count` keys of row n's
// slot from first on. Several rows may have one slot.
__device__ __forceinline__ bool inFlight(const Bytes& a, int n, int first, int count) {
  bool found = false;
  for (int i = threadIdx.x & 31; i < a.N; i += 32)
    found |= a.slot[i] == a.slot[n] && a.pos[i] >= first && a.pos[i] < first + count;
  return anyLane(found);
}

// Where the keys of an item's stages from and on are. Those beyond the last repeat it, and a row that does not exist is
// the first. As pageRow, but all pages are loaded before one is used.
template <int COUNT>
__device__ __forceinline__ void findRows(Room& r, const Bytes& a, const Item& x, int from) {
  const int lane = threadIdx.x & 31, slot = a.slot[x.n];
  const Pages& c = a.cache;
  const bool known = slot >= 0 && slot < c.slots;
  const int* table = c.table + (known ? slot * c.ld : 0);
  int key[COUNT], page[COUNT], entry[COUNT];
#pragma unroll
  for (int j = 0; j < COUNT; j++) {
    key[j] = x.at * SPLIT + min(lane + 32 * (from + j), x.count - 1), page[j] = pageOf(c, key[j]);
    entry[j] = table[min(page[j], c.pages - 1)];
  }
  __syncwarp();
#pragma unroll
  for (int j = 0; j < COUNT; j++) {
    const i64 row = (i64)(entry[j] - page[j]) * c.size + key[j];
    const bool there = known && page[j] < c.pages && row >= 0 && row < c.rows;
    if (!there) noPage(c, key[j], a.fault);
    const u32 at = there ? (u32)row : 0;
    r.row[0][lane + 32 * j] = at * (u32)(a.ldk / 16), r.row[1][lane + 32 * j] = at * (u32)(a.ldv / 16);
  }
  __syncwarp();
}

// Copies 32 rows, 16 bytes a lane at a time, of which every WAYS-th is the same piece of another row. All rows are
// known before the first copy is issued.
template <int ROW, int PITCH>
__device__ __forceinline__ void copyRows(u32 to, const byte* from, const u32* row) {
  constexpr int PIECES = ROW / 16, WAYS = 32 % PIECES == 0 || PIECES % 32 == 0 ? 1 : 3, STEP = 32 * WAYS / PIECES;
  static_assert(ROW % 16 == 0 && PIECES % WAYS == 0 && 32 * WAYS % PIECES == 0, "rows repeat after WAYS copies");
  const int lane = threadIdx.x & 31;
  u32 at[PIECES];
#pragma unroll
  for (int i = 0; i < PIECES; i++) at[i] = row[(lane + i % WAYS * 32) / PIECES + i / WAYS * STEP];
#pragma unroll
  for (int w = 0; w < WAYS; w++) {
    const int p = lane + 32 * w, piece = p % PIECES * 16;
    const byte* base = fresh(from + piece);
    const u32 dst = to + p / PIECES * PITCH + piece;
#pragma unroll
    for (int i = 0; i < PIECES / WAYS; i++) cpAsync16(dst + i * STEP * PITCH, base + (u64)at[i * WAYS + w] * 16);
  }
}

// Copies a stage of an item, K's first, of which there are `keys`.
__device__ __forceinline__ void copyStage(const Room& r, const Bytes& a, u32 to, const Item& x, int stage, int keys) {
  const int values = stage - keys;
  if (values >= 0) {
    copyRows<V_ROW, V_PITCH>(to, a.v + x.h * VALUE, r.row[1] + 32 * values);
    return;
  }
  copyRows<K_ROW, K_PITCH>(to, a.k + x.h * MAPS * HEAD, r.row[0] + 32 * stage);
  // The scales follow a row's bytes.
  const int lane = threadIdx.x & 31, endK = a.H * MAPS * HEAD, endV = a.H * VALUE;
  const u32 scales = to + SCALES + 16 * lane;
  const u64 atK = r.row[0][32 * stage + lane], atV = r.row[1][32 * stage + lane];
  cpAsyncFew<4 * MAPS>(scales, a.k + endK + 4 * MAPS * x.h + atK * 16);
  cpAsyncFew<4>(scales + 8, a.v + endV + 4 * x.h + atV * 16);
}

// The copies run ahead: of item, stage is the next.
struct Ahead {
  Item item;
  int stage, slot;
  u32 ring;
  // The next copy, as a group, which is empty if there is nothing left.
  __device__ __forceinline__ void copy(Room& r, const Bytes& a) {
    if (item.at < a.splits && stage == 2 * item.stages()) {
      item = nextItem(a, item.id + gridDim.x * WARPS), stage = 0;
      if (item.at < a.splits) findRows<PER>(r, a, item, 0);
    }
    if (item.at < a.splits) copyStage(r, a, ring + slot * STAGE, item, stage++, item.stages());
    slot = slot + 1 == STAGES ? 0 : slot + 1;
    cpCommit();
  }
};
