// Copy between dtypes: dst = src, rounded to nearest even. Equal dtypes use the driver's copy. A thread converts 8
// adjacent elements. Bound: one read and one write of each, 6 bytes per element.
template <typename D, typename S>
__device__ void copyInto(D* dst, i64 ldd, const S* src, i64 lds, i64 rows, i64 cols, int vec) {
  FOR_EACH_8(r, c, rows, cols) {
    float x[8];
    int n = left8(c, cols);
    load8(x, src + r * lds + c, n, vec);
    store8(dst + r * ldd + c, x, n, vec);
  }
}

extern "C" __global__ void copy_bf16_f32(bf16* dst, i64 ldd, const float* src, i64 lds, i64 rows, i64 cols, int vec) {
  copyInto(dst, ldd, src, lds, rows, cols, vec);
}
extern "C" __global__ void copy_f32_bf16(float* dst, i64 ldd, const bf16* src, i64 lds, i64 rows, i64 cols, int vec) {
  copyInto(dst, ldd, src, lds, rows, cols, vec);
}
