// Attention forward, see attn_forward.cuh.
#define MAPS 1
#define KEYS 1
#define KERNEL attention_forward
#include "attn_forward.cuh"
