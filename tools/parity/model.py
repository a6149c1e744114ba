"""The three architectures in plain PyTorch, with the parameter names and the layout of an antiphase checkpoint."""
import json
import math
import struct

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

DTYPES = {"F32": np.float32, "F16": np.float16}


def read_safetensors(path):
    """Tensors of a float safetensors file, by name."""
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(size))
    base, out = 8 + size, {}
    for name, e in header.items():
        if name == "__metadata__":
            continue
        lo, hi = e["data_offsets"]
        dtype = DTYPES[e["dtype"]]
        x = np.fromfile(path, dtype, (hi - lo) // np.dtype(dtype).itemsize, offset=base + lo)
        out[name] = torch.from_numpy(x.reshape(e["shape"]).astype(np.float32))
    return out


def rms_norm(x, weight, eps):
    x = x.float()
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def rotate(x, cos, sin):
    """Rotary positions on neighbouring elements; x is (B, heads, T, D)."""
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2).to(x.dtype)


def attend(q, k, v):
    """Causal softmax attention; PyTorch's own kernel where it has one."""
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    t = q.shape[-2]
    mask = torch.full((t, t), -math.inf, device=q.device).triu(1)
    p = torch.softmax((q @ k.transpose(-1, -2)).float() / math.sqrt(q.shape[-1]) + mask, -1)
    return p.to(v.dtype) @ v


class Attention(nn.Module):
    def __init__(self, c, layer):
        super().__init__()
        self.c, self.arch = c, c["arch"]
        H, G, D, C = c["heads"], c["kv_heads"], c["head_dim"], c["dim"]
        q, k, v = {"transformer": (1, 1, 1), "diff": (2, 2, 2), "diff2": (2, 1, 1)}[self.arch]
        self.widths = (H * q * D, G * k * D, G * v * D)
        self.qkv = nn.Linear(C, sum(self.widths), bias=False)
        self.out = nn.Linear(H * v * D, C, bias=False)
        self.lambda_init = 0.8 - 0.6 * math.exp(-0.3 * layer)
        if self.arch == "diff":
            for name in ("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"):
                self.register_parameter(name, nn.Parameter(torch.zeros(D)))
            self.head_norm = nn.Module()
            self.head_norm.weight = nn.Parameter(torch.ones(2 * D))
        if self.arch == "diff2":
            self.add_module("lambda", nn.Linear(C, H, bias=False))

    def forward(self, x, cos, sin):
        B, T, _ = x.shape
        H, G, D = self.c["heads"], self.c["kv_heads"], self.c["head_dim"]
        q, k, v = self.qkv(x).split(self.widths, -1)
        heads = lambda z, n: z.view(B, T, n, -1).transpose(1, 2)
        mix = {"transformer": self.plain, "diff": self.diff, "diff2": self.diff2}[self.arch]
        q, k = heads(q, self.widths[0] // D), heads(k, self.widths[1] // D)
        y = mix(x, rotate(q, cos, sin), rotate(k, cos, sin), heads(v, G))
        return self.out(y.transpose(1, 2).reshape(B, T, -1))

    def plain(self, x, q, k, v):
        return attend(q, k, v)

    def diff(self, x, q, k, v):
        lam = (torch.exp((self.lambda_q1 * self.lambda_k1).sum())
               - torch.exp((self.lambda_q2 * self.lambda_k2).sum()) + self.lambda_init)
        o = attend(q[:, 0::2], k[:, 0::2], v).float() - lam * attend(q[:, 1::2], k[:, 1::2], v).float()
        o = rms_norm(o, self.head_norm.weight, self.c["head_norm_eps"]) * (1 - self.lambda_init)
        return o.to(v.dtype)

    def diff2(self, x, q, k, v):
        lam = torch.sigmoid(getattr(self, "lambda")(x)).transpose(1, 2).unsqueeze(-1)
        return attend(q[:, 0::2], k, v) - lam * attend(q[:, 1::2], k, v)


class Scale(nn.Module):
    """The gain of an RMSNorm."""

    def __init__(self, dim, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(dim)), eps

    def forward(self, x):
        return rms_norm(x, self.weight, self.eps)


class Block(nn.Module):
    def __init__(self, c, layer):
        super().__init__()
        self.norm1, self.norm2 = Scale(c["dim"], c["norm_eps"]), Scale(c["dim"], c["norm_eps"])
        self.attn = Attention(c, layer)
        self.mlp = nn.Module()
        self.mlp.gate_up = nn.Linear(c["dim"], 2 * c["ffn"], bias=False)
        self.mlp.down = nn.Linear(c["ffn"], c["dim"], bias=False)

    def forward(self, x, cos, sin):
        x = x + self.attn(self.norm1(x), cos, sin)
        gate, up = self.mlp.gate_up(self.norm2(x)).chunk(2, -1)
        return x + self.mlp.down(F.silu(gate) * up)


class LM(nn.Module):
    def __init__(self, c, seq, logits="bf16"):
        super().__init__()
        check(c)
        self.c, self.logits = c, logits
        self.embed = nn.Embedding(c["vocab"], c["dim"])
        self.layers = nn.ModuleList(Block(c, i) for i in range(c["layers"]))
        self.norm = Scale(c["dim"], c["norm_eps"])
        D = c["head_dim"]
        freq = c["rope_theta"] ** (-torch.arange(0, D, 2, dtype=torch.float64) / D)
        angle = torch.outer(torch.arange(seq, dtype=torch.float64), freq)
        self.register_buffer("cos", angle.cos().float(), persistent=False)
        self.register_buffer("sin", angle.sin().float(), persistent=False)

    def forward(self, ids, targets):
        x = self.embed(ids)
        for block in self.layers:
            x = block(x, self.cos, self.sin)
        logits = self.classify(self.norm(x))
        return F.cross_entropy(logits.float().view(-1, logits.shape[-1]), targets.reshape(-1), ignore_index=-1)

    def classify(self, x):
        """Autocast rounds logits and their gradients to bf16; antiphase keeps them in float32."""
        if self.logits == "bf16":
            return F.linear(x, self.embed.weight)
        with torch.autocast(x.device.type, enabled=False):
            return F.linear(x.float(), self.embed.weight)

    def load(self, path):
        """Weights of an antiphase checkpoint: every name must be there, and no other."""
        self.load_state_dict(read_safetensors(path))

    def draw(self, seed):
        """Initial weights of this side's own generator, with the deviations that antiphase uses."""
        torch.manual_seed(seed)
        c = self.c
        for name, p in self.named_parameters():
            if name.endswith(("norm.weight", "norm1.weight", "norm2.weight")):
                nn.init.ones_(p)
            elif ".lambda_" in name:
                nn.init.normal_(p, std=c["lambda_std"])
            elif name == "embed.weight":
                nn.init.normal_(p, std=c["dim"] ** -0.5)
            else:
                residual = name.endswith(("out.weight", "down.weight")) and c["init_residual"]
                gain = (2 * c["layers"]) ** -0.5 if residual else 1
                nn.init.normal_(p, std=gain * (3 * p.shape[1]) ** -0.5)


def check(c):
    """Refuses what this peer does not model instead of training something else."""
    want = {"tie_embeddings": True, "attention_bias": False, "rope_interleaved": True, "lambda_init": "schedule"}
    want["head_norm"] = "affine" if c["arch"] == "diff" else "off"
    for key, value in want.items():
        if c[key] != value:
            raise SystemExit(f"parity: model.{key} is {c[key]!r}, this peer has only {value!r}")
    if c.get("rope_scaling") or c["heads"] != c["kv_heads"]:
        raise SystemExit("parity: this peer has neither rope_scaling nor grouped heads")
