// CacheWrite: row n of k and v goes to (slot[n], pos[n]) of the cache, one block per row. Bound: bytes.
#include "attn_page.cuh"

__device__ __forceinline__ void copyRow(bf16* to, const bf16* from, int n, bool vec) {
  const int whole = vec ? n / 8 : 0;
  for (int i = threadIdx.x; i < whole; i += blockDim.x) ((uint4*)to)[i] = ((const uint4*)from)[i];
  for (int i = 8 * whole + threadIdx.x; i < n; i += blockDim.x) to[i] = from[i];
}

extern "C" __global__ void __launch_bounds__(128)
cache_write(bf16* K, bf16* V, const bf16* k, const bf16* v, const int* table, const int* slot, const int* pos, int* fault,
            i64 ldK, i64 ldV, i64 ldk, i64 ldv, i64 ldt, int kw, int vw, int slots, int pages, int size, int rows, int vec) {
  const i64 n = blockIdx.x;
  const int row = pageRow({table, ldt, slots, pages, size, rows}, slot[n], pos[n], fault);
  if (row < 0) return;
  copyRow(K + row * ldK, k + n * ldk, kw, vec);
  copyRow(V + row * ldV, v + n * ldv, vw, vec);
}
