"""Training steps in PyTorch on one GPU: tokens per second and memory of a Transformer, DIFF or DIFF V2.

The model is the one that antiphase trains (same widths, tied embedding, RMSNorm, SwiGLU), written as PyTorch runs it fastest: a linear
layer for each projection (fused ones, cut afterwards, cost a tenth more here), scaled_dot_product_attention by the way and backend that
are fastest for the shape, torch.compile, fused AdamW.

python3 torch_train.py --arch diff --layers 12 --dim 768 --heads 6 --head 64 --ffn 2048 --vocab 50304 --seq 2048 --batch 16
"""
import argparse
import contextlib
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import sdpa_kernel

import peer
import torch_mix as mix


def rotate(x, cos, sin):
    """x [B, heads, T, d]; halves of a head are the pairs, which costs least here."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


class Attention(nn.Module):
    def __init__(self, c, layer, way):
        super().__init__()
        a = mix.ARCHS[c.arch]
        self.way, self.d = way, c.head
        self.widths = [c.heads * n * c.head for n in (a["queries"], a["keys"], a["values"])]
        self.heads, self.two = c.heads, a["queries"] == 2
        self.q, self.k, self.v = (nn.Linear(c.dim, w, bias=False) for w in self.widths)
        self.out = nn.Linear(self.widths[2], c.dim, bias=False)
        self.lam = self.scalar = None
        if c.arch == "diff":
            self.start = 0.8 - 0.6 * math.exp(-0.3 * layer)
            self.scalar = nn.Parameter(0.1 * torch.randn(4, c.head))
            self.norm = nn.RMSNorm(2 * c.head, eps=1e-5)
        elif self.two:
            self.lam = nn.Linear(c.dim, c.heads, bias=False)

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        q, k = (rotate(p(x).view(b, t, -1, self.d).transpose(1, 2), cos, sin) for p in (self.q, self.k))
        maps = self.way(q, k, self.v(x).view(b, t, self.heads, -1).transpose(1, 2))
        if not self.two:
            y = maps[0]
        elif self.scalar is not None:
            s = self.scalar.float()
            lam = (s[0] * s[1]).sum().exp() - (s[2] * s[3]).sum().exp() + self.start
            y = self.norm(maps[0] - lam.to(x.dtype) * maps[1]) * (1 - self.start)
        else:
            y = maps[0] - self.lam(x).sigmoid().transpose(1, 2).unsqueeze(-1) * maps[1]
        return self.out(y.transpose(1, 2).reshape(b, t, -1))


class Block(nn.Module):
    def __init__(self, c, layer, way):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(c.dim, eps=1e-5), nn.RMSNorm(c.dim, eps=1e-5)
        self.attn = Attention(c, layer, way)
        self.gate, self.up, self.down = nn.Linear(c.dim, c.ffn, bias=False), nn.Linear(c.dim, c.ffn, bias=False), nn.Linear(c.ffn, c.dim, bias=False)

    def forward(self, x, cos, sin):
        x = x + self.attn(self.norm1(x), cos, sin)
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Model(nn.Module):
    def __init__(self, c, way):
        super().__init__()
        self.embed = nn.Embedding(c.vocab, c.dim)
        self.blocks = nn.ModuleList(Block(c, i, way) for i in range(c.layers))
        self.norm = nn.RMSNorm(c.dim, eps=1e-5)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)
        angle = torch.outer(torch.arange(c.seq).float(), 10000.0 ** (-torch.arange(0, c.head, 2).float() / c.head))
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, ids, targets):
        x = self.embed(ids)
        cos, sin = self.cos.to(torch.bfloat16), self.sin.to(torch.bfloat16)
        for b in self.blocks:
            x = b(x, cos, sin)
        y = F.linear(self.norm(x), self.embed.weight)
        return F.cross_entropy(y.float().view(-1, y.shape[-1]), targets.reshape(-1))


class Trainer:
    def __init__(self, c):
        torch.manual_seed(0)
        torch.set_float32_matmul_precision("high")
        self.tried = mix.best(c.arch, c.batch, c.heads, c.seq, c.head, c.backend, c.way)
        torch.cuda.empty_cache()
        _, name, self.backend = self.tried[0]
        m = Model(c, mix.ARCHS[c.arch]["ways"][name]).cuda()
        self.ctx = contextlib.nullcontext
        if c.weights == "bf16":
            m = m.to(torch.bfloat16)  # moments are bf16 too: less exact than fp32 masters, and faster
        else:
            self.ctx = lambda: torch.autocast("cuda", torch.bfloat16)
        self.name, self.params = name, sum(p.numel() for p in m.parameters())
        self.optim = torch.optim.AdamW(m.parameters(), lr=1e-4, betas=(0.9, 0.98), weight_decay=0.05, fused=True)
        modes = {"eager": None, "compiled": "default", "autotuned": "max-autotune-no-cudagraphs"}
        self.model = m if c.mode == "eager" else torch.compile(m, mode=modes[c.mode])
        self.ids = torch.randint(0, c.vocab, (c.batch, c.seq + 1), device="cuda")
        self.c = c
        torch.cuda.reset_peak_memory_stats()
        for _ in range(c.warmup):
            self.step()

    def step(self):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        with sdpa_kernel([mix.BACKENDS[self.backend]]):
            with self.ctx():
                loss = self.model(self.ids[:, :-1], self.ids[:, 1:])
            loss.backward()
        self.optim.step()
        self.optim.zero_grad(set_to_none=True)
        self.loss = loss.detach()
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    def measure(self):
        c = self.c
        sec = [self.step() for _ in range(c.steps)]
        name = f"{c.arch} {self.name} {self.backend} {c.mode} {c.weights} T={c.seq} batch {c.batch}"
        return peer.row(name, sec, lambda s: c.batch * c.seq / s, "tokens/s", arch=c.arch, way=self.name, backend=self.backend, mode=c.mode,
                        weights=c.weights, params=self.params, loss=self.loss.item(), memory_bytes=torch.cuda.max_memory_allocated(),
                        reserved_bytes=torch.cuda.max_memory_reserved(), attention_ms=[[w, b, 1e3 * s] for s, w, b in self.tried],
                        torch=torch.__version__, gpu=torch.cuda.get_device_name())


def main():
    names = lambda s: s.split(",")
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--arch", choices=list(mix.ARCHS), default="transformer")
    for name, default in (("layers", 12), ("dim", 768), ("heads", 12), ("head", 64), ("ffn", 2048), ("vocab", 50304), ("seq", 2048), ("batch", 16)):
        p.add_argument("--" + name, type=int, default=default, help="heads counts outputs: pairs for diff" if name == "heads" else None)
    p.add_argument("--way", type=names, help="ways of torch_mix.py to choose from; default all of the architecture")
    p.add_argument("--backend", type=names, default=list(mix.BACKENDS), help="backends to choose from")
    p.add_argument("--mode", choices=("eager", "compiled", "autotuned"), default="compiled")
    p.add_argument("--weights", choices=("bf16", "master"), default="bf16", help="bf16 throughout, or fp32 masters under autocast")
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--warmup", type=int, default=5)
    p.add_argument("--serve", action="store_true", help="stay and measure once for every line of standard input")
    a = p.parse_args()
    peer.run(Trainer(a).measure, a.serve)


main()
