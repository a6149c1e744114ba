// The order in which the blocks of attention are started, and the tickets of blocks that stay.
//
// An item is a head, or a group of heads, of a sequence, and has `of` blocks. Items follow one another, so that few of
// them share the L2 at a time; only the blocks of the `last` items are started together, all items' first blocks, then
// all second ones, and so on. With causal attention an item's blocks differ in length by 1 to `of`: at the end the SMs
// would otherwise wait for a long one.
struct Turn {
  int item, tile, of;
  bool together;  // one of the last items
};
__device__ __forceinline__ Turn turnOfBlock(int block, int of, int items, int last) {
  const int alone = (items - last) * of;
  if (block < alone) return {block / of, block % of, of, false};
  block -= alone;
  return {items - last + block % last, block / last, of, true};
}

// The block's number in the order in which the GPU starts them.
__device__ __forceinline__ int blockOf() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }

// A ring of two tickets from the producer to all other warps.
constexpr int TICKETS = 4 * 8 + 8;
struct Tickets {
  Ring<2, 4> ring;
  __device__ __forceinline__ void init(int warps) const { ring.init(warps); }
  __device__ __forceinline__ void give(int i, int ticket) const {
    barWait(ring.emptyBar(i), (i / 2 & 1) ^ 1);
    stShared(ring.tile(i), (u32)ticket);
    barArrive(ring.fullBar(i));
  }
  __device__ __forceinline__ int take(int i) const {
    ring.wait(i);
    const int ticket = __shfl_sync(0xffffffffu, __float_as_int(ldShared(ring.tile(i))), 0);
    ring.release(i, threadIdx.x & 31);
    return ticket;
  }
};
__device__ __forceinline__ Tickets ticketsAt(u32 at) { return {{at + 32, at, at + 16}}; }
