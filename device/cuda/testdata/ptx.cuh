// kernels/ptx.cuh for a CPU: a kernel is ordinary C++, its threads are fibers of one OS thread, and blocks run one
// after the other. A fiber runs until it needs the others: at a barrier of the block, or where a warp acts as one
// (shuffle, mma, ldmatrix, vote). Blocks, warps and lanes take turns in an order that changes from launch to launch, so
// that work which leans on an order without a barrier differs between two runs. Shared memory is poisoned before each
// block, asynchronous copies land only when they are waited for, and a barrier that not all reach, or an address that
// is not aligned, ends the program with a message.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define __global__
#define __device__
#define __shared__ static
#define __constant__ static const
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

typedef unsigned short bf16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
struct uint3 { unsigned x, y, z; };
struct __align__(16) uint4 { unsigned x, y, z, w; };
struct __align__(8) uint2 { unsigned x, y; };
struct __align__(16) float4 { float x, y, z, w; };
struct __align__(8) float2 { float x, y; };
static uint3 threadIdx, blockIdx, blockDim, gridDim;

// Saves the running fiber's registers and stack and continues another.
extern "C" void emu_switch(void** save, void* load);
asm(".text\n.local emu_switch\n.type emu_switch,@function\nemu_switch:\n"
    "push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
    "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
    "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp\nret\n");

namespace emu {
// A growing list of elements that may be moved byte by byte. The standard library's headers would double the time that
// a kernel takes to compile.
template <typename T> struct List {
  T* items = nullptr;
  int count = 0, room = 0;
  int size() const { return count; }
  bool empty() const { return count == 0; }
  T* begin() { return items; }
  T* end() { return items + count; }
  T& operator[](int i) { return items[i]; }
  void resize(int n) {
    if (n > room) items = (T*)realloc(items, (room = 2 * n) * sizeof(T));
    count = n;
  }
  void clear() { count = 0; }
  void push(const T& x) {
    resize(count + 1);
    items[count - 1] = x;
  }
  void erase(int i) { memmove(items + i, items + i + 1, (--count - i) * sizeof(T)); }
};

enum State { READY, WARP, BLOCK, NAMED, PHASE, DONE };
struct Copy { char* dst; const char* src; int bytes, room, group; };
struct Fiber {
  void* sp;
  State state;
  int barrier, parity, group;
  u32 bar, phase; // an mbarrier and the parity that is waited for (hopper.cuh)
  uint3 tid;
  List<Copy> copies;
};
struct Named { int arrived, threads; };
struct Slot { u32 v[32][8]; };

constexpr size_t STACK = 256 << 10;
static __align__(1024) char dynamic[232 << 10];
static Fiber fibers[1024];
static Named named[16];
static Slot slots[32][2];
static char* stacks;
static int count, current;
static u32 launches; // its bits choose the orders
static void* scheduler;
static void (*kernel)(void**);
static void** params;

[[noreturn]] static void die(const char* why) {
  fprintf(stderr, "emulated kernel: %s (block %u,%u,%u thread %u)\n", why, blockIdx.x, blockIdx.y, blockIdx.z,
          threadIdx.x);
  abort();
}

// Memory that the kernels before still write: noise for a warp that has not waited for them (early.cuh). A kernel that
// writes it cannot be run like that.
struct Pending { char *at, *bytes; int n; };
static List<Pending> pending;
static bool waited[32];
static void show(bool there) {
  for (auto& p : pending)
    if (there) memcpy(p.at, p.bytes, p.n);
    else memset(p.at, 0xff, p.n);
}
static void waitEarlier() {
  waited[current >> 5] = true;
  show(true);
}

// A copy reads its source when it is issued or later, so it must not begin before that is there.
static void mustBeThere(const void* from, int n) {
  for (auto& p : pending)
    if (!waited[current >> 5] && p.at < (const char*)from + n && (const char*)from < p.at + p.n)
      die("a copy of what an earlier kernel still writes");
}

static bool (*releasePhases)(int group, bool alone); // set by hopper.cuh, as are the next
static void (*beginBlock)();
static void (*endThread)();

static int passAt, passEnd, passStep; // the lanes of a warp that a pass has not come to yet

// The next ready lane of the pass, or the scheduler.
static void* following() {
  while (passAt != passEnd) {
    Fiber& f = fibers[current = passAt];
    passAt += passStep;
    if (f.state != READY) continue;
    threadIdx = f.tid;
    return f.sp;
  }
  return scheduler;
}

static void yield(State s) {
  Fiber& f = fibers[current];
  f.state = s;
  emu_switch(&f.sp, following());
}

static void entry() {
  kernel(params);
  if (endThread) endThread();
  yield(DONE);
}

static void begin(int i) {
  Fiber& f = fibers[i];
  u64* top = (u64*)(stacks + (i + 1) * STACK) - 1; // entry begins 8 off 16 bytes, as after a call
  *--top = (u64)entry;
  top -= 6;
  memset(top, 0, 6 * sizeof(u64));
  f.sp = top;
  f.state = READY;
  f.parity = f.group = 0;
  f.copies.clear();
  f.tid = {(unsigned)i % blockDim.x, (unsigned)i / blockDim.x % blockDim.y, (unsigned)i / (blockDim.x * blockDim.y)};
}

// One pass over a warp's ready lanes, each of which hands over to the next; says whether any ran.
static bool runLanes(int from, int to) {
  const bool back = launches & 1;
  passAt = back ? to - 1 : from, passEnd = back ? from - 1 : to, passStep = back ? -1 : 1;
  scheduler = nullptr;
  void* first = following();
  if (first) emu_switch(&scheduler, first);
  return first;
}

static bool release(int from, int to, State s) { // all that are not done wait for s: let them go
  bool some = false;
  for (int i = from; i < to; i++) {
    if (fibers[i].state != DONE && fibers[i].state != s) return false;
    some |= fibers[i].state == s;
  }
  for (int i = from; some && i < to; i++)
    if (fibers[i].state == s) fibers[i].state = READY;
  return some;
}

// One thread comes to a named barrier; says whether it was the last.
static bool arrive(int id, int threads) {
  Named& b = named[id];
  if (id < 0 || id > 15 || threads % 32 || threads > count) die("a named barrier of no such number or size");
  if (b.arrived > 0 && b.threads != threads) die("a named barrier of two sizes");
  b.threads = threads;
  if (++b.arrived < threads) return false;
  b.arrived = 0;
  for (int i = 0; i < count; i++)
    if (fibers[i].state == NAMED && fibers[i].barrier == id) fibers[i].state = READY;
  return true;
}

// Runs the ready warps of all warpgroups but one, or of that one alone; says whether any ran. releasePhases has the
// same arguments: copies that only a starved warpgroup waits for come late.
static bool runWarps(int group, bool alone) {
  bool ran = false;
  for (int at = 0, warps = (count + 31) / 32; at < warps; at++) {
    int w = 32 * (launches & 2 ? warps - 1 - at : at), to = w + 32 < count ? w + 32 : count;
    if ((w / 128 == group) != alone) continue;
    if (!pending.empty()) show(waited[w / 32]);
    do ran |= runLanes(w, to);
    while (release(w, to, WARP));
  }
  return ran;
}

// One warpgroup of a block, another in the next block and none in some, is starved: it runs only when the others cannot
// go on. What leans on two warpgroups being about equally fast fails then.
static void runBlock(u32 block) {
  memset(dynamic, 0xff, sizeof dynamic);
  memset(named, 0, sizeof named);
  memset(waited, 0, sizeof waited);
  if (beginBlock) beginBlock();
  for (int i = 0; i < count; i++) begin(i);
  const int groups = (count + 127) / 128, starved = (int)((launches + block) % (groups + 1));
  for (bool live = true; live;) {
    bool ran = runWarps(starved, false), freed = release(0, count, BLOCK) ||
        (releasePhases && releasePhases(starved, false));
    if (!ran && !freed) {
      ran = runWarps(starved, true);
      freed = release(0, count, BLOCK) || (releasePhases && releasePhases(starved, true));
    }
    live = false;
    for (int i = 0; i < count; i++) live |= fibers[i].state != DONE;
    if (live && !ran && !freed) die("a barrier that not all threads reach");
  }
  for (auto& b : named)
    if (b.arrived > 0) die("a block that ends with threads counted at a named barrier");
}

static int lane() { return current & 31; }

// Every lane leaves n words and sees those of all.
static const Slot& share(const u32* x, int n) {
  Fiber& f = fibers[current];
  Slot& s = slots[current >> 5][f.parity];
  f.parity ^= 1;
  for (int i = 0; i < n; i++) s.v[lane()][i] = x[i];
  yield(WARP);
  return s;
}

// Calls f with the values that p points at, one for each of its parameters.
template <int... I> struct Places {};
template <int N, int... I> struct PlacesTo : PlacesTo<N - 1, N - 1, I...> {};
template <int... I> struct PlacesTo<0, I...> { typedef Places<I...> All; };
template <typename T> struct Plain { typedef T Type; };
template <typename T> struct Plain<T&> { typedef T Type; };
template <typename... A, int... I>
void invokeAt(void (*f)(A...), void** p, Places<I...>) { f(*(typename Plain<A>::Type*)p[I]...); }
template <typename... A>
void invoke(void (*f)(A...), void** p) { invokeAt(f, p, typename PlacesTo<sizeof...(A)>::All()); }
}  // namespace emu

extern "C" __attribute__((visibility("default"))) void emu_launch(void (*k)(void**), u64 gx, u64 gy, u64 gz, u64 bx,
                                                                  u64 by, u64 bz, void** params) {
  if (!emu::stacks)
    emu::stacks = (char*)mmap(0, 1024 * emu::STACK, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  emu::kernel = k;
  emu::params = params;
  gridDim = {(unsigned)gx, (unsigned)gy, (unsigned)gz};
  blockDim = {(unsigned)bx, (unsigned)by, (unsigned)bz};
  emu::count = (int)(bx * by * bz);
  emu::launches++;
  u64 blocks = gx * gy * gz;
  for (u64 at = 0; at < blocks; at++) {
    u64 b = emu::launches & 4 ? blocks - 1 - at : at;
    blockIdx = {(unsigned)(b % gx), (unsigned)(b / gx % gy), (unsigned)(b / (gx * gy))};
    emu::runBlock((u32)b);
  }
  emu::show(true);
  for (auto& p : emu::pending) free(p.bytes);
  emu::pending.clear();
}

// Declares memory as pending for the next launch.
extern "C" __attribute__((visibility("default"))) void emu_pending(char* at, u64 n) {
  emu::pending.push({at, (char*)memcpy(malloc(n), at, n), (int)n});
}

static void __syncthreads() { emu::yield(emu::BLOCK); }
static void __syncwarp(unsigned = 0xffffffffu) { emu::yield(emu::WARP); }
template <typename T> static T shuffle(T x, int from) {
  u32 w[2] = {0, 0};
  memcpy(w, &x, sizeof x);
  const emu::Slot& s = emu::share(w, 2);
  memcpy(&x, s.v[from], sizeof x);
  return x;
}
template <typename T> static T __shfl_xor_sync(unsigned, T x, int mask, int = 32) {
  return shuffle(x, emu::lane() ^ mask);
}
template <typename T> static T __shfl_sync(unsigned, T x, int from, int = 32) { return shuffle(x, from & 31); }
static int atomicAdd(int* p, int x) { int old = *p; *p += x; return old; }
static int atomicCAS(int* p, int want, int x) { int old = *p; if (old == want) *p = x; return old; }
static float __uint_as_float(unsigned x) { float f; memcpy(&f, &x, 4); return f; }
static unsigned __float_as_uint(float x) { unsigned u; memcpy(&u, &x, 4); return u; }
static float __fmul_rn(float a, float b) { volatile float x = a * b; return x; } // never part of a fused multiply-add
static int __float_as_int(float x) { return (int)__float_as_uint(x); }
static float __int_as_float(int x) { return __uint_as_float((unsigned)x); }
#define __expf expf
#define __logf logf
static float __fdividef(float a, float b) { return a / b; }
static float rsqrtf(float x) { return 1.f / sqrtf(x); }
static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }

static bf16 toBf16(float x) {
  u32 u = __float_as_uint(x);
  if (x != x) return 0x7fff;
  return (bf16)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
static int __clz(int x) { return x == 0 ? 32 : __builtin_clz((u32)x); }
static u32 packBf16(float lo, float hi) { return toBf16(lo) | (u32)toBf16(hi) << 16; }
static u32 moved(u32 x, u32 id) {
  if (id != 0x3210) emu::die("a move that is none");
  return x;
}

// The sums of a product of fragments; low and high take the numbers out of a word.
template <typename L, typename H> static void mmaOf(float* d, const u32* a, const u32* b, L low, H high) {
  u32 words[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  const emu::Slot& s = emu::share(words, 6);
  int g = emu::lane() >> 2, t = emu::lane() & 3;
  typedef double Two __attribute__((vector_size(16)));
  Two sum[2] = {{0, 0}, {0, 0}};  // rows g and g + 8, columns 2t and 2t + 1
  for (int w = 0; w < 8; w++) {
    const u32* a = &s.v[g * 4 + w % 4][w / 4 * 2];
    const u32 b0 = s.v[2 * t * 4 + w % 4][4 + w / 4], b1 = s.v[(2 * t + 1) * 4 + w % 4][4 + w / 4];
    const Two x = {low(b0), low(b1)}, y = {high(b0), high(b1)};
    for (int i = 0; i < 2; i++) sum[i] += low(a[i]) * x, sum[i] += high(a[i]) * y;
  }
  for (int e = 0; e < 4; e++) d[e] = (float)(d[e] + sum[e >> 1][e & 1]);
}

static void mma16816(float* d, const u32* a, const u32* b) {
  mmaOf(d, a, b, [](u32 w) { return (double)__uint_as_float(w << 16); },
        [](u32 w) { return (double)__uint_as_float(w & 0xffff0000u); });
}

static u32 packHalf(float lo, float hi) {
  _Float16 h[2] = {(_Float16)lo, (_Float16)hi};
  u32 r;
  memcpy(&r, h, 4);
  return r;
}
static float lowHalf(u32 x) {
  _Float16 h[2];
  memcpy(h, &x, 4);
  return (float)h[0];
}
static float highHalf(u32 x) {
  _Float16 h[2];
  memcpy(h, &x, 4);
  return (float)h[1];
}
static u32 subHalf(u32 a, u32 b) { return packHalf(lowHalf(a) - lowHalf(b), highHalf(a) - highHalf(b)); }
static void mma16816Half(float* d, const u32* a, const u32* b) {
  mmaOf(d, a, b, [](u32 w) { return (double)lowHalf(w); }, [](u32 w) { return (double)highHalf(w); });
}
static void mma16832(int* d, const u32* a, const u32* b) {
  u32 words[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  const emu::Slot& s = emu::share(words, 6);
  int g = emu::lane() >> 2, t = emu::lane() & 3;
  for (int e = 0; e < 4; e++)
    for (int w = 0; w < 8; w++) {
      const u32 x = s.v[g * 4 + w % 4][w / 4 * 2 + (e >> 1)], y = s.v[(2 * t + (e & 1)) * 4 + w % 4][4 + w / 4];
      for (int i = 0; i < 32; i += 8) d[e] += (int)(x >> i & 255) * (signed char)(y >> i & 255);
    }
}
static u32 __byte_perm(u32 a, u32 b, u32 how) {
  const unsigned long long both = (unsigned long long)b << 32 | a;
  u32 r = 0;
  for (int i = 0; i < 4; i++) r |= (u32)(both >> 8 * (how >> 4 * i & 7) & 255) << 8 * i;
  return r;
}

static u32 sharedAddr(const void* p) { return (u32)((const char*)p - emu::dynamic); }
static char* sharedPtr(u32 a, int align) {
  if (a % align) emu::die("a shared address that is not aligned");
  return emu::dynamic + (int)a;
}
static void ldmatrix(u32* r, u32 addr, bool trans) {
  const emu::Slot& s = emu::share(&addr, 1);
  int g = emu::lane() >> 2, t = emu::lane() & 3;
  for (int i = 0; i < 4; i++) {
    bf16 e[2];
    for (int j = 0; j < 2; j++) {
      int row = trans ? 2 * t + j : g, col = trans ? g : 2 * t + j;
      e[j] = ((bf16*)sharedPtr(s.v[i * 8 + row][0], 16))[col];
    }
    r[i] = e[0] | (u32)e[1] << 16;
  }
}
static void ldmatrix4(u32* r, u32 addr) { ldmatrix(r, addr, false); }
static void ldmatrix4t(u32* r, u32 addr) { ldmatrix(r, addr, true); }

static void cpAsync16(u32 dst, const void* src, int bytes = 16) {
  if ((u64)src % 16) emu::die("an asynchronous copy from an address that is not aligned");
  emu::mustBeThere(src, bytes);
  emu::Fiber& f = emu::fibers[emu::current];
  f.copies.push({sharedPtr(dst, 16), (const char*)src, bytes, 16, f.group});
}
template <int N> static void cpAsyncFew(u32 dst, const void* src) {
  if ((u64)src % N) emu::die("an asynchronous copy from an address that is not aligned");
  emu::mustBeThere(src, N);
  emu::Fiber& f = emu::fibers[emu::current];
  f.copies.push({sharedPtr(dst, N), (const char*)src, N, N, f.group});
}
static void cpCommit() { emu::fibers[emu::current].group++; }
template <int N> static void cpWait() {
  emu::Fiber& f = emu::fibers[emu::current];
  int kept = 0;
  for (auto& c : f.copies) {
    if (c.group >= f.group - N) {
      f.copies[kept++] = c;
      continue;
    }
    memset(c.dst, 0, c.room);
    memcpy(c.dst, c.src, c.bytes);
  }
  f.copies.resize(kept);
}
