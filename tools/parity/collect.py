#!/usr/bin/env python3
"""Turns the runs and curves in a work folder of parity.sh into rows, one for each training run.

    collect.py WORK SIZE DEVICE >> results/parity/DEVICE.jsonl

A row holds the mean loss of every 50 steps and the held-out loss. `start` is "shared" where both sides began with the same
weights and saw the same rows, "own" where each drew its own.
"""
import glob
import json
import os
import sys

EVERY = 50


def means(losses):
    return [round(sum(x) / len(x), 5) for x in (losses[i:i + EVERY] for i in range(0, len(losses), EVERY))]


def ours(folder):
    """The last row of every step counts: a resumed run may have written one twice."""
    steps, held = {}, None
    for line in open(folder + "/metrics.jsonl"):
        row = json.loads(line)
        if "loss" not in row:
            continue
        steps[row["step"]] = row["loss"]
        held = row.get("valid_loss") if row.get("valid_loss") is not None else held
    return [steps[k] for k in sorted(steps)], held, "fp32"


def torch(path):
    rows = [json.loads(line) for line in open(path)]
    return [r["loss"] for r in rows if "loss" in r], rows[-1].get("held_out"), rows[-1].get("logits")


def main():
    work, size, device = sys.argv[1:4]
    for path in sorted(glob.glob(work + "/curves/*.jsonl")):
        arch, start, seed = os.path.basename(path)[:-len(".jsonl")].split(".")
        row("pytorch", arch, start, int(seed), torch(path), size, device)
    for folder in sorted(glob.glob(work + "/runs/*")):
        arch, seed = os.path.basename(folder).split(".")
        row("antiphase", arch, "shared" if seed == "1" else "own", int(seed), ours(folder), size, device)


def row(side, arch, start, seed, curve, size, device):
    losses, held, logits = curve
    print(json.dumps(dict(size=size, device=device, arch=arch, side=side, start=start, seed=seed, steps=len(losses),
                          every=EVERY, loss=means(losses), held_out=held, logits=logits)))


if __name__ == "__main__":
    main()
