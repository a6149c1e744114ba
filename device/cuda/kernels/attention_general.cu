// Attention of any shape, see attn_general.cuh.
#define MAPS 1
#define KERNEL_FORWARD attention_general_forward
#define KERNEL_QUERIES attention_general_queries
#define KERNEL_KEYS attention_general_keys
#include "attn_general.cuh"
