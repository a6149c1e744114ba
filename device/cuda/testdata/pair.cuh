// kernels/pair.cuh for a CPU, see ptx.cuh beside this: the blocks of a cluster run together.
#define __cluster_dims__(...)
#if PAIRS
namespace emu {
struct Pairs {
  Pairs() { cluster = 2; }
};
static Pairs pairs;
}  // namespace emu
#endif
static int pairRank() { return emu::rank(); }
static u32 peerOf(u32 at) { return at + (2 - emu::rank()) * emu::SPAN; }
static void stPeer(u32 at, u32 x) { stShared(at, x); }
static u32 ldPeer(u32 at) { return *(u32*)sharedPtr(at, 4); }
static void barArrivePeer(u32 bar) { barArrive(bar); }
static void barWaitPeer(u32 bar, int parity) { barWaitWarp(bar, parity); }
static void proxyFencePeer() { emu::fenced(0, 2); }
static void pairSync() { emu::yield(emu::CLUSTER); }
