// Early start (Hopper's programmatic dependent launch). A kernel calls beginNext first, so that the next one may occupy
// the SMs that this one leaves free, and waitEarlier before it touches anything an early kernel writes: after it all
// earlier work is done and visible. A kernel must not end before the preceding work has, or the kernel after the next
// would start on missing results: at least one block must wait, even without work; others without work may exit. Before
// waitEarlier a kernel may read what no early kernel writes: positions, slots and page tables, and weights and cached
// keys that the launcher declares settled (early.go). No-ops on other architectures.
#ifndef EARLY
#define EARLY
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
__device__ __forceinline__ void beginNext() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ __forceinline__ void waitEarlier() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
#else
__device__ __forceinline__ void beginNext() {}
__device__ __forceinline__ void waitEarlier() {}
#endif
#endif
