// kernels/hopper.cuh and kernels/wgmma.cuh for a CPU, see ptx.cuh beside this. Written from the PTX ISA and the
// driver's documentation, not from the kernels: descriptors are decoded bit by bit, swizzles are functions of the
// address.
//
// What the hardware does at some later time happens here at the worst time. A copy's destination is poisoned when it is
// asked for and filled when a thread waits for its barrier. A product reads its operands when it is issued and must
// find them unchanged when it is waited for; until then its accumulators hold NaN. Shared memory that a thread has
// written may not be read by wgmma before that thread's proxy fence. Every broken rule ends the program with a message.
#include "attn_ptx.cuh"
#define __grid_constant__
#ifndef INDIRECT
#define INDIRECT 0
#endif

// As cu.Tiles, filled by the emulator's TensorMap (emulate_hopper_test.go).
struct __align__(128) TensorMap {
  u64 magic, address, dims[4], strides[3], box[4];
  u64 unused[3];
};
static_assert(sizeof(TensorMap) == 128, "a tensor map has 128 bytes");

namespace emu {
constexpr u32 BASE = 1024;  // where dynamic shared memory begins: the first kilobyte belongs to the system
struct Load {
  u32 bar, dst, bytes;
  const TensorMap* map;
  int at[4];
  const char* src;
};
static List<Load> loads;
static unsigned short writer[sizeof dynamic / 16];  // the thread + 1 whose write to these 16 bytes is not fenced

// An mbarrier as it lies in shared memory.
struct Phase {
  u64 phase : 1, count : 20, pending : 20, magic : 2;
  i64 bytes : 21;
};
static Phase& phaseOf(u32 bar) {
  Phase& b = *(Phase*)sharedPtr(bar, 8);
  if (b.magic != 2 || b.count == 0) die("an mbarrier that was not initialised");
  return b;
}
static void turn(Phase& b) {
  if (b.pending == 0 && b.bytes == 0) b.phase ^= 1, b.pending = b.count;
}

static u32 swizzle(u32 at, int mode) {  // mode as in a descriptor: 1 is 128 bytes, 2 is 64, 3 is 32
  const u32 mask[4] = {0, 0x70, 0x30, 0x10};
  return at ^ ((at >> 3) & mask[mode]);
}

// Calls f(shared address, global address or 0 outside the tensor) for each 16 bytes of a box.
template <typename F> static void eachChunk(const Load& l, F f) {
  const TensorMap& m = *l.map;
  const int mode = m.box[0] == 64 ? 1 : 2;
  u32 at = l.dst;
  for (u64 i3 = 0; i3 < m.box[3]; i3++)
    for (u64 i2 = 0; i2 < m.box[2]; i2++)
      for (u64 i1 = 0; i1 < m.box[1]; i1++)
        for (u64 i0 = 0; i0 < m.box[0]; i0 += 8, at += 16) {
          const i64 x[4] = {l.at[0] + (i64)i0, l.at[1] + (i64)i1, l.at[2] + (i64)i2, l.at[3] + (i64)i3};
          bool in = true;
          for (int i = 0; i < 4; i++) in &= x[i] >= 0 && x[i] < (i64)m.dims[i];
          const char* from =
              (const char*)(m.address + x[0] * 2 + x[1] * m.strides[0] + x[2] * m.strides[1] + x[3] * m.strides[2]);
          f(swizzle(at, mode), in ? from : nullptr);
        }
}

// One copy of a barrier arrives: the first or the last, as the launch will have it.
static bool land(u32 bar) {
  int found = -1;
  for (int i = 0; i < loads.size(); i++)
    if (loads[i].bar == bar && (found < 0 || launches & 1)) found = i;
  if (found < 0) return false;
  const Load l = loads[found];
  loads.erase(found);
  if (l.map)
    eachChunk(l, [](u32 at, const char* from) {
      if (from) memcpy(sharedPtr(at, 16), from, 16);
      else memset(sharedPtr(at, 16), 0, 16);
    });
  else memcpy(sharedPtr(l.dst, 16), l.src, l.bytes);
  Phase& b = phaseOf(bar);
  b.bytes -= l.bytes;
  turn(b);
  return true;
}

static bool passed(u32 bar, u32 parity) { return phaseOf(bar).phase != parity; }
static bool hopperPhases(int group, bool alone) {
  bool some = false;
  for (int i = 0; i < count; i++)
    if (fibers[i].state == PHASE && (i / 128 == group) == alone) {
      if (!passed(fibers[i].bar, fibers[i].phase)) some |= land(fibers[i].bar);
      if (passed(fibers[i].bar, fibers[i].phase)) fibers[i].state = READY, some = true;
    }
  return some;
}

// A product in flight.
struct Product {
  float* d;
  int size, group;
  float value[128];
};
struct Operand {
  const u32* at;
  u32 was[4];
  int group;
};
struct Region {
  u64 descriptor;
  int extent, flip;
  u64 hash;
  int group;
};
struct Mma {
  int group;
  bool fenced;
  List<Product> products;
  List<Operand> operands;
  List<Region> regions;
  void reset() {
    group = 0, fenced = false;
    products.clear(), operands.clear(), regions.clear();
  }
};
static Mma mma[1024];
static bool bulkLeft();

static void hopperBegin() {
  if (!loads.empty()) die("copies that nobody waited for");
  memset(writer, 0, sizeof writer);
  for (int i = 0; i < count; i++) mma[i].reset();
}
static void hopperEnd() {
  if (!mma[current].products.empty()) die("a thread that ends with products in flight");
  if (bulkLeft()) die("a thread that ends with bulk copies in flight");
}
static void hopperWrote(u32 at) { writer[at / 16] = (unsigned short)(current + 1); }
struct Hooks {
  Hooks() { releasePhases = hopperPhases, beginBlock = hopperBegin, endThread = hopperEnd, wrote = hopperWrote; }
};
static Hooks hooks;

// An operand in shared memory, by its descriptor. flip: i is contiguous ("MN-major").
struct Tile {
  u32 start, lead, stride;
  int mode, units;  // of 16 bytes in a row
  bool flip;
  Tile(u64 desc, bool flip)
      : start((u32)(desc & 0x3fff) << 4), lead((u32)(desc >> 16 & 0x3fff) << 4),
          stride((u32)(desc >> 32 & 0x3fff) << 4),
        mode((int)(desc >> 62)), units(mode == 0 ? 1 : 16 >> mode), flip(flip) {
    if (desc >> 49 & 7) die("a descriptor with a base offset");
  }
  // The address of element (i, k): i along M or N, k along the sum.
  u32 at(int i, int k) const {
    u32 at = start;
    if (flip) {
      const int u = i / 8;
      at += mode == 0 ? u * stride + k / 8 * lead + k % 8 * 16
                      : u % units * 16 + u / units * lead + k % 8 * units * 16 + k / 8 * stride;
      at += i % 8 * 2;
    } else {
      at += i % 8 * units * 16 + i / 8 * stride + (mode == 0 ? k / 8 * lead : k / 8 * 16) + k % 8 * 2;
    }
    return swizzle(at, mode);
  }
  // Elements (i, 0) to (i, 15). A swizzle moves 16 bytes as one, so that of those that lie together one address is
  // enough.
  void row(int i, float* out) const {
    for (int k = 0, run = flip ? 1 : 8; k < 16; k += run) {
      const u32 from = at(i, k);
      if (from + 2 * run > sizeof dynamic) die("an operand outside shared memory");
      if (writer[from / 16]) die("wgmma reads what a thread wrote without a proxy fence");
      for (int j = 0; j < run; j++) out[k + j] = __uint_as_float((u32) * (bf16*)(dynamic + from + 2 * j) << 16);
    }
  }
};
static u64 hashOf(u64 desc, int extent, bool flip) {
  const Tile tile(desc, flip);
  u64 h = 1469598103934665603ull;
  for (int i = 0; i < extent; i++)
    for (int k = 0; k < 16; k += flip ? 1 : 2)
      h = (h ^ *(bf16*)(dynamic + tile.at(i, k))) * 1099511628211ull;
  return h;
}

static int groupWarp() { return current >> 5 & 3; }

// value (+)= A·B for the thread's elements; row(x, i) gives the thread's rows of A.
template <typename A> static void multiply(float* d, int n, A row, u64 b, bool flipB, bool add) {
  if (n > 256) die("a product wider than 256");
  Mma& m = mma[current];
  if (!m.fenced) die("a product without wgmma.fence");
  Product* p = nullptr;
  for (auto& x : m.products)
    if (x.d == d) p = &x;
  if (!p) {
    m.products.resize(m.products.size() + 1);
    p = m.products.end() - 1;
    p->d = d, p->size = n / 2;
    memcpy(p->value, d, n / 2 * sizeof(float));
    memset(d, 0xff, n / 2 * sizeof(float));
  }
  p->group = m.group;
  const int t = lane() & 3;
  const Tile tile(b, flipB);
  float a[2][16], x[16];
  row(a[0], 0), row(a[1], 1);
  for (int j = 0; j < n / 8; j++)
    for (int c = 0; c < 2; c++) {
      double sum[2] = {0, 0};
      tile.row(8 * j + 2 * t + c, x);
      for (int k = 0; k < 16; k++) sum[0] += (double)a[0][k] * x[k], sum[1] += (double)a[1][k] * x[k];
      for (int i = 0; i < 2; i++) {
        float& v = p->value[4 * j + 2 * i + c];
        v = (float)((add ? v : 0.) + sum[i]);
      }
    }
  if (lane() == 0) m.regions.push({b, n, flipB, hashOf(b, n, flipB), m.group});
}
}  // namespace emu

template <int TA, int TB, int M> static void wgmmaSS(float (&d)[M], u64 a, u64 b, int add) {
  const int row = 16 * emu::groupWarp() + (emu::lane() >> 2);
  emu::yield(emu::WARP);  // the warp acts as one
  const emu::Tile tile(a, TA);
  emu::multiply(d, 2 * M, [&](float* x, int i) { tile.row(row + 8 * i, x); }, b, TB, add);
  if (emu::lane() == 0)
    emu::mma[emu::current].regions.push({a, 64, TA, emu::hashOf(a, 64, TA), emu::mma[emu::current].group});
}
template <int TB, int M> static void wgmmaRS(float (&d)[M], const u32 (&a)[4], u64 b, int add) {
  const emu::Slot& s = emu::share(a, 4);
  emu::Mma& m = emu::mma[emu::current];
  const int quad = emu::lane() & ~3;
  auto row = [&](float* x, int i) {  // a0 (g,2t) a1 (g+8,2t) a2 (g,2t+8) a3 (g+8,2t+8)
    for (int w = 0; w < 8; w++) {
      const u32 two = s.v[quad + w % 4][i + w / 4 * 2];
      x[2 * w] = __uint_as_float(two << 16), x[2 * w + 1] = __uint_as_float(two & 0xffff0000u);
    }
  };
  emu::multiply(d, 2 * M, row, b, TB, add);
  m.operands.push({a, {a[0], a[1], a[2], a[3]}, m.group});
}
static void mmaFence() { emu::mma[emu::current].fenced = true; }
static void mmaCommit() { emu::mma[emu::current].group++; }
template <int N> static void mmaWait() {
  emu::Mma& m = emu::mma[emu::current];
  auto done = [&](int group) { return group < m.group - N; };
  m.fenced = false;
  auto finish = [&](auto& all, auto end) {
    int kept = 0;
    for (int i = 0; i < all.size(); i++) {
      if (done(all[i].group)) end(all[i]);
      else if (kept++ != i) all[kept - 1] = all[i];
    }
    all.resize(kept);
  };
  finish(m.regions, [](emu::Region& r) {
    if (emu::hashOf(r.descriptor, r.extent, r.flip) != r.hash) emu::die("an operand of wgmma that changed in flight");
  });
  finish(m.operands, [](emu::Operand& o) {
    if (memcmp(o.at, o.was, 16)) emu::die("a register operand of wgmma that changed in flight");
  });
  finish(m.products, [](emu::Product& p) {
    for (int i = 0; i < p.size; i++)
      if (__float_as_uint(p.d[i]) != 0xffffffffu) emu::die("an accumulator of wgmma that was written in flight");
    memcpy(p.d, p.value, p.size * sizeof(float));
  });
}
template <typename T> static void pin(T&) {}

static u32 sharedTiles() { return emu::BASE; }
static void barInit(u32 bar, int count) {
  if (count < 1 || count >= 1 << 20) emu::die("an mbarrier of so many arrivals");
  *(emu::Phase*)sharedPtr(bar, 8) = emu::Phase{0, (u64)count, (u64)count, 2, 0};
}
static void barInitDone() {}
static void barArrive(u32 bar) {
  emu::Phase& b = emu::phaseOf(bar);
  if (b.pending == 0) emu::die("an arrival too many at an mbarrier");
  b.pending--;
  emu::turn(b);
}
static void barExpect(u32 bar, int bytes) {
  emu::phaseOf(bar).bytes += bytes;
  barArrive(bar);
}
static void barWait(u32 bar, int parity) {
  if (parity != 0 && parity != 1) emu::die("a parity that is neither 0 nor 1");
  if (emu::passed(bar, parity)) return;
  emu::fibers[emu::current].bar = bar;
  emu::fibers[emu::current].phase = parity;
  emu::yield(emu::PHASE);
}
static void barWaitWarp(u32 bar, int parity) {
  barWait(bar, parity);
  __syncwarp();
}
static void tmaLoad(u32 dst, const TensorMap* map, int c0, int c1, int c2, int c3, u32 bar) {
  if ((u64)map % 128) emu::die("a tensor map that is not on 128 bytes");
  if (map->magic != 0x70616d726f736e65ull) emu::die("a tensor map that the driver did not fill");
  if (dst % (map->box[0] == 64 ? 1024 : 512)) emu::die("a swizzled tile that does not begin on its pattern");
  const u32 bytes = (u32)(map->box[0] * map->box[1] * map->box[2] * map->box[3] * 2);
  emu::Load l = {bar, dst, bytes, map, {c0, c1, c2, c3}, nullptr};
  emu::eachChunk(l, [](u32 at, const char*) { memset(sharedPtr(at, 16), 0xff, 16); });
  emu::loads.push(l);
}
static void bulkLoad(u32 dst, const void* src, int bytes, u32 bar) {
  if (bytes % 16 || (u64)src % 16) emu::die("a bulk copy that is not on 16 bytes");
  memset(sharedPtr(dst, 16), 0xff, bytes);
  emu::loads.push({bar, dst, (u32)bytes, nullptr, {}, (const char*)src});
}
namespace emu {
// A bulk copy to memory: its source is read when it is asked for and must not change before bulkWaitRead; memory has it
// at bulkWait.
struct Stored {
  int thread;
  float* dst;
  u32 src;
  int bytes;
  float* value;
  bool add, committed, read;
};
static List<Stored> stored;
static void bulkOut(float* dst, u32 src, int bytes, bool add) {
  if (bytes % 16 || (u64)dst % 16) die("a bulk copy that is not on 16 bytes");
  const float* from = (const float*)sharedPtr(src, 16);
  for (int i = 0; i < bytes; i += 16)
    if (writer[(src + i) / 16]) die("a bulk copy of what a thread wrote without a proxy fence");
  stored.push({current, dst, src, bytes, (float*)memcpy(malloc(bytes), from, bytes), add, false, false});
}
static void bulkDone(bool memory) {
  int kept = 0;
  for (auto& s : stored) {
    if (s.thread == current && s.committed && !s.read) {
      if (memcmp(sharedPtr(s.src, 16), s.value, s.bytes)) die("the source of a bulk copy that changed in flight");
      s.read = true;
    }
    if (s.thread != current || !s.committed || !memory) {
      stored[kept++] = s;
      continue;
    }
    for (int i = 0; i < s.bytes / 4; i++) s.dst[i] = s.add ? s.dst[i] + s.value[i] : s.value[i];
    free(s.value);
  }
  stored.resize(kept);
}
static bool bulkLeft() {
  for (auto& s : stored)
    if (s.thread == current) return true;
  return false;
}
}  // namespace emu
static void bulkStore(float* dst, u32 src, int bytes) { emu::bulkOut(dst, src, bytes, false); }
static void bulkAdd(float* dst, u32 src, int bytes) { emu::bulkOut(dst, src, bytes, true); }
static void bulkCommit() {
  for (auto& s : emu::stored)
    if (s.thread == emu::current) s.committed = true;
}
static void bulkWaitRead() { emu::bulkDone(false); }
static void bulkWait() { emu::bulkDone(true); }
static void proxyFenceGlobal() {}
static void tmaPrefetch(const TensorMap*) {}
static void proxyFence() {
  for (auto& w : emu::writer)
    if (w == emu::current + 1) w = 0;
}
template <int R> static void registersDown() {
  static_assert(R >= 24 && R <= 256 && R % 8 == 0, "setmaxnreg takes no such number");
}
template <int R> static void registersUp() {
  static_assert(R >= 24 && R <= 256 && R % 8 == 0, "setmaxnreg takes no such number");
}
static int warpgroup() { return (int)threadIdx.x >> 7; }
static void barrierArrive(int id, int threads) { emu::arrive(id, threads); }
static void stmatrix4(u32 at, const u32* x) {
  u32 w[5] = {x[0], x[1], x[2], x[3], at};
  const emu::Slot& s = emu::share(w, 5);
  for (int i = 0; i < 4; i++) {  // row g of matrix i takes 4 bytes of each of its four lanes
    const u32 row = s.v[i * 8 + (emu::lane() >> 2)][4];
    ((u32*)sharedPtr(row, 16))[emu::lane() & 3] = x[i];
    emu::hopperWrote(row);
  }
}
static float2 ldShared2(u32 at) {
  float2 x;
  memcpy(&x, sharedPtr(at, 8), 8);
  return x;
}
