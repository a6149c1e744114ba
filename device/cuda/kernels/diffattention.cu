// DiffAttention forward, see attn_forward.cuh.
#define MAPS 2
#define KERNEL diffattention_forward
#include "attn_forward.cuh"
