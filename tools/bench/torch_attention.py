"""Attention alone in PyTorch, forward and forward+backward, every way and backend; one JSON object with all rows.

python3 torch_attention.py --dim 2048 --head 128 --seq 2048,8192 --tokens 32768
"""
import argparse

import torch

import peer
import torch_mix as mix


def shapes(a):
    for seq in a.seq:
        for arch in a.arch:
            heads = a.dim // (a.head * mix.ARCHS[arch]["values"])
            yield arch, a.tokens // seq, heads, seq


def rows(a):
    out = []
    x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    busy = lambda: torch.mm(x, x)  # as antiphase bench does: a GPU at work runs at a lower clock than one that waits
    for arch, batch, heads, seq in shapes(a):
        q, k, v = mix.tensors(arch, batch, heads, seq, a.head)
        for name, way in mix.ARCHS[arch]["ways"].items():
            for backend in a.backend:
                about = dict(arch=arch, way=name, backend=backend, dim=a.dim, head_dim=a.head, seq=seq, batch=batch)
                try:
                    forward, both = mix.measure(way, backend, q, k, v, a.warmup, a.reps, busy)
                except RuntimeError as e:
                    out.append(dict(about, error=str(e).splitlines()[0][:120]))
                    continue
                for what, sec in (("forward", forward), ("forward+backward", both)):
                    out.append(peer.row(f"{arch} {name} {backend} T={seq} {what}", sec, lambda s: 1e3 * s, "ms", **about, **{"pass": what}))
        del q, k, v
        torch.cuda.empty_cache()
    return out


def main():
    ints = lambda s: [int(x) for x in s.split(",")]
    names = lambda s: s.split(",")
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--arch", type=names, default=list(mix.ARCHS))
    p.add_argument("--dim", type=int, default=2048)
    p.add_argument("--head", type=int, default=128)
    p.add_argument("--seq", type=ints, default=[2048, 8192])
    p.add_argument("--tokens", type=int, default=32768)
    p.add_argument("--backend", type=names, default=list(mix.BACKENDS))
    p.add_argument("--reps", type=int, default=10)
    p.add_argument("--warmup", type=int, default=3)
    p.add_argument("--serve", action="store_true", help="stay and measure once for every line of standard input")
    a = p.parse_args()
    peer.run(lambda: dict(torch=torch.__version__, gpu=torch.cuda.get_device_name(), rows=rows(a)), a.serve)


main()
