"""Antiphase beside its peers, measured in turns on the same machine: both columns and the medians of their ratios.

On a GPU, with PyTorch and transformers:
  python3 tools/bench/compare.py train --size 160m --seq 2048 --batch 16
  python3 tools/bench/compare.py attention --dim 2048 --head 128 --seq 2048,8192
  python3 tools/bench/compare.py decode --size 160m --batch 1,64 --context 4096
On a CPU, with OpenBLAS, oneDNN and Debian's PyTorch (see README.md):
  python3 tools/bench/compare.py cpu-gemm --precision fp32 --threads 1
  python3 tools/bench/compare.py cpu-train --threads 2

A ratio above 1 means that antiphase is faster. A peer's program is started once and asked again in every round; antiphase is started
anew each time. Rows of both sides go to standard output with --json.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")  # see README.md


def note(text):
    print(text, file=sys.stderr, flush=True)


def ours(a, *args):
    """Rows of antiphase bench."""
    cmd = [a.binary, "bench", *args, "--json", "--device", a.device]
    if a.threads:
        cmd += ["--threads", str(a.threads)]
    if a.precision:
        cmd += ["--precision", a.precision]
    note("$ " + " ".join(cmd))
    out = subprocess.run(cmd, stdout=subprocess.PIPE, check=True)
    return json.loads(out.stdout)


class Worker:
    """A peer's script that waits between measurements."""

    def __init__(self, python, script, *args):
        cmd = [python, os.path.join(HERE, script), *args, "--serve"]
        note("$ " + " ".join(cmd))
        self.p = subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.read()

    def read(self):
        line = self.p.stdout.readline()
        if not line:
            raise SystemExit(f"the peer ended with code {self.p.wait()}")
        return json.loads(line)

    def measure(self):
        self.p.stdin.write("\n")
        self.p.stdin.flush()
        return self.read()

    def close(self):
        self.p.stdin.close()
        self.p.wait()


def number(x):
    return f"{x:.0f}" if x >= 1000 else f"{x:.4g}"


class Pair:
    """What was measured of one thing on both sides, round by round; higher says that more is better."""

    def __init__(self, name, unit, higher):
        self.name, self.unit, self.higher = name, unit, higher
        self.rounds, self.note = [], ""
        self.memory = None

    def add(self, our, their):
        self.rounds.append((our, their))

    def line(self):
        our, their = (statistics.median(x) for x in zip(*self.rounds))
        ratios = [o / t if self.higher else t / o for o, t in self.rounds]
        memory = ""
        if self.memory:
            memory = f"{self.memory[0] / 2**30:.1f} / {self.memory[1] / 2**30:.1f} GiB"
        spread = f"{min(ratios):.2f}–{max(ratios):.2f}"
        return [self.name, number(our), number(their), self.unit, f"{statistics.median(ratios):.2f}", spread, memory, self.note]


def table(pairs):
    rows = [["WHAT", "ANTIPHASE", "PEER", "UNIT", "RATIO", "RANGE", "MEMORY", "PEER'S BEST"]] + [p.line() for p in pairs if p.rounds]
    wide = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    for r in rows:
        print("  ".join(x.ljust(w) for x, w in zip(r, wide)).rstrip())


def flags(**values):
    """Command-line flags of those values that are set."""
    out = []
    for k, v in values.items():
        if v is not None:
            out += ["--" + k.replace("_", "-"), str(v)]
    return out


def torch_shape(s):
    """The same model for the peer, from a row of ours."""
    return flags(head=s["head_dim"], **{k: s[k] for k in ("layers", "dim", "heads", "ffn", "vocab", "seq", "batch")})


def train(a, script="torch_train.py", python=sys.executable, variants=None):
    """Training steps: each architecture against its own peer. The last lines are antiphase against itself and the peer's Transformer."""
    pairs, medians = [], {}

    def call_of(arch):
        return ["train", "--arch", arch, "--steps", str(a.steps), *flags(size=a.size, seq=a.seq, batch=a.batch, head=a.head, vocab=a.vocab), *a.more]

    also = {arch: Pair(f"our {arch} over the peer's {a.arch[0]}", "tokens/s", True) for arch in a.also}
    for arch in a.arch:
        call = call_of(arch)
        first = ours(a, *call)[0]
        peers = [Worker(python, script, "--arch", arch, "--steps", str(a.steps), *torch_shape(first["shape"]), *v)
                 for v in variants or [["--mode", a.mode, "--weights", a.weights]]]
        pair = Pair(f"{first['name']}", "tokens/s", True)
        row = first
        for i in range(a.rounds):
            row = row if i == 0 else ours(a, *call)[0]
            rows = [w.measure() for w in peers]
            best = max(rows, key=lambda r: r["value"])
            a.rows += [dict(row, side="antiphase"), *(dict(r, side="peer") for r in rows)]
            pair.add(row["value"], best["value"])
            pair.note = best["name"]
            if best["params"] != row["shape"]["params"]:
                note(f"not the same model: {row['shape']['params']} parameters here, {best['params']} there")
            if "memory_bytes" in best:
                pair.memory = (row["memory_bytes"], best["memory_bytes"])
            for other, p in also.items() if arch == a.arch[0] else ():
                row_of = ours(a, *call_of(other))[0]
                a.rows.append(dict(row_of, side="antiphase"))
                p.add(row_of["value"], best["value"])
        for w in peers:
            w.close()
        pairs.append(pair)
        pairs += also.values() if arch == a.arch[0] else []
        for p in [pair, *(also.values() if arch == a.arch[0] else [])]:
            note("  ".join(x for x in p.line() if x))  # so that nothing is lost if the rest is stopped
        medians[arch] = [statistics.median(x) for x in zip(*pair.rounds)]
    base = a.arch[0]
    for arch in a.arch[1:]:
        for name, i in (("antiphase's", 0), ("the peer's", 1)):
            p = Pair(f"our {arch} over {name} {base}", "tokens/s", True)
            p.add(medians[arch][0], medians[base][i])
            pairs.append(p)
    return pairs


def attention(a):
    shape = flags(arch=",".join(a.arch), dim=a.dim, head=a.head, seq=a.seq, tokens=a.tokens, reps=a.steps)
    call = ["attention", *shape, *a.more]
    w = Worker(sys.executable, "torch_attention.py", *shape)
    pairs = {}
    for _ in range(a.rounds):
        mine, theirs = ours(a, *call), w.measure()["rows"]
        a.rows += [dict(r, side="antiphase") for r in mine] + [dict(r, side="peer") for r in theirs]
        for r in mine:
            s = r["shape"]
            fit = [t for t in theirs if "value" in t and (t["arch"], t["seq"], t["pass"]) == (s["arch"], s["seq"], s["pass"])]
            if fit:
                best = min(fit, key=lambda t: t["value"])
                p = pairs.setdefault(r["name"], Pair(r["name"], "ms", False))
                p.add(r["value"], best["value"])
                p.note = best["name"]
    w.close()
    return list(pairs.values())


def decode(a):
    pairs = {}
    for arch in a.arch:
        call = ["decode", "--arch", arch, *flags(size=a.size, batch=a.batch, context=a.context, head=a.head, vocab=a.vocab, reps=a.steps), *a.more]
        w = None
        for _ in range(a.rounds):
            mine = ours(a, *call)
            if w is None:
                s = mine[0]["shape"]
                w = Worker(sys.executable, "hf_decode.py", "--model", arch, *flags(layers=s["layers"], dim=s["dim"], head=s["head_dim"], ffn=s["ffn"],
                           vocab=s["vocab"], batch=a.batch, context=a.context, cache=a.cache))
            theirs = w.measure()["rows"]
            a.rows += [dict(r, side="antiphase") for r in mine] + [dict(r, side="peer") for r in theirs]
            for t in theirs:
                if "error" in t:
                    note(f"peer: {t}")
            for r in mine:
                s = r["shape"]
                fit = [t for t in theirs if "value" in t and (t["batch"], t["pass"]) == (s["batch"], s["pass"])]
                if fit:
                    best = max(fit, key=lambda t: t["value"])
                    p = pairs.setdefault(r["name"], Pair(r["name"], "tokens/s", True))
                    p.add(r["value"], best["value"])
                    p.note = best["name"]
        w.close()
    return list(pairs.values())


def cpu_train(a):
    """The same on a CPU; the peer is the better of its fp32 and its bf16."""
    more = ["--compile"] if a.compile else []
    variants = [["--precision", p, "--threads", str(a.threads), *more] for p in ("fp32", "bf16")]
    return train(a, "torch_cpu_train.py", a.python, variants)


SHAPES = "1024x768x768,1024x2304x768,1024x3072x768,1024x768x3072,4096x768x768,4096x3072x768,1000x770x1001"


def build(folder):
    """Compile the C peers; whatever cannot be is left out with a word."""
    made = {}
    for name, cmd in (
        ("gemm_openblas", ["gcc", "-O2", os.path.join(HERE, "gemm_openblas.c"), "-lopenblas", "-lm"]),
        ("gemm_onednn", ["g++", "-O2", "-fopenmp", os.path.join(HERE, "gemm_onednn.cpp"), "-ldnnl"]),
    ):
        out = os.path.join(folder, name)
        if subprocess.run([*cmd[:2], "-o", out, *cmd[2:]]).returncode == 0:
            made[name] = out
        else:
            note(f"{name} could not be built; see README.md for what it needs")
    return made


def cpu_gemm(a):
    """y = x·Wᵀ of many shapes against OpenBLAS, oneDNN and PyTorch, one shape at a time, all programs in turns."""
    kinds = {"fp32": [("gemm_openblas", []), ("gemm_onednn", ["f32", "packed"]), ("gemm_onednn", ["f32", "plain"]), ("torch_gemm", ["fp32"])],
             "bf16": [("gemm_onednn", ["bf16", "packed"]), ("gemm_onednn", ["bf16", "plain"]), ("torch_gemm", ["bf16"])]}[a.precision]
    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        made = {name: [path] for name, path in build(folder).items()}
        if subprocess.run([a.python, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode == 0:
            made["torch_gemm"] = [a.python, os.path.join(HERE, "torch_gemm.py")]
        else:
            note(f"{a.python} has no PyTorch; see README.md")
        for shape in a.shape.split(","):
            group, shares = {}, []
            for _ in range(a.rounds):
                mine = [r for r in ours(a, "gemm", "--shape", shape, "--reps", str(a.steps), *a.more) if r["shape"]["product"].startswith("y=")][0]
                a.rows.append(dict(mine, side="antiphase"))
                for program, args in kinds:
                    if program not in made:
                        continue
                    cmd = [*made[program], *shape.split("x"), str(a.threads), str(a.steps), *args]
                    r = json.loads(subprocess.run(cmd, stdout=subprocess.PIPE, check=True).stdout)
                    a.rows.append(dict(r, side="peer"))
                    p = group.setdefault(r["name"], Pair(f"{shape} vs {r['name']}", "ms", False))
                    p.add(mine["value"], 1e3 * statistics.median(r["seconds"]))
                shares.append(mine["share"])
            for p in group.values():
                p.name += f" ({100 * statistics.median(shares):.0f}% of peak)"
            pairs += group.values()
    return pairs


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=("train", "attention", "decode", "cpu-gemm", "cpu-train"))
    p.add_argument("--binary", default="./antiphase", help="the antiphase to measure")
    p.add_argument("--rounds", type=int, help="times that both sides are measured in turns; default 2, on a CPU 5")
    p.add_argument("--steps", type=int, default=10, help="repetitions of a measurement")
    p.add_argument("--arch", type=lambda s: s.split(","), help="architectures; the first is the one others are compared to")
    p.add_argument("--also", type=lambda s: s.split(","), default=[], help="train: architectures measured without a peer of their own, beside the first's")
    p.add_argument("--size", help="a size that antiphase recipes lists")
    p.add_argument("--seq", help="tokens of a sequence; a list for attention")
    p.add_argument("--batch", help="sequences; a list for decode")
    p.add_argument("--head", type=int)
    p.add_argument("--vocab", type=int)
    p.add_argument("--dim", type=int, default=2048, help="attention: model width")
    p.add_argument("--tokens", type=int, default=32768, help="attention: tokens in all")
    p.add_argument("--context", default="4096", help="decode: tokens behind each sequence")
    p.add_argument("--cache", default="dynamic,static", help="decode: the peer's caches")
    p.add_argument("--mode", default="compiled", help="train: the peer's eager, compiled or autotuned")
    p.add_argument("--weights", default="bf16", help="train: the peer's bf16 or master (fp32 masters under autocast)")
    p.add_argument("--precision", choices=("fp32", "bf16"), help="antiphase's on a CPU; default fp32 for cpu-gemm, its own choice for cpu-train")
    p.add_argument("--shape", default=SHAPES, help="cpu-gemm: ROWSxOUTxIN, a list")
    p.add_argument("--threads", type=int, default=0, help="CPU threads of both sides")
    p.add_argument("--compile", action="store_true", help="cpu-train: torch.compile, for PyTorch 2")
    p.add_argument("--python", default="/usr/bin/python3", help="on a CPU: the interpreter that has PyTorch")
    p.add_argument("--json", action="store_true", help="print all rows instead of the table")
    a, a.more = p.parse_known_args()
    cpu = a.what.startswith("cpu")
    a.device, a.rows = ("cpu" if cpu else "cuda"), []
    a.rounds = a.rounds or (5 if cpu else 2)
    a.threads = a.threads or (2 if cpu else 0)
    a.arch = a.arch or (["diff"] if a.what == "decode" else ["transformer", "diff", "diff2"])
    a.size = a.size or ("small" if cpu else "160m")
    if a.what == "decode":
        a.batch = a.batch or "1,64"
    if a.what == "attention":
        a.head, a.seq = a.head or 128, a.seq or "2048,8192"
    if a.what == "cpu-gemm":
        a.precision = a.precision or "fp32"
    if a.what == "cpu-train":
        a.seq, a.batch = a.seq or "512", a.batch or "8"
    pairs = {"train": train, "attention": attention, "decode": decode, "cpu-gemm": cpu_gemm, "cpu-train": cpu_train}[a.what](a)
    if a.json:
        json.dump(a.rows, sys.stdout, indent=1)
        print()
    else:
        table(pairs)


main()
