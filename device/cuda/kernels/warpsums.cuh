// The warps' sums of a product of few rows (matmul_rows.cu, matmul_staged.cu), in shared memory: [warp][row of
// x][column], columns padded by 4, so that neither the lanes' stores nor reads of a row have bank conflicts.
template <int R, int X>
__device__ __forceinline__ float* sumAt(int warp, int row, int column) {
  extern __shared__ float warpSums[];
  return warpSums + (warp * 8 * X + row) * (16 * R + 4) + column;
}

// Stores the sums of all warps, and waits for them. acc is [tile of 16 columns][8 rows of x].
template <int R, int X>
__device__ __forceinline__ void storeSums(float (*acc)[X][4]) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
#pragma unroll
  for (int r = 0; r < R; r++)
#pragma unroll
    for (int j = 0; j < X; j++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        *sumAt<R, X>(warp, 8 * j + 2 * t + (e & 1), 16 * r + g + (e >> 1) * 8) = acc[r][j][e];
  __syncthreads();
}
