// Attention backward, see attn_backward.cuh.
#define MAPS 1
#define KEYS 1
#define KERNEL attention_backward
#define KERNEL_QUERIES attention_queries
#ifndef AHEAD
#define AHEAD 0 // registers are short at d = 128: 9 to 23 % faster without the look-ahead, and no difference at 64
#endif
#include "attn_backward.cuh"
