"""Writes eval/harness/testdata/golden.json: what lm-evaluation-harness asks for our test tasks, and how it scores the answers.

    python3 tools/golden/harness_tasks.py CHECKOUT eval/harness/testdata/tasks > eval/harness/testdata/golden.json

CHECKOUT is a checkout of EleutherAI/lm-evaluation-harness. Its own classes build the requests and compute the metrics; only what it does
not need for that is replaced: the `datasets` library by a reader of JSON lines, and libraries that are imported and not called. Python
needs jinja2, yaml, numpy, tqdm and sklearn (Debian's python3-* packages). The model is a function of the request's text, so every
answer stands in the file beside its request.
"""

import importlib.metadata
import json
import os
import subprocess
import sys
import types
import zlib

checkout, folder = sys.argv[1], sys.argv[2]


class Rows(list):
    """A data set: rows, and the names of their columns."""

    @property
    def features(self):
        return {k: None for row in self for k in row}

    def map(self, f):
        return Rows({**row, **f(dict(row))} for row in self)


def load_dataset(path, name=None, data_files=None, **_):
    return {split: Rows(json.loads(line) for line in open(os.path.join(folder, f))) for split, f in data_files.items()}


def stub(name, **content):
    m = types.ModuleType(name)
    m.__dict__.update(content)
    sys.modules[name] = m


stub("datasets", load_dataset=load_dataset, Dataset=Rows, __version__="4.0.0")
for unused in ("sacrebleu", "dill", "requests"):
    stub(unused)
try:
    import packaging.version  # noqa: F401
except ImportError:
    stub("packaging")
    stub("packaging.version", parse=lambda s: tuple(int(x) for x in s.split(".")))
version = importlib.metadata.version
importlib.metadata.version = lambda name: "0" if name == "lm_eval" else version(name)
sys.path.insert(0, checkout)

from lm_eval.api.task import ConfigurableTask  # noqa: E402
from lm_eval.tasks import _yaml_loader  # noqa: E402

# Where the functions that our files name lie in the checkout.
FUNCTIONS = {"hellaswag": "hellaswag", "wikitext": "wikitext", "winogrande": "winogrande",
             "cb": "super_glue/cb", "copa": "super_glue/copa", "wsc": "super_glue/wsc"}

# What is said to the questions of generate_until, in turn: right both ways, right after a trailing mark, right for the lenient filter only, wrong.
SPOKEN = [" 12 - 5 = 7\n#### 7", " So $1,300 it is.\n#### 1,300.", " It is -7 degrees", " 2 * 30 = 61\n#### 61"]


def likelihood(*texts):
    """A log-likelihood, and whether the text is the likeliest, of nothing but the text."""
    h = zlib.crc32("\x00".join(texts).encode())
    return -(h % 99991) / 1024, h % 3 == 0


def answer(request):
    if request.request_type == "loglikelihood":
        return likelihood(*request.args)
    if request.request_type == "loglikelihood_rolling":
        return likelihood(*request.args)[0]
    return SPOKEN[request.doc_id % len(SPOKEN)]


def judge(name):
    path = os.path.join(folder, name + ".yaml")
    config = resolved(path, os.path.join(checkout, "lm_eval/tasks", FUNCTIONS.get(name, name)))
    config.pop("tag", None)
    task = ConfigurableTask(config=config)
    task.set_fewshot_seed(1234)
    task.build_all_requests()
    out = {"task": name, "requests": [], "samples": [], "metrics": {}}
    by_doc = {}
    for r in task.instances:
        r.resps.append(answer(r))
        by_doc.setdefault(r.doc_id, []).append(r)
        args = [a for a in r.args if isinstance(a, str)]
        row = {"doc": r.doc_id, "args": args}
        if isinstance(r.resps[0], tuple):
            row["logprob"], row["greedy"] = r.resps[0]
        elif isinstance(r.resps[0], float):
            row["logprob"] = r.resps[0]
        else:
            row["text"], row["until"] = r.resps[0], r.args[1]["until"]
        out["requests"].append(row)
    task.apply_filters()
    values = {}
    for key in task.instances[0].filtered_resps:
        for i, doc in enumerate(task.eval_docs):
            for metric, x in task.process_results(doc, [r.filtered_resps[key] for r in by_doc[i]]).items():
                values.setdefault((metric, key), []).append(x)
    for (metric, key), list_ in values.items():
        out["metrics"][metric + "," + key] = float(task.aggregation()[metric](list_))
        if all(isinstance(x, (int, float)) for x in list_):
            out["samples"].append({"metric": metric + "," + key, "values": [float(x) for x in list_]})
    return out


def resolved(path, functions):
    """The file's keys, with includes and with functions of the checkout."""
    import yaml
    from pathlib import Path

    class Loader(_yaml_loader._make_loader(Path(functions), resolve_funcs=True)):
        pass

    with open(path) as f:
        config = yaml.load(f, Loader=Loader)  # noqa: S506
    if "include" in config:
        config = {**resolved(os.path.join(folder, config.pop("include")), functions), **config}
    return config


commit = os.environ.get("COMMIT") or subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
import jinja2  # noqa: E402

tasks = [judge(f[:-5]) for f in sorted(os.listdir(folder)) if f.endswith(".yaml")]
json.dump({"origin": f"EleutherAI/lm-evaluation-harness@{commit}, jinja2 {jinja2.__version__}, tools/golden/harness_tasks.py", "tasks": tasks},
          sys.stdout, indent=1, ensure_ascii=False)
print()
