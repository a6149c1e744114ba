// Rope, in place: (a,b) → (a·cos − b·sin, a·sin + b·cos) with the angle of pos[n]; inverse uses −sin. A thread rotates
// W pairs: 8 of (j, j+Dim/2), 4 of (2j, 2j+1), or one if the head's width or alignment does not allow 16-byte accesses.
// Bound: one read and one write of x; the table stays in cache. A few rows of decoding are bound by latency: the
// position is read before the kernel's turn.
#include "early.cuh"
#include "rope.cuh"

template <int W, bool INTERLEAVED>
__device__ __forceinline__ void turn(bf16* x, i64 ldx, const float* table, i64 ldt, const int* pos, u32 rows, int heads,
                                     int dim, int positions, float sign, int* fault) {
  beginNext();
  u32 half = dim / 2, per = heads * (half / W), at = blockIdx.x * blockDim.x + threadIdx.x;
  u32 r = at / per, unit = at % per;
  if (r >= rows) return;
  u32 head = unit / (half / W), j = unit % (half / W) * W;
  bf16 *at0 = x + r * ldx + head * dim + (INTERLEAVED ? 2 * j : j), *at1 = at0 + (INTERLEAVED ? 1 : half);
  const int p = pos[r];
  waitEarlier();
  float a[8], b[8];
  if (W == 1) a[0] = toFloat(*at0), b[0] = toFloat(*at1);
  else load8(a, at0, 8, true);
  if (W == 8) load8(b, at1, 8, true);
  if (p < 0 || p >= positions) {
    if (unit == 0) report(fault, FAULT_ROPE, p, positions);
    return;
  }
  const float *cosine = table + p * ldt + j, *sine = cosine + half;
  if (W == 1) {
    rotate(a[0], b[0], cosine[0], sign * sine[0]);
    *at0 = toBf16(a[0]), *at1 = toBf16(b[0]);
  } else if (INTERLEAVED) {
    rotatePairs(a, cosine, sine, sign);
    store8(at0, a, 8, true);
  } else {
    rotateHalves(a, b, cosine, sine, sign);
    store8(at0, a, 8, true);
    store8(at1, b, 8, true);
  }
}

#define ROPE(name, W, INTERLEAVED)                                                                                    \
  extern "C" __global__ void name(bf16* x, i64 ldx, const float* table, i64 ldt, const int* pos, int rows, int heads, \
                                  int dim, int positions, float sign, int* fault) {                                   \
    turn<W, INTERLEAVED>(x, ldx, table, ldt, pos, rows, heads, dim, positions, sign, fault);                          \
  }
ROPE(rope_half_1, 1, false)
ROPE(rope_half_8, 8, false)
ROPE(rope_pairs_1, 1, true)
ROPE(rope_pairs_4, 4, true)
