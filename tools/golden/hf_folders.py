"""Writes golden folders of Hugging Face's Llama and DiffLlama with random weights: the truth of hf's golden tests.

    python3 hf_folders.py OUT [NAME ...]

Each folder is what save_pretrained writes, and golden.safetensors beside it: input_ids [B,T], logits [B,T,V], the mean
shifted cross-entropy loss, grad/NAME of every parameter, and greedy (16 prompt ids and 64 more). Everything in float32 on
the CPU. Point ANTIPHASE_GOLDEN at OUT and run `go test ./hf`.
"""
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import DiffLlamaConfig, DiffLlamaForCausalLM, LlamaConfig, LlamaForCausalLM

BASE = dict(vocab_size=320, hidden_size=64, intermediate_size=176, num_hidden_layers=3, num_attention_heads=8,
            num_key_value_heads=4, head_dim=16, max_position_embeddings=256, rms_norm_eps=1e-5, initializer_range=0.1,
            bos_token_id=1, eos_token_id=2, pad_token_id=0, tie_word_embeddings=False)
DIFF = dict(lambda_std_dev=0.3)


def rope(kind, **more):
    return dict(rope_parameters=dict(rope_type=kind, rope_theta=10000.0, **more))


LLAMA3 = rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)
YARN = rope("yarn", factor=4.0, original_max_position_embeddings=64)

VARIANTS = {
    "bias": dict(attention_bias=True),
    "tied": dict(tie_word_embeddings=True),
    "mqa": dict(num_key_value_heads=1),
    "odd-kv": dict(hidden_size=96, num_attention_heads=6, num_key_value_heads=3, head_dim=16),
    "wide-head": dict(head_dim=24),
    "theta": rope("default") | dict(rope_parameters=dict(rope_type="default", rope_theta=640000.0)),
    "linear": rope("linear", factor=2.0),
    "dynamic": rope("dynamic", factor=2.0),
    "llama3": LLAMA3,
    "yarn": YARN,
    "eps": dict(rms_norm_eps=1e-3),
    "bf16": dict(),
    "sharded": dict(),
}


# DiffLlama wants an even number of key/value heads.
ODD = ("mqa", "odd-kv")


def build(kind, extra):
    cfg = BASE | (DIFF if kind == "diffllama" else {}) | extra
    make = (DiffLlamaConfig, DiffLlamaForCausalLM) if kind == "diffllama" else (LlamaConfig, LlamaForCausalLM)
    cfg = make[0](**cfg)
    cfg._attn_implementation = "eager"
    return make[1](cfg).float().eval()


def perturb(model):
    """Move norm gains and biases off their initial ones and zeros, so that an unread one shows."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.ndim == 1 and "lambda" not in name:
                p.add_(0.2 * torch.randn_like(p))


def golden(model, vocab):
    ids = torch.randint(3, vocab, (2, 48))
    out = model(input_ids=ids)
    loss = torch.nn.functional.cross_entropy(out.logits[:, :-1].reshape(-1, vocab), ids[:, 1:].reshape(-1))
    loss.backward()
    tensors = {"input_ids": ids, "logits": out.logits.detach().clone(), "loss": loss.detach().clone()}
    for name, p in model.named_parameters():
        tensors["grad/" + name] = p.grad.detach().clone()
    prompt = torch.randint(3, vocab, (1, 16))
    with torch.no_grad():
        tensors["greedy"] = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=64,
                                           min_new_tokens=64, do_sample=False)[0].clone()
    return {k: v.contiguous() for k, v in tensors.items()}


def main():
    out = Path(sys.argv[1])
    want = set(sys.argv[2:])
    for kind in ("diffllama", "llama"):
        for name, extra in VARIANTS.items():
            folder = f"{kind}-{name}"
            if want and folder not in want or kind == "diffllama" and name in ODD:
                continue
            torch.manual_seed(sum(map(ord, folder)))
            model = build(kind, extra)
            perturb(model)
            if name == "bf16":  # weights that bf16 holds exactly, computed in float32
                with torch.no_grad():
                    for p in model.parameters():
                        p.copy_(p.bfloat16().float())
            tensors = golden(model, BASE["vocab_size"])
            if name == "bf16":
                model = model.bfloat16()
            model.save_pretrained(out / folder, max_shard_size="200KB" if name == "sharded" else "5GB")
            save_file(tensors, out / folder / "golden.safetensors")
            print(folder, json.dumps({"loss": float(tensors["loss"])}), flush=True)


main()
