// Add: dst += src, the sum in fp32, rounded once to dst's dtype. A thread adds 8 adjacent elements. Bound: reading both
// and writing one.
template <typename D, typename S>
__device__ void addInto(D* dst, i64 ldd, const S* src, i64 lds, i64 rows, i64 cols, int vec) {
  FOR_EACH_8(r, c, rows, cols) {
    float x[8], y[8];
    int n = left8(c, cols);
    load8(x, src + r * lds + c, n, vec);
    load8(y, dst + r * ldd + c, n, vec);
#pragma unroll
    for (int i = 0; i < 8; i++) y[i] += x[i];
    store8(dst + r * ldd + c, y, n, vec);
  }
}

#define ADD(name, D, S)                                                                                            \
  extern "C" __global__ void name(D* dst, i64 ldd, const S* src, i64 lds, i64 rows, i64 cols, int vec) {           \
    addInto(dst, ldd, src, lds, rows, cols, vec);                                                                  \
  }
ADD(add_bf16_bf16, bf16, bf16)
ADD(add_bf16_f32, bf16, float)
ADD(add_f32_bf16, float, bf16)
ADD(add_f32_f32, float, float)
