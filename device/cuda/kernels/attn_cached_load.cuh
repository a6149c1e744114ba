// How attn_cached.cuh loads the cache: rows into shared memory, and operands of products from there.
// Loads `heads` heads of width n of the rows' cache lines, starting at column c0; rows that do not exist become zeros.
__device__ __forceinline__ void stage(Cell* to, int pitch, const Cell* from, i64 ld, i64 c0, const int* rows, int count,
                                      int heads, int n, bool vec) {
  if (vec) {
    const int pieces = heads * n / CELLS;
    const u32 base = sharedAddr(to);
    for (int i = threadIdx.x; i < count * pieces; i += THREADS) {
      const int s = i / pieces, p = i % pieces, row = rows[s];
      cpAsync16(base + sizeof(Cell) * (s * pitch + CELLS * p), from + (row < 0 ? 0 : row) * ld + c0 + CELLS * p,
                row < 0 ? 0 : 16);
    }
    return;
  }
  const int wide = (n + 15) / 16 * 16;
  for (int i = threadIdx.x; i < count * heads * wide; i += THREADS) {
    const int s = i / (heads * wide), c = i % (heads * wide), head = c / wide, e = c % wide;
    to[s * pitch + c] = rows[s] >= 0 && e < n ? from[rows[s] * ld + c0 + head * n + e] : (Cell)NOTHING;
  }
}

#if BYTES
// Loads the scales of the rows' heads starting at first, which follow a row's bytes: 16 bytes, which hold those of
// heads first & ~3….
__device__ __forceinline__ void stageScales(float* to, const Cell* from, i64 ld, i64 elements, int first,
                                            const int* rows, int count) {
  const u32 base = sharedAddr(to);
  for (int s = threadIdx.x; s < count; s += THREADS) {
    const int row = rows[s];
    cpAsync16(base + 16 * s, from + (row < 0 ? 0 : row) * ld + elements + 4 * (first & ~3), row < 0 ? 0 : 16);
  }
}

// Two bytes of x as halves, each less 128.
__device__ __forceinline__ u32 widen(u32 x, u32 how) { return subHalf(__byte_perm(x, 0x64646464u, how), 0x64806480u); }

// The left operand of 16 keys and 16 elements, of which thread t has four adjacent ones.
__device__ __forceinline__ void loadKeys(u32 (&k)[4], const Cell* at, int pitch) {
  const u32 a = *(const u32*)at, b = *(const u32*)(at + 8 * pitch);
  k[0] = widen(a, 0x4140), k[2] = widen(a, 0x4342);
  k[1] = widen(b, 0x4140), k[3] = widen(b, 0x4342);
}
// The left operand of 16 columns and 16 keys: rows g and g + 8 are adjacent columns.
__device__ __forceinline__ void loadValues(u32 (&v)[4], const Cell* at, int pitch) {
  u32 x[4];
#pragma unroll
  for (int i = 0; i < 4; i++) x[i] = *(const unsigned short*)(at + ((i & 1) + (i >> 1) * 8) * pitch);
  const u32 a = x[0] | x[1] << 16, b = x[2] | x[3] << 16;
  v[0] = widen(a, 0x4240), v[1] = widen(a, 0x4341);
  v[2] = widen(b, 0x4240), v[3] = widen(b, 0x4341);
}
#define MMA mma16816Half
#else
#define MMA mma16816
#endif
