// attn_hopper_forward.cu: what follows a block's last tile: sums, the difference of maps, the norm, stores.
// Stores a row's raw or, with the norm, raw, rstd and out = gain·w·raw·rstd.
__device__ __forceinline__ void storeRow(const HopperForward& p, const Place& at, const Thread& w,
                                         const float (&o)[DV / 2], int half) {
  const int row = w.row + 8 * half;
  const bool live = row < at.rows;
  const i64 n = at.n0 + row;
  u32 raw[DV / 8], out[DV / 8];
  float z = 0.f, f = 1.f;
#pragma unroll
  for (int j = 0; j < DV / 8; j++) {
    const float a = o[4 * j + 2 * half], b = o[4 * j + 2 * half + 1];
    raw[j] = packBf16(a, b);
    z += a * a + b * b;
  }
  if (p.norm) {
    const float rstd = rsqrtf(rowSum(z) * (1.f / DV) + p.eps);
    f = p.gain * rstd;
    if (p.rstd != 0 && w.t == 0 && live) p.rstd[n * p.ldrstd + at.h] = rstd;
    if (p.raw != 0) storePieces<DV / 8, 1>(p.raw + n * p.ldraw + (i64)at.h * DV, raw, 0, w.t, live);
  }
#pragma unroll
  for (int j = 0; j < DV / 8; j++) {
    float a = o[4 * j + 2 * half], b = o[4 * j + 2 * half + 1];
    if (p.norm) {
      a *= f * (p.weight != 0 ? toFloat(p.weight[8 * j + 2 * w.t]) : 1.f);
      b *= f * (p.weight != 0 ? toFloat(p.weight[8 * j + 2 * w.t + 1]) : 1.f);
    }
    out[j] = packBf16(a, b);
  }
  storePieces<DV / 8, 1>(p.out + n * p.ldout + (i64)at.h * DV, out, 0, w.t, live);
}

// Out2 = A_2·V.
__device__ __forceinline__ void storeSecond(const HopperForward& p, const Place& at, const Thread& w,
                                            const float (&o)[DV / 2], int half) {
  const int row = w.row + 8 * half;
  u32 x[DV / 8];
  if (p.out2 == 0) return;
#pragma unroll
  for (int j = 0; j < DV / 8; j++) x[j] = packBf16(o[4 * j + 2 * half], o[4 * j + 2 * half + 1]);
  storePieces<DV / 8, 1>(p.out2 + (at.n0 + row) * p.ldout2 + (i64)at.h * DV, x, 0, w.t, row < at.rows);
}

// o becomes A_i·V, and its row's LSE is stored.
__device__ __forceinline__ void normalise(const HopperForward& p, const Place& at, const Thread& w, float (&o)[DV / 2],
                                          const float (&top)[2], const float (&sum)[2], int map) {
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const int row = w.row + 8 * half;
    const float l = rowSum(sum[half]), inv = 1.f / l;
#pragma unroll
    for (int j = 0; j < DV / 8; j++) o[4 * j + 2 * half] *= inv, o[4 * j + 2 * half + 1] *= inv;
    if (p.lse != 0 && w.t == 0 && row < at.rows)
      p.lse[(at.n0 + row) * p.ldlse + at.h * MAPS + map] = (top[half] + lg2(l)) * LN2;
  }
}

__device__ __forceinline__ float lambda(const HopperForward& p, const Place& at, int row) {
  if (!p.each) return p.lam[0];
  return row < at.rows ? p.lam[(at.n0 + row) * p.ldlam + at.h] : 0.f;
}

// Sums, difference, norm and stores.
__device__ __forceinline__ void finish(const HopperForward& p, const Place& at, const Thread& w, State& x, u32 base) {
  const u32 room = base + AT_K + (threadIdx.x & 127) * 4;  // for A_2·V as fp32, a thread's own elements
#pragma unroll
  for (int i = 0; i < PER; i++) normalise(p, at, w, x.o[i], x.top[i], x.sum[i], PER == MAPS ? i : w.wg);
  if (PER < MAPS) {
    barrierOf(MAP2_DONE, 256);  // all of K has been read
    if (w.wg == 1) {
#pragma unroll
      for (int i = 0; i < DV / 2; i++) stShared(room + i * 512, x.o[0][i]);
    }
    barrierOf(MAP2_READY, 256);
    if (w.wg == 1) {
      storeSecond(p, at, w, x.o[0], 0);
      storeSecond(p, at, w, x.o[0], 1);
      return;
    }
  }
#pragma unroll
  for (int half = 0; half < 2; half++) {
    if (MAPS == 2) {
      const float lam = lambda(p, at, w.row + 8 * half);
      if (PER == 2) storeSecond(p, at, w, x.o[PER - 1], half);
#pragma unroll
      for (int i = 0; i < DV / 2; i++)
        if ((i >> 1 & 1) == half) x.o[0][i] -= lam * (PER == 2 ? x.o[PER - 1][i] : ldShared(room + i * 512));
    }
    storeRow(p, at, w, x.o[0], half);
  }
}
