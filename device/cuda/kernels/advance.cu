// Advance: ids[i] = max(best[i], 0), pos[i] += 1: the next decoding step's rows. Bound by its launch. It writes positions, which early kernels read
// before they wait (early.cuh), so neither it nor the kernel behind it may start early.
extern "C" __global__ void __launch_bounds__(256) advance(int* ids, int* pos, const int* best, int rows) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  ids[i] = max(best[i], 0);
  pos[i]++;
}

// Words for the host, to memory that it shares. A copy of so few bytes is bound by its way to the copy engine and back.
extern "C" __global__ void __launch_bounds__(256) fetched(int* to, const int* from, int words) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < words) to[i] = from[i];
}
