"""Loads folders that `antiphase export` wrote with transformers and compares logits: the outside half of the round trip.

    python3 roundtrip.py DIR [--tolerance 1e-4] [--antiphase BINARY]

DIR is what roundtrip.sh made: folders, each with ours.safetensors (input_ids [T], logits [T,V]) and ours.json (token ids of
a text). A folder must load with AutoModelForCausalLM, without remote code unless it is of our own class, in float32 on the CPU. Its logits
must be ours, its tokenizer's ids must be ours, its greedy text must be the same with and without a cache, and what save_pretrained
writes must hold the same bits. With a binary, that saved folder is read back by it and its logits compared once more.
The exit code is the number of folders that failed.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

TEXT = "Hello, wörld! 3.14 ▁ <|endoftext|> done"


def weights(folder):
    out = {}
    for path in sorted(folder.glob("model*.safetensors")):
        out.update(load_file(path))
    return out


def load(folder):
    own = json.loads((folder / "config.json").read_text())["model_type"] == "antiphase"
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, trust_remote_code=own).eval(), own


def greedy(model, ids, n=12):
    """n tokens, each from a whole pass without a cache."""
    out = ids
    for _ in range(n):
        out = torch.cat([out, model(input_ids=out, use_cache=False).logits[:, -1:].argmax(-1)], dim=1)
    return out


def padded(model, ids, logits):
    """The same text with padding on its left must give the same last logits."""
    pad = torch.zeros(1, 3, dtype=ids.dtype)
    mask = torch.cat([torch.zeros_like(pad), torch.ones_like(ids)], dim=1)
    with_pad = model(input_ids=torch.cat([pad, ids], dim=1), attention_mask=mask).logits[0, 3:]
    return (with_pad - logits).abs().max().item()


def saved(model, folder, ours, binary):
    """save_pretrained must write the bits that were read; the binary must read what it wrote."""
    with tempfile.TemporaryDirectory() as tmp:
        tmp = Path(tmp)
        model.save_pretrained(tmp / "hf")
        a, b = weights(folder), weights(tmp / "hf")
        bad = [name for name in a if name not in b or not torch.equal(a[name].float(), b[name].float())]
        if bad:
            return f"save_pretrained changed {bad[:3]}"
        if binary:
            ids = ",".join(str(i) for i in ours["input_ids"].tolist())
            subprocess.run([binary, "logits", "-m", tmp / "hf", "--ids", ids, "--out", tmp / "l.safetensors", "-q"], check=True)
            d = (load_file(tmp / "l.safetensors")["logits"] - ours["logits"]).abs().max().item()
            if d > 1e-4:
                return f"read back, logits differ by {d:.2g}"
    return ""


@torch.no_grad()
def check(folder, tolerance, binary):
    ours = load_file(folder / "ours.safetensors")
    model, own = load(folder)
    ids = ours["input_ids"].long()[None]
    logits = model(input_ids=ids).logits[0].float()
    worst = (logits - ours["logits"]).abs().max().item()
    errors = [] if worst <= tolerance else ["logits"]
    pad = padded(model, ids, logits)
    if pad > tolerance:
        errors.append(f"padding changes logits by {pad:.2g}")
    want = greedy(model, ids[:, :8])
    model.generation_config.eos_token_id = None  # go on to the full length
    got = model.generate(ids[:, :8], attention_mask=torch.ones_like(ids[:, :8]), max_new_tokens=12, do_sample=False, pad_token_id=0)
    if not torch.equal(got, want):
        errors.append("text through the cache differs")
    tokens = AutoTokenizer.from_pretrained(folder, trust_remote_code=own)(TEXT)["input_ids"]
    if tokens != json.loads((folder / "ours.json").read_text())["ids"]:
        errors.append(f"tokenizer gives {tokens[:8]}…")
    errors.append(saved(model, folder, ours, binary))
    errors = [e for e in errors if e]
    return worst, own, errors


def main():
    p = argparse.ArgumentParser()
    p.add_argument("dir", type=Path)
    p.add_argument("--tolerance", type=float, default=1e-4)
    p.add_argument("--antiphase")
    args = p.parse_args()
    failed = 0
    for folder in sorted(f.parent for f in args.dir.glob("*/ours.safetensors")):
        try:
            worst, own, errors = check(folder, args.tolerance, args.antiphase)
            kind = "own class" if own else "native"
            print(f"{folder.name:28} {kind:10} max|Δlogits| {worst:.2e}  {'; '.join(errors) or 'ok'}", flush=True)
        except Exception as e:  # one folder's failure must not hide the others
            errors = [e]
            print(f"{folder.name:28} FAILED {type(e).__name__}: {e}", flush=True)
        failed += bool(errors)
    print(f"{failed} failed")
    sys.exit(min(failed, 100))


main()
