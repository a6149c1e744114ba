// kernels/attn_ptx.cuh for a CPU, see ptx.cuh beside this.
static float ex2(float x) { return exp2f(x); }
static float lg2(float x) { return log2f(x); }
template <typename T> static T fresh(T x) { return x; }
static u32 sharedBase() { return sharedAddr(emu::dynamic); }
namespace emu { static void (*wrote)(u32 at); } // a thread wrote to shared memory; set by hopper.cuh
static void stShared(u32 at, u32 x) {
  *(u32*)sharedPtr(at, 4) = x;
  if (emu::wrote) emu::wrote(at);
}
static void stShared(u32 at, float x) { stShared(at, __float_as_uint(x)); }
static void stShared4(u32 at, const u32* x) {
  memcpy(sharedPtr(at, 16), x, 16);
  if (emu::wrote) emu::wrote(at);
}
static float ldShared(u32 at) { return *(float*)sharedPtr(at, 4); }
static void ldShared4(u32* x, u32 at) { memcpy(x, sharedPtr(at, 16), 16); }
static void barrierOf(int id, int threads) {
  emu::fibers[emu::current].barrier = id;
  if (!emu::arrive(id, threads)) emu::yield(emu::NAMED);
}
static bool anyLane(bool p) {
  u32 mine = p, any = 0;
  const emu::Slot& s = emu::share(&mine, 1);
  for (int i = 0; i < 32; i++) any |= s.v[i][0];
  return any;
}
static void redAdd4(float* p, const float* x) {
  for (int i = 0; i < 4; i++) p[i] += x[i];
}
static int loadAcquire(const int* p) {
  static int polls, *last;
  if (last != p) polls = 0;
  last = (int*)p;
  if (++polls > 1 << 20) emu::die("a block that waits for a later one");
  return *(volatile const int*)p;
}
static int loadRelaxed(const int* p) { return *(volatile const int*)p; }
static void addRelease(int* p, int x) { *p += x; }
