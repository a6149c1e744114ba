// DiffAttention backward, see attn_backward.cuh.
#define MAPS 2
#define KERNEL diffattention_backward
#define KERNEL_QUERIES diffattention_queries
#define KERNEL_KEYS diffattention_keys
#define KERNEL_ROWS diffattention_rows
#ifndef AHEAD
#define AHEAD 0 // registers are short here: 9 to 23 % faster without the look-ahead and with EARLY
#endif
#include "attn_tile.cuh"
#ifdef SPLIT
#include "attn_split.cuh"
#else
#include "attn_backward.cuh"
#endif
