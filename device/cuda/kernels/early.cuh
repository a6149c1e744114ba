// Starting before one's turn (Hopper's programmatic dependent launch). A kernel calls beginNext first, so that the next one may take
// the places that this one leaves free, and waitEarlier before it touches what an early kernel writes: from there on all earlier work is
// done and seen. A kernel must not end before the work before it has, or the kernel after the next would start on results that are not there:
// some block must wait in any case, also where it has nothing to do; others without work may leave. Before that a kernel may read what no early kernel
// writes: positions, slots and page tables, and weights and cached keys of which the launcher says so (early.go). Elsewhere these are nothing.
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
