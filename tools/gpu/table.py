"""The short table of `hopper.sh all`: what its parts measured beside what is wanted. Its argument is the folder with their outputs."""
import os
import re
import sys

# Milliseconds forward and backward that are wanted of a shape.
ATTENTION = {"22_64_128 T2048": 1.2, "11_64_64 T2048": 1.0, "22_128_256 T8192": 10.5, "11_128_128 T8192": 8.0, "21_128_128 T8192": 12.5}
# Ratios that are wanted, by the beginning of the line of compare.py.
RATIOS = {"peer-830m": {"our diff over the peer's transformer": 1.0},
          "peer-1.4b": {"1.4b transformer": 1.0, "our diff over the peer's transformer": 1.0},
          "peer-160m": {"160m transformer": 1.03, "160m diff2": 1.15, "160m diff ": 1.17},
          "decode-160m": {"160m diff decode batch 64": 20}, "decode-830m": {"830m diff decode batch 64": 12}}


def attention(text):
    """For each shape its kernels in use, and the fastest forward and backward of all."""
    for shape in dict.fromkeys(re.findall(r"^(\d\d_\d+_\d+ T\d+) .* forward", text, re.M)):
        found = re.findall(rf"^{shape} (.+?) +forward ([\d.]+) .*?backward ([\d.]+) ", text, re.M)
        rows = [(name, float(f), float(b)) for name, f, b in found]
        now = next((r for r in rows if r[0] == "table"), rows[0])
        forward, backward = min(rows, key=lambda r: r[1]), min(rows, key=lambda r: r[2])
        wanted = f"wanted {ATTENTION[shape]}" if shape in ATTENTION else ""
        yield (f"{shape} ms", f"{now[1]:.3f} + {now[2]:.3f} = {now[1] + now[2]:.3f}",
               f"best {forward[1]:.3f} ({forward[0]}) + {backward[2]:.3f} ({backward[0]}) = {forward[1] + backward[2]:.3f}", wanted)


def rows_of(text):
    """Lines of bench: what was asked for, then every name and value in the line."""
    for line in text.splitlines():
        for name, value in re.findall(r'"name": "([^"]+)", "value": ([\d.]+)', line):
            yield line.split(":")[0].strip(), f"{name}: {float(value):,.0f}", "", ""


def ratios(part, text):
    for line in text.splitlines():
        m = re.match(r"(\S.*?)  +([\d.]+)  +([\d.]+)  +(tokens/s|ms)  +([\d.]+)", line)
        if m:
            wanted = next((f"wanted {w}" for k, w in RATIOS.get(part, {}).items() if m[1].startswith(k)), "")
            yield m[1], f"{m[2]} against {m[3]} {m[4]}", f"ratio {m[5]}", wanted


def states(part, text):
    lines = [x for x in text.splitlines() if re.match(r"(ok|FAIL|HANG) ", x)]
    bad = [x for x in lines if not x.startswith("ok")]
    if lines:
        yield part, f"{len(lines) - len(bad)} of {len(lines)} ok", "; ".join(bad)[:100], "all"


def kind(op, shape):
    """The line of a step's budget that an op belongs to."""
    if op.startswith("MatMul"):
        return "products of λ" if min(map(int, shape.split("×"))) <= 16 else "products"
    if "Attention" in op:
        return "attention backward" if op.endswith("Backward") else "attention forward"
    return op.removesuffix("Backward")


def ops(text):
    """Milliseconds of a step by kind, the first architecture's beside the second's, largest difference first."""
    steps = []
    for section in text.split("ops of ")[1:]:
        steps.append({})
        for op, shape, ms in re.findall(r"^ +(\S+(?: \S+)*?) {2,}(?:(\d+×\S+) +)?\d+ +([\d.]+) +[\d.]+%", section, re.M):
            if op != "all ops":
                steps[-1][kind(op, shape)] = steps[-1].get(kind(op, shape), 0) + float(ms)
    if len(steps) > 1:
        ms = [lambda k, s=s: s.get(k, 0) for s in steps]
        for k in sorted({*steps[0], *steps[1]}, key=lambda k: ms[1](k) - ms[0](k)):
            yield k, f"{ms[0](k):.2f} against {ms[1](k):.2f} ms", f"{ms[0](k) - ms[1](k):+.2f}", ""


def main(folder):
    out = []
    for part in open(os.path.join(folder, "order")).read().split():
        text = open(os.path.join(folder, part)).read()
        rows = [*attention(text), *(ops(text) if part == "budget" else ()), *rows_of(text), *dict.fromkeys(ratios(part, text)), *states(part, text)]
        out += [(part, *r) for r in rows] or [(part, "nothing came back", text.strip().splitlines()[-1][:100] if text.strip() else "", "", "")]
    wide = [max(len(r[i]) for r in out) for i in range(len(out[0]))] if out else []
    for r in out:
        print("  ".join(x.ljust(w) for x, w in zip(r, wide)).rstrip())


main(sys.argv[1])
