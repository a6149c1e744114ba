// Attention backward, see attn_backward.cuh.
#define MAPS 1
#define KEYS 1
#define KERNEL attention_backward
#define KERNEL_QUERIES attention_queries
#define KERNEL_KEYS attention_keys
#define KERNEL_ROWS attention_rows
#include "attn_tile.cuh"
#ifdef SPLIT
#include "attn_split.cuh"
#else
#include "attn_backward.cuh"
#endif
