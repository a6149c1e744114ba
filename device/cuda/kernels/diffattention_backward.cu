// DiffAttention backward, see attn_backward.cuh.
#define MAPS 2
#define KERNEL diffattention_backward
#define KERNEL_QUERIES diffattention_queries
#include "attn_backward.cuh"
