// Attention backward, see attn_backward.cuh.
#define MAPS 1
#define KEYS 1
#define KERNEL attention_backward
#define KERNEL_QUERIES attention_queries
#define KERNEL_KEYS attention_keys
#define KERNEL_ROWS attention_rows
#ifndef AHEAD
#define AHEAD 0 // registers are short here: 9 to 23 % faster without the look-ahead and with EARLY
#endif
#include "attn_tile.cuh"
#ifdef SPLIT
#include "attn_split.cuh"
#else
#include "attn_backward.cuh"
#endif
