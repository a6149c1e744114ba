// ids[r] = the lowest column of the largest element of row r of x [rows, cols]; −1 where an element is NaN or +inf, or all are −inf.
//
// A block owns a row. A thread sees its columns in rising order and keeps the first of equals; AHEAD pieces are asked for before
// the first is looked at. Bound by 4 bytes an element, which a product has just left in the L2: a row of 100 k columns takes
// some microseconds, where its copy to the host and a walk there take a hundred times that for a batch of 64.
#define NONE 0x7fffffff

__device__ __forceinline__ int warpMin(int x) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) x = min(x, __shfl_xor_sync(0xffffffffu, x, o));
  return x;
}

extern "C" __global__ void __launch_bounds__(1024) argmax(int* ids, const float* x, i64 ld, int cols, int vec) {
  constexpr int AHEAD = 4;
  __shared__ float room[32];
  __shared__ int least[32];
  const float* row = x + blockIdx.x * ld;
  const int step = blockDim.x * 8, lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  float top = __uint_as_float(0xff800000u);
  int at = NONE;
  bool bad = false;
  for (int base = threadIdx.x * 8; base < cols; base += AHEAD * step) {
    float v[AHEAD][8];
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
      if (base + u * step < cols) load8(v[u], row + base + u * step, left8(base + u * step, cols), vec);
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
#pragma unroll
      for (int i = 0; i < 8; i++) {
        int c = base + u * step + i;
        if (c >= cols) continue;
        bad |= !(v[u][i] <= 3.402823466e38f);
        if (v[u][i] > top) top = v[u][i], at = c;
      }
  }
  float most = blockMax(top, room);
  at = warpMin(bad ? -1 : top == most ? at : NONE);
  if (lane == 0) least[warp] = at;
  __syncthreads();
  at = warpMin(lane < warps ? least[lane] : NONE);
  if (threadIdx.x == 0) ids[blockIdx.x] = at == NONE ? -1 : at;
}
