// AttentionProbs: out[r,s] = softmax_s(scale·q_r·k_s) for s ≤ row+r, 0 beyond, or the scaled logits. One block per row,
// a warp per key at a time; out holds the logits temporarily. For inspection, not for speed.
extern "C" __global__ void __launch_bounds__(256)
attention_probs(float* out, const bf16* q, const bf16* k, i64 ldout, i64 ldq, i64 ldk, int row, int T, int D,
                float scale, int logits) {
  __shared__ float room[32];
  const int last = row + blockIdx.x, lane = threadIdx.x & 31;
  float* y = out + blockIdx.x * ldout;
  const bf16* x = q + last * ldq;
  float top = __uint_as_float(0xff800000u);
  for (int s = threadIdx.x >> 5; s <= last; s += 8) {
    float z = 0.f;
    for (int c = lane; c < D; c += 32) z = fmaf(toFloat(x[c]), toFloat(k[s * ldk + c]), z);
    z = warpSum(z) * scale;
    if (lane == 0) y[s] = z;
    top = fmaxf(top, z);
  }
  for (int s = last + 1 + threadIdx.x; s < T; s += 256) y[s] = 0.f;
  if (logits) return;
  top = blockMax(top, room); // and every logit is written
  float z = 0.f;
  for (int s = threadIdx.x; s <= last; s += 256) {
    y[s] = expf(y[s] - top);
    z += y[s];
  }
  z = 1.f / blockSum(z, room);
  for (int s = threadIdx.x; s <= last; s += 256) y[s] *= z;
}
