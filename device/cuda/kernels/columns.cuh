// Column sums in two stages with a fixed order: blocks write part[p, c], the sums of their rows, then a block of 32
// columns × 32 lanes adds the parts: lane l takes p = l, l+32, …, and the lanes are added in order. dst[c] += the
// total.
__device__ __forceinline__ void addColumns(float* dst, const float* part, int parts, int cols) {
  __shared__ float room[32][33];
  int lane = threadIdx.x >> 5, x = threadIdx.x & 31, c = blockIdx.x * 32 + x;
  float sum = 0.f;
  if (c < cols) {
#pragma unroll 8 // eight loads in flight
    for (int p = lane; p < parts; p += 32) sum += part[(i64)p * cols + c];
  }
  room[lane][x] = sum;
  __syncthreads();
  if (lane == 0 && c < cols) {
    float total = room[0][x];
#pragma unroll
    for (int l = 1; l < 32; l++) total += room[l][x];
    dst[c] += total;
  }
}
