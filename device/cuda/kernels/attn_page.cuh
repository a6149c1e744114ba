// A paged cache.
struct Pages {
  const int* table; // [slots, pages], rows ld apart
  i64 ld;
  int slots, pages, size, rows; // size: positions per page; rows: of the cache
};
// The row that holds position p of a slot, or −1 if there is none.
__device__ __forceinline__ int pageAt(const Pages& c, int slot, int p) {
  if (slot >= 0 && slot < c.slots && p >= 0 && p / c.size < c.pages) {
    i64 row = (i64)c.table[slot * c.ld + p / c.size] * c.size + p % c.size;
    if (row >= 0 && row < c.rows) return (int)row;
  }
  return -1;
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
