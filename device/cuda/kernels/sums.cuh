// Sums over a whole tensor in two stages with a fixed order, in fp64 beyond 8 adjacent elements: block b of the grid
// writes part[b], then one block adds the parts. Bound: one read of the tensor.
template <bool SQUARE, typename T>
__device__ __forceinline__ void partialSum(double* part, const T* x, i64 ldx, i64 rows, i64 cols, int vec) {
  __shared__ double room[32];
  double sum = 0;
  FOR_EACH_8(r, c, rows, cols) {
    float v[8], s = 0.f;
    load8(v, x + r * ldx + c, left8(c, cols), vec);
#pragma unroll
    for (int i = 0; i < 8; i++) s += SQUARE ? v[i] * v[i] : v[i];
    sum += s;
  }
  sum = blockSum(sum, room);
  if (threadIdx.x == 0) part[blockIdx.y * gridDim.x + blockIdx.x] = sum;
}

// The total, in every thread.
__device__ __forceinline__ double totalSum(const double* part, int parts) {
  __shared__ double room[32];
  double sum = 0;
  for (int i = threadIdx.x; i < parts; i += blockDim.x) sum += part[i];
  return blockSum(sum, room);
}
