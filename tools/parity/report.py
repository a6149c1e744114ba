#!/usr/bin/env python3
"""Draws results/parity/*.jsonl: docs/parity.svg, and the tables between the marks of docs/parity.md.

    report.py            from the root of the repository
"""
import glob
import json
import re

ARCHS = ["transformer", "diff", "diff2"]
NAMES = {"transformer": "Transformer", "diff": "DIFF", "diff2": "DIFF V2"}
INK, OURS, PEER = "#57606a", "#0969da", "#bc4c00"


def load():
    rows = [json.loads(x) for f in sorted(glob.glob("results/parity/*.jsonl")) for x in open(f)]
    return {(r["device"], r["size"], r["arch"], side(r), r["start"], r["seed"]): r for r in rows}


def side(r):
    """PyTorch with logits in bf16, as autocast gives, and PyTorch in float32 are peers of their own."""
    if r["side"] == "pytorch" and r.get("precision") == "fp32":
        return "pytorch fp32"
    return r["side"] + (" bf16" if r["side"] == "pytorch" and r["logits"] == "bf16" else "")


def settings(rows):
    return sorted({k[:2] for k in rows}, key=lambda k: k[0] != "gpu")


def table(rows, device, size):
    out = ["| model | start | largest differences of a 50-step mean | held out, Antiphase | held out, PyTorch | difference |",
           "|---|---|---|---|---|---|"]
    for arch in ARCHS:
        ours = rows.get((device, size, arch, "antiphase", "shared", 1))
        for peer, note in (("pytorch", ""), ("pytorch bf16", "; logits of PyTorch in bf16"), ("pytorch fp32", "; PyTorch in float32")):
            theirs = rows.get((device, size, arch, peer, "shared", 1))
            if ours and theirs:
                out.append(shared(NAMES[arch], note, ours, theirs))
        again = [r for k, r in rows.items() if k[:3] == (device, size, arch) and k[4] == "repeat"]
        first = rows.get((device, size, arch, "pytorch", "shared", 1))
        for other in again if first else []:
            out.append(spread(NAMES[arch], first, other))
        exact = rows.get((device, size, arch, "pytorch fp32", "shared", 1))
        if exact and first:
            out.append(own_rounding(NAMES[arch], first, exact))
        own = {side: own_starts(rows, device, size, arch, side) for side in ("antiphase", "pytorch")}
        if all(own.values()):
            mean = {k: sum(v) / len(v) for k, v in own.items()}
            cell = lambda k: ", ".join(f"{x:.4f}" for x in own[k])
            out.append(f"| {NAMES[arch]} | own weights, own order, by seed | – | {cell('antiphase')} | {cell('pytorch')} "
                       f"| {mean['antiphase'] - mean['pytorch']:+.4f} (means) |")
    return "\n".join(out)


def shared(name, note, ours, theirs):
    gaps = [abs(x - y) for x, y in zip(ours["loss"], theirs["loss"])]
    if theirs["steps"] < ours["steps"]:
        return (f"| {name} | same weights, same rows{note}, steps 1 to {theirs['steps']} "
                f"| {max(gaps):.4f}, then {sorted(gaps)[-2]:.4f} | – | – | – |")
    a, b = ours["held_out"], theirs["held_out"]
    return (f"| {name} | same weights, same rows{note} | {max(gaps):.4f}, then {sorted(gaps)[-2]:.4f} | {a:.4f} | {b:.4f} "
            f"| {a - b:+.4f} |")


def spread(name, first, again):
    """PyTorch beside itself: the same start twice."""
    gaps = sorted(abs(x - y) for x, y in zip(first["loss"], again["loss"]))
    a, b = again["held_out"], first["held_out"]
    return (f"| {name} | PyTorch again, same weights, same rows | {gaps[-1]:.4f}, then {gaps[-2]:.4f} | {a:.4f} (PyTorch) "
            f"| {b:.4f} | {a - b:+.4f} |")


def own_rounding(name, rounded, exact):
    """PyTorch in bf16 beside PyTorch in float32."""
    gaps = sorted(abs(x - y) for x, y in zip(rounded["loss"], exact["loss"]))
    return (f"| {name} | PyTorch in bf16 beside PyTorch in float32, steps 1 to {exact['steps']} "
            f"| {gaps[-1]:.4f}, then {gaps[-2]:.4f} | – | – | – |")


def own_starts(rows, device, size, arch, side):
    """Held-out losses of a side's own starts; for Antiphase the shared start is its own seed 1."""
    mine = [(k[5], r["held_out"]) for k, r in rows.items()
            if k[:3] == (device, size, arch) and k[3].split()[0] == side and (k[4] == "own" or side == "antiphase")]
    return [held for _, held in sorted(mine)]


def path(points, colour, width):
    d = " ".join(f"{'M' if i == 0 else 'L'}{x:.1f},{y:.1f}" for i, (x, y) in enumerate(points))
    return f'<path d="{d}" fill="none" stroke="{colour}" stroke-width="{width}"/>'


def text(x, y, s, anchor="start", size=12):
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{INK}" text-anchor="{anchor}">{s}</text>'


def panel(rows, device, size, arch, left, top):
    """Both curves of one architecture, and their difference below on a scale of its own."""
    a, b, rounded = (rows.get((device, size, arch, s, "shared", 1)) for s in ("antiphase", "pytorch", "pytorch bf16"))
    b = b or rounded
    if not (a and b):
        return []
    w, h, n = 260, 150, len(a["loss"])
    hi, lo = max(a["loss"] + b["loss"]), min(a["loss"] + b["loss"])
    at = lambda i: left + 40 + (w - 40) * i / max(n - 1, 1)
    loss = lambda v: top + 20 + h * (hi - v) / (hi - lo)
    gap = lambda d: top + 225 - max(-0.02, min(0.02, d)) / 0.02 * 25
    out = [text(left + 40, top + 8, f"{NAMES[arch]}, {size} on a {device.upper()}", size=13)]
    out += [text(left + 34, loss(v) + 4, f"{v:.1f}", "end", 11) for v in (hi, lo)]
    out += [text(left + 34, gap(v) + 4, f"{v:+.2f}", "end", 11) for v in (0.02, 0, -0.02)]
    out += [path([(at(0), gap(v)), (at(n - 1), gap(v))], "#d0d7de", 1) for v in (0.02, 0, -0.02)]
    out += [path([(at(i), loss(v)) for i, v in enumerate(b["loss"])], PEER, 4),
            path([(at(i), loss(v)) for i, v in enumerate(a["loss"])], OURS, 1.5),
            path([(at(i), gap(x - y)) for i, (x, y) in enumerate(zip(a["loss"], b["loss"]))], OURS, 1.5),
            text(at(n - 1), top + 268, f"step {a['steps']}", "end", 11)]
    return out


def figure(rows):
    body, rank = [], 0
    for device, size in settings(rows):
        for i, arch in enumerate(ARCHS):
            body += panel(rows, device, size, arch, 10 + i * 290, 30 + rank * 290)
        rank += 1
    height = 50 + rank * 290
    key = [path([(50, height - 14), (80, height - 14)], OURS, 1.5), text(86, height - 10, "Antiphase"),
           path([(180, height - 14), (210, height - 14)], PEER, 4), text(216, height - 10, "PyTorch"),
           text(300, height - 10, "below: the difference of 50-step means, nats")]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 {height}" font-family="system-ui, sans-serif">'
            f'<rect width="880" height="{height}" fill="white"/>' + "".join(body + key) + "</svg>\n")


def main():
    rows = load()
    open("docs/parity.svg", "w").write(figure(rows))
    page = open("docs/parity.md").read()
    for device, size in settings(rows):
        mark = f"<!-- {device} -->"
        page = re.sub(f"{mark}.*?<!-- end -->", lambda _: f"{mark}\n{table(rows, device, size)}\n<!-- end -->", page, flags=re.S)
    open("docs/parity.md", "w").write(page)


if __name__ == "__main__":
    main()
