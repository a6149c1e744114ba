// Column sums in two stages with a fixed order: blocks leave part[p, c] = their rows' sums, then a block of 32 columns ×
// 8 lanes adds the parts: lane l takes p = l, l+8, …, and the 8 lanes are added in order. dst[c] += the total.
__device__ __forceinline__ void addColumns(float* dst, const float* part, int parts, int cols) {
  __shared__ float room[8][33];
  int lane = threadIdx.x >> 5, x = threadIdx.x & 31, c = blockIdx.x * 32 + x;
  float sum = 0.f;
  if (c < cols)
    for (int p = lane; p < parts; p += 8) sum += part[(i64)p * cols + c];
  room[lane][x] = sum;
  __syncthreads();
  if (lane == 0 && c < cols) {
    float total = room[0][x];
#pragma unroll
    for (int l = 1; l < 8; l++) total += room[l][x];
    dst[c] += total;
  }
}
