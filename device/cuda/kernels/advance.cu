// Advance: ids[i] = max(best[i], 0), pos[i] += 1: the rows of the next decoding step. Bound: launch latency. It writes
// positions, which early kernels read before they wait (early.cuh), so neither it nor the next kernel may start early.
extern "C" __global__ void __launch_bounds__(256) advance(int* ids, int* pos, const int* best, int rows) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  ids[i] = max(best[i], 0);
  pos[i]++;
}

// Copies words to memory shared with the host. For so few bytes the copy engine's latency would dominate.
extern "C" __global__ void __launch_bounds__(256) fetched(int* to, const int* from, int words) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < words) to[i] = from[i];
}
