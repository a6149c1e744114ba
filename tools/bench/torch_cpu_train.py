"""Training steps in PyTorch on the CPU: tokens per second of a small Transformer, DIFF or DIFF V2, in fp32 or bf16 autocast.

Works with Debian's PyTorch 1.13, which has no fused attention: the maps are written out there. A newer one uses
scaled_dot_product_attention where it is as fast as it can be (--attention fused) and compiles (--compile).

OPENBLAS_CORETYPE=SkylakeX /usr/bin/python3 torch_cpu_train.py --arch diff --precision bf16 --threads 2
"""
import argparse
import contextlib
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

import peer


class Norm(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


def attend(q, k, v, mask, fused):
    """Causal softmax(q·kᵀ/√d)·v."""
    if fused:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + mask, -1) @ v


class Block(nn.Module):
    def __init__(self, c, layer):
        super().__init__()
        self.c, d = c, c.head
        q, k, v = {"transformer": (1, 1, 1), "diff": (2, 2, 2), "diff2": (2, 1, 1)}[c.arch]
        self.widths = [c.heads * n * d for n in (q, k, v)]
        self.norm1, self.norm2 = Norm(c.dim), Norm(c.dim)
        self.qkv, self.out = nn.Linear(c.dim, sum(self.widths), bias=False), nn.Linear(self.widths[2], c.dim, bias=False)
        self.gate_up, self.down = nn.Linear(c.dim, 2 * c.ffn, bias=False), nn.Linear(c.ffn, c.dim, bias=False)
        if c.arch == "diff":
            self.start = 0.8 - 0.6 * math.exp(-0.3 * layer)
            self.scalar, self.norm = nn.Parameter(0.1 * torch.randn(4, d)), Norm(2 * d)
        if c.arch == "diff2":
            self.lam = nn.Linear(c.dim, c.heads, bias=False)

    def forward(self, x, cos, sin, mask):
        h = self.norm1(x)
        x = x + self.out(self.mix(h, cos, sin, mask).transpose(1, 2).reshape(*x.shape[:2], -1))
        g, u = self.gate_up(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(g) * u)

    def mix(self, h, cos, sin, mask):
        c, (b, t, _) = self.c, h.shape
        q, k, v = self.qkv(h).split(self.widths, -1)

        def heads(y):
            a, z = y.view(b, t, -1, c.head).transpose(1, 2).chunk(2, -1)
            return torch.cat((a * cos - z * sin, a * sin + z * cos), -1).to(y.dtype)

        q, k, v = heads(q), heads(k), v.view(b, t, c.heads, -1).transpose(1, 2)
        fused = c.attention == "fused"
        if c.arch == "transformer":
            return attend(q, k, v, mask, fused)
        keys = (k[:, 0::2], k[:, 1::2]) if c.arch == "diff" else (k, k)
        one, two = (attend(q[:, i::2], keys[i], v, mask, fused) for i in (0, 1))
        if c.arch == "diff2":
            return one - self.lam(h).sigmoid().transpose(1, 2).unsqueeze(-1) * two
        s = self.scalar
        lam = (s[0] * s[1]).sum().exp() - (s[2] * s[3]).sum().exp() + self.start
        return self.norm(one - lam * two) * (1 - self.start)


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed = nn.Embedding(c.vocab, c.dim)
        self.blocks = nn.ModuleList(Block(c, i) for i in range(c.layers))
        self.norm = Norm(c.dim)
        angle = torch.outer(torch.arange(c.seq).float(), 10000.0 ** (-torch.arange(0, c.head, 2).float() / c.head))
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())
        self.register_buffer("mask", torch.full((c.seq, c.seq), float("-inf")).triu(1))
        nn.init.normal_(self.embed.weight, std=0.02)

    def forward(self, ids, targets):
        x = self.embed(ids)
        for b in self.blocks:
            x = b(x, self.cos, self.sin, self.mask)
        y = F.linear(self.norm(x), self.embed.weight)
        return F.cross_entropy(y.float().view(-1, y.shape[-1]), targets.reshape(-1))


class Trainer:
    def __init__(self, c):
        torch.manual_seed(0)
        torch.set_num_threads(c.threads)
        m = Model(c)
        self.c, self.params = c, sum(p.numel() for p in m.parameters())
        self.optim = torch.optim.AdamW(m.parameters(), lr=1e-3)
        self.model = torch.compile(m) if c.compile else m
        self.ids = torch.randint(0, c.vocab, (c.batch, c.seq + 1))
        self.ctx = (lambda: torch.autocast("cpu", torch.bfloat16)) if c.precision == "bf16" else contextlib.nullcontext
        for _ in range(c.warmup):
            self.step()

    def step(self):
        begin = time.perf_counter()
        with self.ctx():
            loss = self.model(self.ids[:, :-1], self.ids[:, 1:])
        loss.backward()
        self.optim.step()
        self.optim.zero_grad(set_to_none=True)
        self.loss = loss.item()
        return time.perf_counter() - begin

    def measure(self):
        c = self.c
        sec = [self.step() for _ in range(c.steps)]
        name = f"{c.arch} {c.precision} {c.attention}{' compiled' if c.compile else ''} T={c.seq} batch {c.batch}"
        return peer.row(name, sec, lambda s: c.batch * c.seq / s, "tokens/s", arch=c.arch, precision=c.precision, threads=c.threads,
                        params=self.params, loss=self.loss, torch=torch.__version__)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--arch", choices=("transformer", "diff", "diff2"), default="transformer")
    for name, default in (("layers", 8), ("dim", 384), ("heads", 6), ("head", 64), ("ffn", 1024), ("vocab", 8192), ("seq", 512), ("batch", 8)):
        p.add_argument("--" + name, type=int, default=default, help="heads counts outputs: 3 for diff" if name == "heads" else None)
    p.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    p.add_argument("--attention", choices=("written", "fused"), default="fused" if hasattr(F, "scaled_dot_product_attention") else "written")
    p.add_argument("--compile", action="store_true")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--steps", type=int, default=3)
    p.add_argument("--warmup", type=int, default=1)
    p.add_argument("--serve", action="store_true", help="stay and measure once for every line of standard input")
    a = p.parse_args()
    peer.run(Trainer(a).measure, a.serve)


main()
