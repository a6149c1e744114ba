// DiffAttention of any shape, see attn_general.cuh.
#define MAPS 2
#define KERNEL_FORWARD diffattention_general_forward
#define KERNEL_QUERIES diffattention_general_queries
#define KERNEL_KEYS diffattention_general_keys
#include "attn_general.cuh"
