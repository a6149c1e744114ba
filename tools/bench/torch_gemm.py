"""One matrix product y = x·Wᵀ by PyTorch on a CPU: ROWS OUT IN THREADS REPS fp32|bf16. Prints the seconds of each repetition as JSON."""
import json
import os
import sys
import time

m, n, k, threads, reps = map(int, sys.argv[1:6])
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # its libraries look at these when they are loaded
    os.environ[name] = str(threads)
import torch
import torch.nn.functional as F

dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[sys.argv[6]]
torch.set_num_threads(threads)
x, w = ((torch.rand(r, k) - 0.5).to(dtype) for r in (m, n))
seconds = []
with torch.no_grad():
    for i in range(reps + 3):
        begin = time.perf_counter()
        F.linear(x, w)
        if i >= 3:
            seconds.append(time.perf_counter() - begin)
print(json.dumps(dict(name=f"PyTorch {torch.__version__} {sys.argv[6]}", m=m, n=n, k=k, threads=threads, seconds=seconds)))
