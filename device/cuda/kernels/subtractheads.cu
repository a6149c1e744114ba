// SubtractHeads: out_h = a_h − λ_h·a_{H+h} for a = [a_0 … a_{2H−1}], heads of width dv. λ of row r and head h is
// lam[r·ldl + h·step], with ldl = step = 0 for one λ. A thread computes 8 adjacent elements of a head. Bound: reading a
// and writing out, once each.
#include "early.cuh"

extern "C" __global__ void subtractheads(bf16* out, i64 ldo, const bf16* a, i64 lda, const float* lam, i64 ldl,
                                         int step, u32 rows, u32 heads, u32 dv, int vec) {
  beginNext();
  const u32 pieces = (dv + 7) / 8, at = blockIdx.x * blockDim.x + threadIdx.x, unit = at / pieces;
  const u32 r = unit / heads, h = unit % heads, c = at % pieces * 8;
  if (r >= rows) return;
  waitEarlier();
  const int n = left8(c, dv);
  const bf16* first = a + r * lda + h * dv + c;
  const float l = lam[r * ldl + h * step];
  float x[8], y[8];
  load8(x, first, n, vec);
  load8(y, first + heads * dv, n, vec);
#pragma unroll
  for (int i = 0; i < 8; i++) x[i] -= l * y[i];
  store8(out + r * ldo + h * dv + c, x, n, vec);
}

// SubtractHeadsBackward: da_h = dout_h, da_{H+h} = −λ_h·dout_h, dλ_h = −Σ dout_h·a_{H+h}. A head of a row has `lanes`
// adjacent lanes of a warp, a power of two: lane l takes pieces of 8 elements number l, l + lanes, … The sum is a fixed
// tree that depends on dv alone. Bound: reading dout and half of a and writing da, once each.
extern "C" __global__ void subtractheads_backward(bf16* da, i64 ldda, float* dlam, i64 lddl, const bf16* dout, i64 lddo,
                                                  const bf16* a, i64 lda, const float* lam, i64 ldl, int step, u32 rows,
                                                  u32 heads, u32 dv, u32 lanes, int vec) {
  const u32 at = blockIdx.x * blockDim.x + threadIdx.x, unit = at / lanes, lane = at % lanes;
  const u32 r = unit / heads, h = unit % heads;
  const bool there = r < rows; // all lanes take part in the sums
  float sum = 0.f;
  if (there) {
    const float l = lam[r * ldl + h * step];
    for (u32 c = lane * 8; c < dv; c += lanes * 8) {
      const int n = left8(c, dv);
      float d[8], y[8];
      load8(d, dout + r * lddo + h * dv + c, n, vec);
      load8(y, a + r * lda + (heads + h) * dv + c, n, vec);
      bf16* first = da + r * ldda + h * dv + c;
      store8(first, d, n, vec);
#pragma unroll
      for (int i = 0; i < 8; i++) {
        sum += d[i] * y[i];
        d[i] *= -l;
      }
      store8(first + heads * dv, d, n, vec);
    }
  }
  for (u32 o = lanes / 2; o > 0; o /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  if (there && lane == 0) dlam[r * lddl + h] = -sum;
}
