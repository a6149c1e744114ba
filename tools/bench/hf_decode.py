"""Greedy generation with Hugging Face transformers on one GPU, bf16, random weights: prompt and generated tokens per second.

python3 hf_decode.py --model diff --layers 12 --dim 768 --head 64 --ffn 2048 --vocab 50304 --batch 1,64 --context 4096
"""
import argparse
import time

import torch
import transformers

import peer


def build(a):
    kinds = {"diff": ("DiffLlamaConfig", "DiffLlamaForCausalLM"), "transformer": ("LlamaConfig", "LlamaForCausalLM")}
    config, cls = (getattr(transformers, name) for name in kinds[a.model])
    heads = a.dim // a.head
    c = config(vocab_size=a.vocab, hidden_size=a.dim, intermediate_size=a.ffn, num_hidden_layers=a.layers, num_attention_heads=heads,
               num_key_value_heads=heads, max_position_embeddings=a.context + a.tokens + 16, tie_word_embeddings=True)
    with torch.device("cuda"):
        m = cls(c).to(torch.bfloat16).eval()
    m.generation_config.eos_token_id = None  # random weights may say anything; the length must be ours
    return m


def generate(m, ids, n, cache):
    more = dict(cache_implementation="static") if cache == "static" else {}
    torch.cuda.synchronize()
    begin = time.perf_counter()
    out = m.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=n, pad_token_id=0, **more)
    torch.cuda.synchronize()
    assert out.shape[1] == ids.shape[1] + n, out.shape
    return time.perf_counter() - begin


def rows(m, a):
    out = []
    for batch in a.batch:
        ids = torch.randint(3, a.vocab, (batch, a.context), device="cuda")
        for cache in a.cache:
            about = dict(model=a.model, batch=batch, context=a.context, cache=cache)
            try:
                generate(m, ids, 4, cache)
                first, rest = [], []
                for _ in range(a.reps):  # the difference of a long and a short run is generation alone
                    first.append(generate(m, ids, 1, cache))
                    rest.append(max(generate(m, ids, 1 + a.tokens, cache) - first[-1], 1e-9))
            except Exception as e:  # a cache that the model does not take, or memory
                out.append(dict(about, error=f"{type(e).__name__}: {e}"[:160]))
                continue
            for what, sec, n in (("prefill", first, a.context), ("decode", rest, a.tokens)):
                about["pass"] = what
                out.append(peer.row(f"{a.model} {cache} {what} batch {batch}", sec, lambda s: batch * n / s, "tokens/s", **about))
        torch.cuda.empty_cache()
    return out


def main():
    ints = lambda s: [int(x) for x in s.split(",")]
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", choices=("diff", "transformer"), default="diff")
    sizes = dict(layers=12, dim=768, head=64, ffn=2048, vocab=50304, context=4096, tokens=64, reps=3)
    for name, default in sizes.items():
        p.add_argument("--" + name, type=int, default=default)
    p.add_argument("--batch", type=ints, default=[1, 64])
    p.add_argument("--cache", type=lambda s: s.split(","), default=["dynamic", "static"])
    p.add_argument("--serve", action="store_true", help="stay and measure once for every line of standard input")
    a = p.parse_args()
    m = build(a)
    with torch.no_grad():
        peer.run(lambda: dict(transformers=transformers.__version__, gpu=torch.cuda.get_device_name(), rows=rows(m, a)), a.serve)


main()
