// A paged cache.
struct Pages {
  const int* table; // [slots, pages], rows ld apart
  i64 ld;
  int slots, pages, size, rows; // size: positions per page; rows: of the cache
};
// The page of position p ≥ 0. Sizes are powers of two as a rule, and a division takes twenty instructions.
__device__ __forceinline__ int pageOf(const Pages& c, int p) {
  return c.size & (c.size - 1) ? p / c.size : p >> (31 - __clz(c.size));
}
// The row that holds position p of a slot, or −1 if there is none.
__device__ __forceinline__ int pageAt(const Pages& c, int slot, int p) {
  if (slot < 0 || slot >= c.slots || p < 0) return -1;
  const int page = pageOf(c, p);
  if (page >= c.pages) return -1;
  const i64 row = (i64)(c.table[slot * c.ld + page] - page) * c.size + p;
  return row >= 0 && row < c.rows ? (int)row : -1;
}
__device__ __forceinline__ void noPage(const Pages& c, int p, int* fault) {
  report(fault, FAULT_CACHE, p, c.pages * c.size);
}

// The same, reporting a fault at once. Kernels that look before their turn (early.cuh) call pageAt and report
// afterwards, so that faults of earlier kernels come first. Only cached attention, which reads the pages of all keys,
// does not wait for that.
__device__ __forceinline__ int pageRow(const Pages& c, int slot, int p, int* fault) {
  const int row = pageAt(c, slot, p);
  if (row < 0) noPage(c, p, fault);
  return row;
}
