// kernels/early.cuh for a CPU, see ptx.cuh beside this.
#ifndef EARLY
#define EARLY
static void beginNext() {}
static void waitEarlier() { emu::waitEarlier(); }
#endif
