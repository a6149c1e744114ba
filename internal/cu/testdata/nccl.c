// A library with NCCL's entry points that keeps the arguments of the last call, to hold the binding to NCCL's signatures.
#include <string.h>

typedef struct { char internal[128]; } ncclUniqueId;
long long last[8];
char last_id[128];
int async_error;
static char message[64] = "Duplicate GPU detected : rank 1 and rank 0";

static int keep(long long a, long long b, long long c, long long d, long long e, long long f, long long g, long long which) {
  last[0] = a; last[1] = b; last[2] = c; last[3] = d; last[4] = e; last[5] = f; last[6] = g; last[7] = which;
  return 0;
}

int fake_nothing(void *ctx) { return 0; }

// Streams and events are numbers; the log holds pairs of an event and a stream: negative where the stream waits.
long long made, pairs[64];
int logged;
int fake_make(unsigned long long *out, unsigned flags) { *out = ++made; return 0; }
int fake_record(void *event, void *stream) { pairs[logged++] = (long long)event; pairs[logged++] = (long long)stream; return 0; }
int fake_wait(void *stream, void *event, unsigned flags) { pairs[logged++] = -(long long)event; pairs[logged++] = (long long)stream; return 0; }
int ncclGetVersion(int *v) { *v = 22803; return 0; }
int ncclGetUniqueId(ncclUniqueId *id) { for (int i = 0; i < 128; i++) id->internal[i] = (char)(i * 7 + 1); return 0; }
int ncclCommInitRank(void **comm, int nranks, ncclUniqueId id, int rank) {
  memcpy(last_id, id.internal, 128);
  *comm = (void *)0xc0ffee;
  if (rank == nranks) return 5;
  return keep(nranks, rank, 0, 0, 0, 0, 0, 1);
}
int ncclAllReduce(const void *s, void *r, size_t n, int t, int op, void *comm, void *stream) {
  return keep((long long)s, (long long)r, n, t, op, (long long)comm, (long long)stream, 2);
}
int ncclReduceScatter(const void *s, void *r, size_t n, int t, int op, void *comm, void *stream) {
  return keep((long long)s, (long long)r, n, t, op, (long long)comm, (long long)stream, 3);
}
int ncclAllGather(const void *s, void *r, size_t n, int t, void *comm, void *stream) {
  return keep((long long)s, (long long)r, n, t, (long long)comm, (long long)stream, 0, 4);
}
int ncclBroadcast(const void *s, void *r, size_t n, int t, int root, void *comm, void *stream) {
  return keep((long long)s, (long long)r, n, t, root, (long long)comm, (long long)stream, 5);
}
int ncclCommGetAsyncError(void *comm, int *e) { *e = async_error; return 0; }
int ncclCommAbort(void *comm) { return keep((long long)comm, 0, 0, 0, 0, 0, 0, 6); }
int ncclCommDestroy(void *comm) { return keep((long long)comm, 0, 0, 0, 0, 0, 0, 7); }
const char *ncclGetErrorString(int code) { return "some error"; }
const char *ncclGetLastError(void *comm) { return message; }
