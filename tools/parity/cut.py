#!/usr/bin/env python3
"""Cuts the documents of a JSONL stream into documents of at most 8,000 characters, at a space where there is one.

    zstd -dc books.jsonl.zst | cut.py > cut.jsonl

A trainer that mixes its rows well learns the same from both; one that reads document after document does not.
"""
import json
import sys

SIZE = 8000


def pieces(text):
    while len(text) > SIZE:
        at = text.rfind(" ", SIZE // 2, SIZE)
        at = SIZE if at < 0 else at
        yield text[:at]
        text = text[at:]
    yield text


for line in sys.stdin:
    for piece in pieces(json.loads(line)["text"]):
        print(json.dumps({"text": piece}, ensure_ascii=False))
