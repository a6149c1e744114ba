#!/usr/bin/env python3
"""Trains a run of antiphase in PyTorch: its recipe, its rows, its initial weights or drawn ones.

    torch_train.py --recipe RUN/recipe.json --rows rows.bin --valid valid.bin --init CHECKPOINT/model.safetensors --out curve.jsonl
    torch_train.py --recipe RUN/recipe.json --shards SET --valid valid.bin --seed 2 --out curve.jsonl

Weights and moments are float32; products run under bf16 autocast unless --precision fp32. The optimiser, its schedule, its
clipping and its decay groups are those of the recipe. One line a step goes to --out, and one with the held-out loss at the end.
"""
import argparse
import fcntl
import glob
import json
import math
import struct
import time

import numpy as np
import torch

from model import LM


def read_rows(path):
    """Rows that `antiphase data show --out` wrote: ids and targets, each (rows, T)."""
    head = np.fromfile(path, "<i4", 8)
    if head[0] != 0x57525041 or head[1] != 1:
        raise SystemExit(f"parity: {path} does not hold rows of version 1")
    steps, B, T, arrays = (int(head[i]) for i in (3, 4, 5, 6))
    x = np.memmap(path, "<i4", "r", 32, (steps, arrays, B, T))
    return Rows(x, 0), Rows(x, 1)


class Rows:
    """One array of the file as (rows, T), read where it is asked for."""

    def __init__(self, x, array):
        self.x, self.array, self.B = x, array, x.shape[2]

    def __len__(self):
        return len(self.x) * self.B

    def __getitem__(self, rows):
        return np.stack([self.x[i // self.B, self.array, i % self.B] for i in range(rows.start, rows.stop)])


def read_shards(folder):
    """All tokens of a set's training split, in stored order."""
    parts = []
    for path in sorted(glob.glob(folder + "/train-*.bin")):
        head = open(path, "rb").read(64)
        width, count = struct.unpack("<I", head[12:16])[0], struct.unpack("<Q", head[32:40])[0]
        parts.append(np.fromfile(path, np.uint16 if width == 2 else np.uint32, count, offset=64))
    return np.concatenate(parts).astype(np.int32)


class OwnRows:
    """Rows of T tokens of the training split in an order of this side's own generator."""

    def __init__(self, folder, T, seed):
        self.tokens, self.T = read_shards(folder), T
        n = (len(self.tokens) - 1) // T
        self.order = np.random.default_rng(seed).permutation(n)

    def batch(self, step, B):
        at = [self.order[i % len(self.order)] * self.T for i in range(step * B, step * B + B)]
        z = np.stack([self.tokens[a:a + self.T + 1] for a in at])
        return z[:, :-1], z[:, 1:]


class GivenRows:
    """The very rows that antiphase trained on."""

    def __init__(self, path):
        self.ids, self.targets = read_rows(path)

    def batch(self, step, B):
        return self.ids[step * B:step * B + B], self.targets[step * B:step * B + B]


def rate(o, step, total):
    if step < o["warmup"]:
        return o["lr"] * (step + 1) / o["warmup"]
    x = min((step - o["warmup"]) / (total - 1 - o["warmup"]), 1) if total - 1 > o["warmup"] else 1
    shape = {"constant": 1, "linear": 1 - x, "cosine": 0.5 * (1 + math.cos(math.pi * x))}[o["schedule"]]
    return o["lr"] * (o["final_lr"] + (1 - o["final_lr"]) * shape)


def optimiser(m, o, device):
    decays = lambda n, p: p.dim() == 2 and ".lambda." not in n and (n != "embed.weight" or o["decay_embeddings"])
    named = list(m.named_parameters())
    groups = [dict(params=[p for n, p in named if decays(n, p)], weight_decay=o["weight_decay"]),
              dict(params=[p for n, p in named if not decays(n, p)], weight_decay=0.0)]
    fused = dict(fused=True) if device == "cuda" else {}
    return torch.optim.AdamW(groups, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"], **fused)


class Trainer:
    def __init__(self, a):
        self.a = a
        r = json.load(open(a.recipe))
        self.train, self.optim = r["train"], r["optim"]
        self.steps = a.steps or self.train["steps"]
        self.B, self.T = self.train["batch"], self.train["seq_len"]
        self.model = LM(r["model"], self.T, a.logits)
        if a.init:
            self.model.load(a.init)
        else:
            self.model.draw(a.seed)
        self.model.to(a.device)
        self.opt = optimiser(self.model, self.optim, a.device)
        self.run = torch.compile(self.model) if a.compile else self.model
        self.rows = GivenRows(a.rows) if a.rows else OwnRows(a.shards, self.T, a.seed)
        self.micro = a.micro or self.train["micro_batch"]

    def compile(self):
        """Compiles both passes before the GPU is asked for; no weight changes."""
        ids, targets = (x[:self.micro] for x in self.rows.batch(0, self.B))
        self.loss(ids, targets).backward()
        self.opt.zero_grad(set_to_none=True)
        with torch.no_grad():
            self.loss(ids, targets)

    def loss(self, ids, targets):
        put = lambda x: torch.from_numpy(np.ascontiguousarray(x)).long().to(self.a.device, non_blocking=True)
        with torch.autocast(self.a.device, torch.bfloat16, enabled=self.a.precision == "bf16"):
            return self.run(put(ids), put(targets))

    def step(self, i):
        lr = rate(self.optim, i, self.steps)
        for g in self.opt.param_groups:
            g["lr"] = lr
        ids, targets = self.rows.batch(i, self.B)
        total, parts = 0, self.B // self.micro
        for k in range(0, self.B, self.micro):
            loss = self.loss(ids[k:k + self.micro], targets[k:k + self.micro]) / parts
            loss.backward()
            total = total + loss.detach()
        if self.optim["clip"] > 0:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.optim["clip"])
        self.opt.step()
        self.opt.zero_grad(set_to_none=True)
        return total

    def held_out(self):
        ids, targets = read_rows(self.a.valid)
        losses = []
        with torch.no_grad():
            for k in range(0, len(ids) - self.micro + 1, self.micro):
                losses.append(self.loss(ids[k:k + self.micro], targets[k:k + self.micro]).item())
        return sum(losses) / len(losses), len(losses) * self.micro

    def go(self, out):
        begin, pending = time.time(), []
        last = self.a.stop or self.steps
        for i in range(last):
            pending.append(self.step(i))
            if len(pending) == 50 or i == last - 1:
                first = i + 1 - len(pending)
                values = torch.stack(pending).tolist()
                for k, x in enumerate(values):
                    out.write(json.dumps(dict(step=first + k + 1, loss=round(x, 6))) + "\n")
                out.flush()
                print(f"{self.a.out}: step {i + 1} of {self.steps}, loss {values[-1]:.4f}, "
                      f"{(i + 1) * self.B * self.T / (time.time() - begin):.0f} tokens/s", flush=True)
                pending = []
        held, rows = self.held_out()
        out.write(json.dumps(dict(held_out=round(held, 6), rows=rows, logits=self.a.logits,
                                  precision=self.a.precision, seconds=round(time.time() - begin))) + "\n")
        print(f"{self.a.out}: held out {held:.4f} over {rows} rows", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--recipe", required=True)
    p.add_argument("--rows", help="rows to train on, in order")
    p.add_argument("--shards", help="token set to draw own rows from")
    p.add_argument("--valid", required=True, help="held-out rows")
    p.add_argument("--init", help="model.safetensors to begin with; without it weights are drawn")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--steps", type=int, default=0, help="steps of the run (default the recipe's)")
    p.add_argument("--stop", type=int, default=0, help="stop after this many of them")
    p.add_argument("--micro", type=int, default=0, help="rows at a time (default the recipe's)")
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    p.add_argument("--precision", default="bf16", choices=["bf16", "fp32"])
    p.add_argument("--logits", default="bf16", choices=["bf16", "fp32"], help="bf16 is what autocast gives")
    p.add_argument("--compile", action="store_true")
    p.add_argument("--turn", help="file to lock while training, so that one run uses the GPU at a time")
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--out", required=True)
    a = p.parse_args()
    if bool(a.rows) == bool(a.shards):
        p.error("give either --rows or --shards")
    if a.threads:
        torch.set_num_threads(a.threads)
    torch.backends.cuda.matmul.allow_tf32 = a.precision == "bf16"  # float32 means float32
    trainer = Trainer(a)
    if a.compile:
        trainer.compile()
    with open(a.turn or a.out, "w") as turn, open(a.out, "w") as out:
        fcntl.flock(turn, fcntl.LOCK_EX)
        trainer.go(out)


if __name__ == "__main__":
    main()
