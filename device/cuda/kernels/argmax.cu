// ids[r] = the lowest column of the largest element of row r of x [rows, cols]; −1 if an element is NaN or +inf, or all
// are −inf.
//
// Grid (parts, rows): a block takes `per` columns of a row, a thread 8 adjacent ones at a time in ascending order, the
// first of equals. With several parts their results go to (ids, tops) as rows of parts, and argmax_finish picks among
// them. Bound: 4 bytes per element, which a product has just left in L2; one block alone takes several microseconds for
// 100 k of them, many are bound by latency.
#include "early.cuh"
#define NONE 0x7fffffff
#define LOWEST __uint_as_float(0xff800000u)

__device__ __forceinline__ int warpMin(int x) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) x = min(x, __shfl_xor_sync(0xffffffffu, x, o));
  return x;
}

extern "C" __global__ void __launch_bounds__(256)
argmax(int* ids, float* tops, const float* x, i64 ld, int cols, int per, int vec) {
  __shared__ float room[32];
  __shared__ int least[32];
  beginNext();
  const float* row = x + blockIdx.y * ld;
  const int from = blockIdx.x * per, to = min(cols, from + per), lane = threadIdx.x & 31, warp = threadIdx.x >> 5,
      warps = blockDim.x >> 5;
  float top = LOWEST;
  int at = NONE;
  bool bad = false;
  waitEarlier();
  for (int base = from + threadIdx.x * 8; base < to; base += blockDim.x * 8) {
    float v[8];
    load8(v, row + base, left8(base, to), vec);
#pragma unroll
    for (int i = 0; i < 8; i++) {
      if (base + i >= to) continue;
      bad |= !(v[i] <= 3.402823466e38f);
      if (v[i] > top) top = v[i], at = base + i;
    }
  }
  const float most = blockMax(top, room);
  at = warpMin(bad ? -1 : top == most ? at : NONE);
  if (lane == 0) least[warp] = at;
  __syncthreads();
  at = warpMin(lane < warps ? least[lane] : NONE);
  if (threadIdx.x != 0) return;
  const i64 to1 = (i64)blockIdx.y * gridDim.x + blockIdx.x;
  if (gridDim.x > 1) tops[to1] = most;
  ids[to1] = at == NONE && gridDim.x == 1 ? -1 : at;
}

// One warp per row.
extern "C" __global__ void __launch_bounds__(32)
argmax_finish(int* ids, const int* part, const float* tops, int parts) {
  beginNext();
  const i64 first = (i64)blockIdx.x * parts;
  float most = LOWEST;
  int at = NONE;
  waitEarlier();
  for (int p = threadIdx.x; p < parts; p += 32) {
    const float top = tops[first + p];
    const int mine = part[first + p]; // ascending with p, or −1
    if (mine < 0) at = -1;
    else if (at >= 0 && top > most) most = top, at = mine;
  }
  const float all = warpMax(most);
  at = warpMin(at < 0 ? -1 : most == all ? at : NONE);
  if (threadIdx.x == 0) ids[blockIdx.x] = at == NONE ? -1 : at;
}
