// Sigmoid: y = 1/(1+e^−x), and backward dx = dy·y·(1−y). A thread computes 8 adjacent elements; outputs may alias
// inputs.
#include "early.cuh"
#include "gate.cuh"

template <typename T>
__device__ __forceinline__ void forward(T* y, i64 ldy, const T* x, i64 ldx, i64 rows, i64 cols, int vec) {
  beginNext();
  waitEarlier();
  FOR_EACH_8(r, c, rows, cols) {
    float v[8];
    int n = left8(c, cols);
    load8(v, x + r * ldx + c, n, vec);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = sigmoid(v[i]);
    store8(y + r * ldy + c, v, n, vec);
  }
}

template <typename T>
__device__ __forceinline__ void backward(T* dx, i64 lddx, const T* dy, i64 lddy, const T* y, i64 ldy, i64 rows,
                                         i64 cols, int vec) {
  FOR_EACH_8(r, c, rows, cols) {
    float d[8], v[8];
    int n = left8(c, cols);
    load8(d, dy + r * lddy + c, n, vec);
    load8(v, y + r * ldy + c, n, vec);
#pragma unroll
    for (int i = 0; i < 8; i++) d[i] *= v[i] * (1.f - v[i]);
    store8(dx + r * lddx + c, d, n, vec);
  }
}

#define SIGMOID(suffix, T)                                                                                          \
  extern "C" __global__ void sigmoid_##suffix(T* y, i64 ldy, const T* x, i64 ldx, i64 rows, i64 cols, int vec) {    \
    forward(y, ldy, x, ldx, rows, cols, vec);                                                                       \
  }                                                                                                                 \
  extern "C" __global__ void sigmoid_backward_##suffix(T* dx, i64 lddx, const T* dy, i64 lddy, const T* y, i64 ldy, \
                                                       i64 rows, i64 cols, int vec) {                               \
    backward(dx, lddx, dy, lddy, y, ldy, rows, cols, vec);                                                          \
  }
SIGMOID(bf16, bf16)
SIGMOID(f32, float)
