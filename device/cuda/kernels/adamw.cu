// AdamW over flat tensors, see device.AdamW: with clip = min(1, max/√GradSq),
//
//	g' = g·clip,  m = β1·m + (1−β1)·g',  v = β2·v + (1−β2)·g'²,  p −= lr·((m/c1)/(√(v/c2)+ε) + decay·p)
//
// p is the fp32 master with w its rounded copy, or w itself, or w and the master are p's halves: w is p rounded to
// bf16, ties away from zero, and the master the lower 16 bits. Rates and GradSq are read on the device, so a recorded
// step can be replayed with new ones. If GradSq is not finite nothing changes. A thread updates 8 adjacent elements.
// Bound: reading p, m, v, g and writing p, m, v (and w) once: 28 bytes per element in halves, 30 with a bf16 copy.
struct Factors { float beta1, rest1, beta2, rest2, eps, decay, maxNorm; }; // rest = 1 − β, as precise as fp32 can be

// The layout of the parameters: 8 of them starting at element at.
template <typename T> struct Whole {
  T* w;
  float* master;
  __device__ __forceinline__ void load(float* p, i64 at, int some, int vec) const {
    if (master) load8(p, master + at, some, vec);
    else load8(p, w + at, some, vec);
  }
  __device__ __forceinline__ void store(float* p, i64 at, int some, int round, int vec) const {
    if (master) store8(master + at, p, some, vec);
    if (round) {
#pragma unroll
      for (int i = 0; i < 8; i++) p[i] = toFloat(toBf16(p[i]));
    }
    store8(w + at, p, some, vec);
  }
};

struct Halves {
  bf16 *w, *lower;
  __device__ __forceinline__ void load(float* p, i64 at, int some, int vec) const {
    const Raw a = loadRaw(w + at, some, vec), b = loadRaw(lower + at, some, vec);
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const u32 up = (a.x[i / 2] >> 16 * (i % 2)) & 0xffff, low = (b.x[i / 2] >> 16 * (i % 2)) & 0xffff;
      p[i] = __uint_as_float((up - (low >> 15)) << 16 | low); // rounded up if the lower half is at least one half
    }
  }
  __device__ __forceinline__ void store(float* p, i64 at, int some, int, int vec) const {
    Raw a, b;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const u32 x = __float_as_uint(p[2 * i]), y = __float_as_uint(p[2 * i + 1]);
      a.x[i] = (x + 0x8000) >> 16 | ((y + 0x8000) & 0xffff0000u);
      b.x[i] = (x & 0xffff) | y << 16;
    }
    storeRaw(w + at, a, some, vec);
    storeRaw(lower + at, b, some, vec);
  }
};

template <typename P>
__device__ __forceinline__ void step(P params, float* m, float* v, const float* g, const float* rate,
                                     const float* gradSq, i64 n, Factors f, int round, int vec) {
  float sq = gradSq[0];
  if (!(fabsf(sq) < __uint_as_float(0x7f800000u))) return;
  float clip = f.maxNorm > 0.f ? fminf(1.f, f.maxNorm / sqrtf(sq)) : 1.f;
  float lr = rate[0], c1 = rate[1], c2 = rate[2];
  for (i64 at = ((i64)blockIdx.x * blockDim.x + threadIdx.x) * 8; at < n; at += (i64)gridDim.x * blockDim.x * 8) {
    int some = left8(at, n);
    float p[8], a[8], b[8], d[8];
    params.load(p, at, some, vec);
    load8(a, m + at, some, vec);
    load8(b, v + at, some, vec);
    load8(d, g + at, some, vec);
#pragma unroll
    for (int i = 0; i < 8; i++) {
      float e = d[i] * clip;
      a[i] = f.beta1 * a[i] + f.rest1 * e;
      b[i] = f.beta2 * b[i] + f.rest2 * e * e;
      p[i] -= lr * (a[i] / c1 / (sqrtf(b[i] / c2) + f.eps) + f.decay * p[i]);
    }
    store8(m + at, a, some, vec);
    store8(v + at, b, some, vec);
    params.store(p, at, some, round, vec);
  }
}

#define ADAMW(name, W, MASTER, P)                                                                               \
  extern "C" __global__ void __launch_bounds__(256)                                                             \
  name(W* w, MASTER* master, float* m, float* v, const float* g, const float* rate, const float* gradSq, i64 n, \
       float beta1, float rest1, float beta2, float rest2, float eps, float decay, float maxNorm,               \
       int round, int vec) {                                                                                    \
    Factors f = {beta1, rest1, beta2, rest2, eps, decay, maxNorm};                                              \
    step(P{w, master}, m, v, g, rate, gradSq, n, f, round, vec);                                                \
  }
ADAMW(adamw_bf16, bf16, float, Whole<bf16>)
ADAMW(adamw_f32, float, float, Whole<float>)
ADAMW(adamw_split, bf16, bf16, Halves)
