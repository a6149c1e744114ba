// The row of a paged cache that holds position p of a slot, or −1 (and a fault) where there is none.
struct Pages {
  const int* table; // [slots, pages], rows ld apart
  i64 ld;
  int slots, pages, size, rows; // size: positions of a page; rows: of the cache
};
__device__ __forceinline__ int pageRow(const Pages& c, int slot, int p, int* fault) {
  if (slot >= 0 && slot < c.slots && p >= 0 && p / c.size < c.pages) {
    i64 row = (i64)c.table[slot * c.ld + p / c.size] * c.size + p % c.size;
    if (row >= 0 && row < c.rows) return (int)row;
  }
  report(fault, FAULT_CACHE, p, c.pages * c.size);
  return -1;
}
