"""Writes a tokenizer.json out of a tiktoken rank file or of GPT-2's vocabulary and merges, to compare real vocabularies.

    python3 tiktoken_json.py cl100k_base.tiktoken OUT/tokenizer.json
    python3 tiktoken_json.py gpt2_vocab.json gpt2_merges.txt OUT/tokenizer.json

A rank file has no merges: the pair that makes a token is what byte-pair encoding leaves of it when only lower ranks may merge.
"""
import base64
import json
import sys
from pathlib import Path

CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CL100K_SPECIALS = {"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259, "<|fim_suffix|>": 100260, "<|endofprompt|>": 100276}


def alphabet():
    """The byte-level alphabet: printable bytes stand for themselves, the others for characters from U+0100 on."""
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table, n = {}, 0
    for b in range(256):
        table[b] = chr(b) if b in keep else chr(256 + n)
        n += b not in keep
    return table


def split(token, ranks, below):
    """The two parts whose merge makes token: byte-pair encoding of it with ranks under below."""
    parts = [bytes([b]) for b in token]
    while len(parts) > 2:
        best, at = None, None
        for i in range(len(parts) - 1):
            r = ranks.get(parts[i] + parts[i + 1])
            if r is not None and r < below and (best is None or r < best):
                best, at = r, i
        if at is None:
            return None
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def from_ranks(path):
    spell = alphabet()
    ranks = {}
    for line in Path(path).read_text().splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    text = lambda b: "".join(spell[x] for x in b)
    merges = []
    for token, rank in sorted(ranks.items(), key=lambda kv: kv[1]):
        if len(token) > 1:
            a, b = split(token, ranks, rank)
            merges.append([text(a), text(b)])
    pre = {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": CL100K}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]}
    return {text(t): r for t, r in ranks.items()}, merges, pre, CL100K_SPECIALS


def from_gpt2(vocab, merges):
    vocab = json.loads(Path(vocab).read_text())
    pairs = [line.split(" ") for line in Path(merges).read_text().splitlines() if line and not line.startswith("#version")]
    end = vocab.pop("<|endoftext|>")
    pre = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return vocab, pairs, pre, {"<|endoftext|>": end}


def main():
    *sources, out = sys.argv[1:]
    vocab, merges, pre, specials = from_gpt2(*sources) if len(sources) == 2 else from_ranks(*sources)
    added = [dict(id=i, content=t, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True) for t, i in specials.items()]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    file = dict(version="1.0", truncation=None, padding=None, added_tokens=added, normalizer=None, pre_tokenizer=pre, post_processor=level, decoder=level,
                model=dict(type="BPE", dropout=None, unk_token=None, continuing_subword_prefix=None, end_of_word_suffix=None, fuse_unk=False,
                           byte_fallback=False, ignore_merges=False, vocab=vocab, merges=merges))
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    Path(out).write_text(json.dumps(file, ensure_ascii=False))
    print(f"{len(vocab)} tokens, {len(merges)} merges")


main()
