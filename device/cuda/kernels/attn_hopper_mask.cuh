// Which scores of attn_hopper_backward.cu do not count.

// Whether a tile has any.
__device__ __forceinline__ bool isMasked(const HopperBackward& p, const Walk& w) {
  return w.n * BN + BN - 1 > w.m * BM || (p.start != 0 && w.n * BN < p.start[w.n0 + min(w.m * BM + BM, p.t) - 1]);
}

// S outside the causal triangle, or before the query's document, becomes −inf.
__device__ __forceinline__ void mask(Scores& s, const HopperBackward& p, const Walk& w, const Thread& me) {
  const int key = w.n * BN + me.key;
#pragma unroll
  for (int j = 0; j < BM / 8; j++)
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const int query = w.m * BM + 8 * j + 2 * me.t + e, first = p.start == 0 ? 0 : p.start[w.n0 + min(query, p.t - 1)];
      if (key > query || key < first) s[4 * j + e] = -INFINITE;
      if (key + 8 > query || key + 8 < first) s[4 * j + 2 + e] = -INFINITE;
    }
}
