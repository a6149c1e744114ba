"""Ways to compute the attention of each architecture with PyTorch's scaled_dot_product_attention.

q is [B, query heads, T, d], k [B, key heads, T, d], v [B, heads, T, dv]; heads of a pair are neighbours. Each way returns the
maps' outputs: one for a Transformer, two that are still to be subtracted for DIFF and DIFF V2.
"""
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION}


def plain(q, k, v):
    return (F.scaled_dot_product_attention(q, k, v, is_causal=True),)


def pair(q, k, v):
    """Two calls whose values are twice as wide as queries and keys."""
    return tuple(F.scaled_dot_product_attention(q[:, i::2], k[:, i::2], v, is_causal=True) for i in (0, 1))


def quad(q, k, v):
    """Four calls of equal widths: for kernels that want values as wide as keys."""
    halves = v.chunk(2, -1)
    return tuple(torch.cat([F.scaled_dot_product_attention(q[:, i::2], k[:, i::2], h, is_causal=True) for h in halves], -1) for i in (0, 1))


def grouped(q, k, v):
    """One call; both queries of a pair read the same key and value head."""
    a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    return a[:, 0::2], a[:, 1::2]


def repeated(q, k, v):
    """The same with keys and values written out for both queries."""
    a = F.scaled_dot_product_attention(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1), is_causal=True)
    return a[:, 0::2], a[:, 1::2]


# By architecture: query heads and key heads per head, width of a value in units of d, and the ways.
ARCHS = {
    "transformer": dict(queries=1, keys=1, values=1, ways={"plain": plain}),
    "diff": dict(queries=2, keys=2, values=2, ways={"pair": pair, "quad": quad}),
    "diff2": dict(queries=2, keys=1, values=1, ways={"grouped": grouped, "repeated": repeated}),
}


def tensors(arch, batch, heads, seq, d):
    """Random q, k, v as they lie in a fused projection, [B, T, heads, d] seen as [B, heads, T, d]."""
    a = ARCHS[arch]

    def leaf(n, width):
        x = torch.randn(batch, seq, n, width, device="cuda", dtype=torch.bfloat16)
        return x.transpose(1, 2).requires_grad_()

    return leaf(heads * a["queries"], d), leaf(heads * a["keys"], d), leaf(heads, d * a["values"])


def timed(f, reps, between=lambda: None):
    """Seconds of each repetition by events; between runs before each and is not counted."""
    out = []
    for _ in range(reps):
        between()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        f()
        end.record()
        torch.cuda.synchronize()
        out.append(begin.elapsed_time(end) / 1e3)
    return out


def combine(maps):
    """The output of a head: with a fixed λ, since learning it costs next to nothing."""
    return maps[0] if len(maps) == 1 else maps[0] - 0.5 * maps[1]


def measure(way, backend, q, k, v, warmup, reps, between=lambda: None):
    """Seconds of forward alone and of forward with backward."""
    with sdpa_kernel([BACKENDS[backend]]):
        grad = torch.randn_like(combine(way(q, k, v)))

        def forward():
            with torch.no_grad():
                combine(way(q, k, v))

        def both():
            combine(way(q, k, v)).backward(grad)
            q.grad = k.grad = v.grad = None

        timed(both, warmup)
        return timed(forward, reps, between), timed(both, reps, between)


def best(arch, batch, heads, seq, d, backends, ways):
    """The fastest way and backend for this shape, and what each took: [(seconds, way, backend)]; failures are left out."""
    q, k, v = tensors(arch, batch, heads, seq, d)
    tried = []
    for name, way in ARCHS[arch]["ways"].items():
        if ways and name not in ways:
            continue
        for backend in backends:
            try:
                _, both = measure(way, backend, q, k, v, 3, 5)
                tried.append((sorted(both)[len(both) // 2], name, backend))
            except RuntimeError:  # no kernel for these widths
                continue
    if not tried:
        raise SystemExit(f"no backend of {backends} can compute {arch} with heads of {d}")
    return sorted(tried)
