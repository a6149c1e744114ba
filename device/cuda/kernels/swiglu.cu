// SwiGLU: y = g·σ(g)·u for gu = [g | u]. A thread computes 8 adjacent elements. Bound: reading gu and writing y, once
// each.
#include "early.cuh"
#include "gate.cuh"

// u begins at column F: if that is not a multiple of 8, it is not 16-byte aligned, but 8-byte aligned with vec 2.
__device__ __forceinline__ void loadU(float* u, const bf16* p, int n, int vec) {
  if (vec != 2 || n < 8) {
    load8(u, p, n, vec == 1);
    return;
  }
  uint2 a = *(const uint2*)p, b = *(const uint2*)(p + 4);
  u[0] = lowBf16(a.x), u[1] = highBf16(a.x), u[2] = lowBf16(a.y), u[3] = highBf16(a.y);
  u[4] = lowBf16(b.x), u[5] = highBf16(b.x), u[6] = lowBf16(b.y), u[7] = highBf16(b.y);
}
__device__ __forceinline__ void storeU(bf16* p, const float* u, int n, int vec) {
  if (vec != 2 || n < 8) {
    store8(p, u, n, vec == 1);
    return;
  }
  *(uint2*)p = {packBf16(u[0], u[1]), packBf16(u[2], u[3])};
  *(uint2*)(p + 4) = {packBf16(u[4], u[5]), packBf16(u[6], u[7])};
}

extern "C" __global__ void swiglu(bf16* y, i64 ldy, const bf16* gu, i64 ldg, i64 rows, i64 cols, int vec) {
  beginNext();
  waitEarlier();
  FOR_EACH_8(r, c, rows, cols) {
    float g[8], u[8];
    int n = left8(c, cols);
    load8(g, gu + r * ldg + c, n, vec);
    loadU(u, gu + r * ldg + cols + c, n, vec);
#pragma unroll
    for (int i = 0; i < 8; i++) u[i] = gated(g[i], u[i]);
    store8(y + r * ldy + c, u, n, vec);
  }
}

// SwiGLUBackward: dg = dy·u·σ·(1 + g·(1−σ)), du = dy·g·σ, and y again. dgu may alias gu and y dy: a thread reads its 24
// elements before it writes as many.
extern "C" __global__ void swiglu_backward(bf16* dgu, i64 lddg, bf16* y, i64 ldy, const bf16* dy, i64 lddy,
                                           const bf16* gu, i64 ldg, i64 rows, i64 cols, int vec) {
  FOR_EACH_8(r, c, rows, cols) {
    float g[8], u[8], d[8];
    int n = left8(c, cols);
    load8(g, gu + r * ldg + c, n, vec);
    loadU(u, gu + r * ldg + cols + c, n, vec);
    load8(d, dy + r * lddy + c, n, vec);
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const float s = logistic(g[i]), a = g[i] * s, du = d[i] * a, dg = d[i] * u[i] * s * (1.f + g[i] * (1.f - s));
      d[i] = u[i] * a;
      g[i] = dg;
      u[i] = du;
    }
    store8(y + r * ldy + c, d, n, vec);
    store8(dgu + r * lddg + c, g, n, vec);
    storeU(dgu + r * lddg + cols + c, u, n, vec);
  }
}
