#!/usr/bin/env python3
"""Writes layer/testdata/gda: one layer of grouped differential attention with its output and all gradients.

    python3 tools/golden/gda_module.py layer/testdata/gda

Plain Python, no packages. The formula is written with signal and noise heads apart, as the method is described:
S signal heads and S/g noise heads, each noise head's output repeated over the g signal heads of its group,

    out = attn_signal - lam * repeat(attn_noise, g)

then RMSNorm per head with a gain, times 1 - lam_init, and the output projection. Gradients come from complex steps:
the derivative of <dy, y> by a number is the imaginary part of the value at that number + i*h, over h, which is exact
to the last digits and shares nothing with a backward pass.
"""

import array
import cmath
import json
import math
import os
import random
import sys

B, T, DIM, SIGNAL, RATIO, D, LAYER, THETA, EPS = 2, 5, 12, 4, 2, 4, 2, 10000.0, 1e-5
NOISE = SIGNAL // RATIO
STEP = 1e-30


def rows(w, n, cols):
    return [w[i * cols:(i + 1) * cols] for i in range(n)]


def dot(a, b):
    return sum(p * q for p, q in zip(a, b))


def rotate(v, t):
    """Turns neighbouring pairs of coordinates by t * theta^(-2j/D)."""
    out = list(v)
    for j in range(D // 2):
        angle = t * THETA ** (-2 * j / D)
        c, s = math.cos(angle), math.sin(angle)
        a, b = v[2 * j], v[2 * j + 1]
        out[2 * j], out[2 * j + 1] = a * c - b * s, a * s + b * c
    return out


def attend(q, k, v):
    """Causal softmax attention of one head: q, k [T][D], v [T][2D]."""
    out = []
    for t in range(T):
        weights = [cmath.exp(dot(q[t], k[s]) / math.sqrt(D)) for s in range(t + 1)]
        total = sum(weights)
        out.append([sum(weights[s] * v[s][c] for s in range(t + 1)) / total for c in range(2 * D)])
    return out


def heads(w, x, n, width, turn):
    """w has one row per output: n heads of that width over x [T][DIM], as [n][T][width]."""
    all_rows, out = rows(w, n * width, DIM), []
    for h in range(n):
        head = [[dot(r, x[t]) for r in all_rows[h * width:(h + 1) * width]] for t in range(T)]
        out.append([rotate(v, t) for t, v in enumerate(head)] if turn else head)
    return out


def layer(p, x):
    """y of one sequence x [T][DIM]."""
    init = 0.8 - 0.6 * math.exp(-0.3 * LAYER)
    lam = cmath.exp(dot(p["lambda_q1"], p["lambda_k1"])) - cmath.exp(dot(p["lambda_q2"], p["lambda_k2"])) + init
    q_signal, q_noise = heads(p["q_signal"], x, SIGNAL, D, True), heads(p["q_noise"], x, NOISE, D, True)
    k_signal, k_noise = heads(p["k_signal"], x, NOISE, D, True), heads(p["k_noise"], x, NOISE, D, True)
    v = heads(p["v"], x, NOISE, 2 * D, False)
    noise = [attend(q_noise[g], k_noise[g], v[g]) for g in range(NOISE)]
    joined = [[] for _ in range(T)]
    for h in range(SIGNAL):
        g = h // RATIO
        signal = attend(q_signal[h], k_signal[g], v[g])
        for t in range(T):
            o = [a - lam * b for a, b in zip(signal[t], noise[g][t])]
            rms = cmath.sqrt(dot(o, o) / len(o) + EPS)
            joined[t] += [(1 - init) * c * gain / rms for c, gain in zip(o, p["subln"])]
    out = rows(p["out"], DIM, SIGNAL * 2 * D)
    return [[dot(r, joined[t]) for r in out] for t in range(T)]


def forward(p):
    x = rows(p["x"], B * T, DIM)
    return [n for b in range(B) for row in layer(p, x[b * T:(b + 1) * T]) for n in row]


def gradient(p, dy):
    """Of <dy, forward(p)> by every number of p."""
    out = {}
    for name, values in p.items():
        grad = []
        for i, value in enumerate(values):
            values[i] = complex(value, STEP)
            grad.append(dot(dy, forward(p)).imag / STEP)
            values[i] = value
        out[name] = grad
    return out


def published(p):
    """The names and layout of the other golden modules: a group's signal queries, then its noise query; keys in pairs."""
    def woven(parts, n):  # per group g: every (matrix, heads of it) in order
        out = []
        for g in range(n):
            for w, count in parts:
                size = count * D * DIM
                out += w[g * size:(g + 1) * size]
        return out

    q = woven([(p["q_signal"], RATIO), (p["q_noise"], 1)], NOISE)
    k = woven([(p["k_signal"], 1), (p["k_noise"], 1)], NOISE)
    named = {"q_proj.weight": (q, [(SIGNAL + NOISE) * D, DIM]), "k_proj.weight": (k, [2 * NOISE * D, DIM]),
             "v_proj.weight": (p["v"], [NOISE * 2 * D, DIM]), "out_proj.weight": (p["out"], [DIM, SIGNAL * 2 * D]),
             "subln.weight": (p["subln"], [2 * D])}
    return named | {name: (p[name], [D]) for name in ("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2")}


def save(path, tensors):
    """A safetensors file of float32."""
    header, data = {}, b""
    for name, (values, shape) in tensors.items():
        raw = array.array("f", values).tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + data)


def main(folder):
    rng = random.Random(1)

    def draw(n, std=0.4, mean=0.0):  # numbers that float32 holds exactly
        return list(array.array("f", [rng.gauss(mean, std) for _ in range(n)]))

    p = {"x": draw(B * T * DIM, 1.0), "q_signal": draw(SIGNAL * D * DIM), "q_noise": draw(NOISE * D * DIM),
         "k_signal": draw(NOISE * D * DIM), "k_noise": draw(NOISE * D * DIM), "v": draw(NOISE * 2 * D * DIM),
         "out": draw(DIM * SIGNAL * 2 * D), "subln": draw(2 * D, 0.2, 1.0)}
    p |= {name: draw(D) for name in ("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2")}
    dy = draw(B * T * DIM, 1.0)
    y = [n.real for n in forward(p)]
    grad = gradient(p, dy)
    shape = [B, T, DIM]
    tensors = {"x": (p["x"], shape), "dy": (dy, shape), "y": (y, shape), "dx": (grad["x"], shape)} | published(p)
    tensors |= {"grad/" + name: t for name, t in published(grad).items()}
    os.makedirs(folder, exist_ok=True)
    save(os.path.join(folder, "attention.safetensors"), tensors)
    config = {"arch": "gda", "d_model": DIM, "layer_index": LAYER, "heads": SIGNAL, "kv_heads": NOISE, "head_dim": D,
              "value_dim": 2 * D, "rope": "interleaved", "rope_theta": THETA, "head_norm": "affine", "head_norm_eps": EPS}
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f, indent=2)
        f.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
