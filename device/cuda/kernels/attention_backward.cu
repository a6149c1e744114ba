// Attention backward, see attn_backward.cuh.
#define MAPS 1
#define KEYS 1
#define KERNEL attention_backward
#define KERNEL_QUERIES attention_queries
#include "attn_backward.cuh"
