// The arithmetic of SwiGLU and Sigmoid, for the ops (swiglu.cu, sigmoid.cu) and for products fused with them
// (turn.cuh).
#ifndef GATE
#define GATE
// 1/(1+e^−x) in fp32 precision.
__device__ __forceinline__ float sigmoid(float x) { return 1.f / (1.f + expf(-x)); }

// The same for bf16. The divisor is below 2^126 for x > −87; beyond that the quotient is 0, which is right for bf16.
__device__ __forceinline__ float logistic(float x) { return __fdividef(1.f, 1.f + __expf(-x)); }

__device__ __forceinline__ float gated(float g, float u) { return u * (g * logistic(g)); }
#endif
