// DiffAttentionCached, see attn_cached.cuh.
#define MAPS 2
#define KERNEL_SPLIT diffattention_split
#define KERNEL_SPLITS diffattention_splits
#define KERNEL_JOIN diffattention_join
#include "attn_cached.cuh"
