// Keys and values in an int8 cache, see device.Cache: a row of K or V is a byte per element and, after the next
// multiple of 16 bytes, a float per head. A warp takes one head of one row: its largest magnitude, then its bytes.
// Bound: bytes moved; rows are few in decoding, and thousands in a prompt.
#include "attn_page.cuh"
#include "bytes.cuh"
#include "early.cuh"

struct Heads {
  unsigned char* rows; // of the cache
  i64 ld; // bytes
  bf16* x; // rows of elements
  i64 ldx;
  int heads, width;
  __device__ __forceinline__ float* scale(i64 row, int h) const {
    return (float*)(rows + row * ld + (heads * width + 15) / 16 * 16) + h;
  }
};

__device__ __forceinline__ void writeHead(const Heads& k, i64 row, i64 n, int h) {
  const bf16* from = k.x + n * k.ldx + (i64)h * k.width;
  const int lane = threadIdx.x & 31;
  int mine = 0;
  for (int e = lane; e < k.width; e += 32) mine = max(mine, magnitude(toFloat(from[e])));
  const float top = topOf<32>(mine), factor = byteFactor(top);
  unsigned char* to = k.rows + row * k.ld;
  for (int e = lane; e < k.width; e += 32) to[h * k.width + e] = (unsigned char)byteOf(toFloat(from[e]), factor);
  if (lane == 0) *k.scale(row, h) = top / 127.f;
}

// Grid (rows, heads of K and V / 4), four warps.
extern "C" __global__ void __launch_bounds__(128)
cache_write_bytes(unsigned char* K, unsigned char* V, bf16* k, bf16* v, const int* table, const int* slot,
                  const int* pos, int* fault, i64 ldK, i64 ldV, i64 ldk, i64 ldv, i64 ldt, int kheads, int vheads,
                  int d, int dv, int slots, int pages, int size, int rows) {
  beginNext();
  const i64 n = blockIdx.x;
  const int h = blockIdx.y * 4 + threadIdx.x / 32;
  const Pages cache = {table, ldt, slots, pages, size, rows};
  const int row = pageAt(cache, slot[n], pos[n]);
  waitEarlier();
  if (row < 0) return noPage(cache, pos[n], fault);
  if (h < kheads) writeHead({K, ldK, k, ldk, kheads, d}, row, n, h);
  else if (h < kheads + vheads) writeHead({V, ldV, v, ldv, vheads, dv}, row, n, h - kheads);
}

__device__ __forceinline__ void readHead(const Heads& k, i64 row, i64 n, int h) {
  const unsigned char* from = k.rows + row * k.ld;
  const float scale = *k.scale(row, h);
  for (int e = threadIdx.x & 31; e < k.width; e += 32)
    k.x[n * k.ldx + (i64)h * k.width + e] = toBf16(scale * (float)((int)from[h * k.width + e] - 128));
}

// k and v from rows ids of the cache; the same grid.
extern "C" __global__ void __launch_bounds__(128)
cache_read_bytes(unsigned char* K, unsigned char* V, bf16* k, bf16* v, const int* ids, int* fault, i64 ldK, i64 ldV,
                 i64 ldk, i64 ldv, int kheads, int vheads, int d, int dv, int rows) {
  beginNext();
  waitEarlier();
  const i64 n = blockIdx.x;
  const int h = blockIdx.y * 4 + threadIdx.x / 32, row = ids[n];
  if (row < 0 || row >= rows) {
    report(fault, FAULT_EMBED, row, rows);
    return;
  }
  if (h < kheads) readHead({K, ldK, k, ldk, kheads, d}, row, n, h);
  else if (h < kheads + vheads) readHead({V, ldV, v, ldv, vheads, dv}, row, n, h - kheads);
}
