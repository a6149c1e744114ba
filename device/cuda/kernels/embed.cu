// Embed: out[n,:] = table[ids[n],:], bits unchanged. Bound: reading and writing N·C elements. An id outside [0,V) is
// reported and gives zeros; ELSEWHERE, which another rank holds, gives zeros.
#include "early.cuh"

extern "C" __global__ void embed(bf16* out, i64 ldo, const bf16* table, i64 ldt, const int* ids, i64 rows, i64 cols,
                                 int vocab, int vec, int* fault) {
  beginNext();
  waitEarlier();
  FOR_EACH_8(r, c, rows, cols) {
    int id = ids[r], n = left8(c, cols);
    bool ok = id >= 0 && id < vocab;
    if (!ok && id != ELSEWHERE && c == 0) report(fault, FAULT_EMBED, id, vocab);
    const bf16* from = table + (ok ? id : 0) * ldt + c;
    bf16* to = out + r * ldo + c;
    if (vec && n == 8) {
      uint4 v = *(const uint4*)from;
      if (!ok) v.x = v.y = v.z = v.w = 0;
      *(uint4*)to = v;
    } else {
      for (int i = 0; i < n; i++) to[i] = ok ? from[i] : (bf16)0;
    }
  }
}

// EmbedBackward: dtable[ids[n],:] += dout[n,:], rows in order of n, without float atomics: the rows are sorted into
// buckets by id, each in order of n (a counting sort over chunks of 1024 rows), and a block adds up one bucket.
//
//	rank    in its chunk, how many earlier rows have the row's id; the last of them writes their number to
//	        count[chunk, id]
//	offsets per id, count becomes the exclusive sum over chunks; ids that occur get an entry in `used` and a piece
//	        of `list`
//	place   list[base[id] + count[chunk, id] + rank] = n
//	gather  used[blockIdx.x]: dtable[id,:] += Σ dout[list[i],:] in order, 8 columns per thread
//
// The location of a bucket depends on the order of integer atomics, its content does not. Bound: one read of dout, and
// one read and write of each row of dtable that occurs (and 4·V·N/1024 bytes of counts).
extern "C" __global__ void __launch_bounds__(1024)
embed_rank(int* rank, int* count, const int* ids, int rows, int vocab, int* fault) {
  __shared__ int id[1024];
  int n = blockIdx.x * 1024 + threadIdx.x, mine = n < rows ? ids[n] : -1;
  bool ok = mine >= 0 && mine < vocab;
  if (n < rows && !ok && mine != ELSEWHERE) report(fault, FAULT_EMBED_BACKWARD, mine, vocab);
  id[threadIdx.x] = ok ? mine : -1;
  __syncthreads();
  int before = 0, after = 0;
  for (int i = 0; i < 1024; i++) {
    bool same = id[i] == mine;
    before += same && i < (int)threadIdx.x;
    after += same && i > (int)threadIdx.x;
  }
  if (n < rows) rank[n] = ok ? before : -1;
  if (ok && after == 0) count[(i64)blockIdx.x * vocab + mine] = before + 1;
}

struct Bucket { int id, base, size, pad; };

extern "C" __global__ void embed_offsets(Bucket* used, int* base, int* count, int* cursor, int chunks, int vocab) {
  int id = blockIdx.x * blockDim.x + threadIdx.x;
  if (id >= vocab) return;
  int sum = 0;
  for (int p = 0; p < chunks; p++) {
    int c = count[(i64)p * vocab + id];
    count[(i64)p * vocab + id] = sum;
    sum += c;
  }
  if (sum == 0) return;
  int at = atomicAdd(&cursor[0], 1);
  base[id] = atomicAdd(&cursor[1], sum);
  used[at].id = id;
  used[at].base = base[id];
  used[at].size = sum;
}

extern "C" __global__ void embed_place(int* list, const int* base, const int* count, const int* rank, const int* ids,
                                       int rows, int vocab) {
  int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= rows || rank[n] < 0) return;
  int id = ids[n];
  list[base[id] + count[(i64)(n >> 10) * vocab + id] + rank[n]] = n;
}

extern "C" __global__ void __launch_bounds__(128)
embed_gather(float* dtable, i64 ldt, const bf16* dout, i64 ldo, const Bucket* used, const int* list, const int* cursor,
             int cols, int vec) {
  if ((int)blockIdx.x >= cursor[0]) return;
  int id = used[blockIdx.x].id, base = used[blockIdx.x].base, size = used[blockIdx.x].size;
  int c = (blockIdx.y * 128 + threadIdx.x) * 8;
  if (c >= cols) return;
  int n = left8(c, cols);
  float sum[8], v[8];
  load8(sum, dtable + id * ldt + c, n, vec);
#pragma unroll 4
  for (int i = 0; i < size; i++) {
    load8(v, dout + list[base + i] * ldo + c, n, vec);
#pragma unroll
    for (int e = 0; e < 8; e++) sum[e] += v[e];
  }
  store8(dtable + id * ldt + c, sum, n, vec);
}
