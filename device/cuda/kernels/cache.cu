// CacheWrite: row n of k and v goes to (slot[n], pos[n]) of the cache. A thread moves 16 bytes (or one element if rows
// are not aligned) of k and v seen as one row. For the few rows of decoding the bound is latency: the destination of a
// row is computed before the kernel's turn.
#include "attn_page.cuh"
#include "early.cuh"

// Grid (rows, pieces).
extern "C" __global__ void __launch_bounds__(128)
cache_write(bf16* K, bf16* V, const bf16* k, const bf16* v, const int* table, const int* slot, const int* pos,
            int* fault, i64 ldK, i64 ldV, i64 ldk, i64 ldv, i64 ldt, int kw, int vw, int slots, int pages, int size,
            int rows, int vec) {
  beginNext();
  const i64 n = blockIdx.x;
  const int each = vec ? 8 : 1, piece = (blockIdx.y * 128 + threadIdx.x) * each;
  if (piece >= kw + vw) return;
  const bool key = piece < kw;
  const bf16* from = key ? k + n * ldk + piece : v + n * ldv + piece - kw;
  const Pages cache = {table, ldt, slots, pages, size, rows};
  const int row = pageAt(cache, slot[n], pos[n]);
  waitEarlier();
  if (row < 0) return noPage(cache, pos[n], fault);
  uint4 all = {0, 0, 0, 0};
  bf16 one = 0;
  if (vec) all = *(const uint4*)from;
  else one = *from;
  bf16* to = key ? K + row * ldK + piece : V + row * ldV + piece - kw;
  if (vec) *(uint4*)to = all;
  else *to = one;
}
