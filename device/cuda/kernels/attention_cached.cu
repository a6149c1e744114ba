// AttentionCached, see attn_cached.cuh.
#define MAPS 1
#define KERNEL_SPLIT attention_split
#define KERNEL_SPLITS attention_splits
#define KERNEL_JOIN attention_join
#include "attn_cached.cuh"
