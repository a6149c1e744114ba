// AdamW over flat tensors, see device.AdamW: with clip = min(1, max/√GradSq),
//
//   g' = g·clip,  m = β1·m + (1−β1)·g',  v = β2·v + (1−β2)·g'²,  p −= lr·((m/c1)/(√(v/c2)+ε) + decay·p)
//
// p is the fp32 master with w its rounded copy, or w itself. Rates and GradSq are read on the device, so a recorded step may
// be replayed with new ones; GradSq that is not finite leaves everything as it is. A thread updates 8 neighbours; bound by
// reading p, m, v, g and writing p, m, v, w once: 30 bytes an element with a bf16 copy.
struct Factors { float beta1, rest1, beta2, rest2, eps, decay, maxNorm; }; // rest = 1 − β, as precise as fp32 can be

template <typename T>
__device__ __forceinline__ void step(T* w, float* master, float* m, float* v, const float* g, const float* rate, const float* gradSq, i64 n, Factors f,
                                     int round, int vec) {
  float sq = gradSq[0];
  if (!(fabsf(sq) < __uint_as_float(0x7f800000u))) return;
  float clip = f.maxNorm > 0.f ? fminf(1.f, f.maxNorm / sqrtf(sq)) : 1.f;
  float lr = rate[0], c1 = rate[1], c2 = rate[2];
  for (i64 at = ((i64)blockIdx.x * blockDim.x + threadIdx.x) * 8; at < n; at += (i64)gridDim.x * blockDim.x * 8) {
    int some = left8(at, n);
    float p[8], a[8], b[8], d[8];
    if (master) load8(p, master + at, some, vec); else load8(p, w + at, some, vec);
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
    if (master) store8(master + at, p, some, vec);
    if (round) {
#pragma unroll
      for (int i = 0; i < 8; i++) p[i] = toFloat(toBf16(p[i]));
    }
    store8(w + at, p, some, vec);
  }
}

#define ADAMW(name, T)                                                                                                                       \
  extern "C" __global__ void __launch_bounds__(256) name(T* w, float* master, float* m, float* v, const float* g, const float* rate,         \
                                                         const float* gradSq, i64 n, float beta1, float rest1, float beta2, float rest2,     \
                                                         float eps, float decay, float maxNorm, int round, int vec) {                        \
    Factors f = {beta1, rest1, beta2, rest2, eps, decay, maxNorm};                                                                           \
    step(w, master, m, v, g, rate, gradSq, n, f, round, vec);                                                                                \
  }
ADAMW(adamw_bf16, bf16)
ADAMW(adamw_f32, float)
