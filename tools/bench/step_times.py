"""Speed of the steps around evaluation and saving beside their neighbours', from a run's metrics.jsonl.

    antiphase train --size tiny --dir runs/t --steps 1500 --set train.eval_every=10 --set train.save_every=10
    python3 tools/bench/step_times.py runs/t/metrics.jsonl 10
"""
import json
import statistics
import sys


def quantiles(xs):
    xs = sorted(xs)
    return "median %.3f, 5%% to 95%% %.3f to %.3f" % (statistics.median(xs), xs[len(xs) // 20], xs[-1 - len(xs) // 20])


def main(path, every):
    rows = {r["step"]: r for r in map(json.loads, open(path))}
    evaluated, saved, plain = [], [], []
    for s in range(3 * every, max(rows) - every, every):
        around = [rows[k]["tok_s"] for k in range(s - 4, s + 6) if k not in (s, s + 1)]
        middle = statistics.median(around)
        evaluated.append(rows[s]["tok_s"] / middle)
        saved.append(rows[s + 1]["tok_s"] / middle)
        plain += [x / middle for x in around]
    for name, xs in ("with evaluation", evaluated), ("after a save", saved), ("plain", plain):
        print("%-16s %s" % (name, quantiles(xs)))
    for key in "step_ms", "eval_s", "save_s":
        print("%-16s median %.3f" % (key, statistics.median(r[key] for r in rows.values() if key in r)))


main(sys.argv[1], int(sys.argv[2]))
