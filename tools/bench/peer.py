"""What the peers' scripts share: statistics, and a worker that stays alive so that two programs can be measured in turns."""
import json
import statistics
import sys


def quartiles(values):
    """25th, 50th and 75th percentiles, linear between neighbours, as antiphase bench takes them."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, mid, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, mid, high


def row(name, seconds, value, unit, **more):
    """One measurement: value turns seconds into the unit."""
    low, mid, high = quartiles([value(s) for s in seconds])
    return dict(name=name, value=mid, low=low, high=high, unit=unit, reps=len(seconds), **more)


def say(x):
    print(json.dumps(x), flush=True)


def run(measure, serve):
    """Measure once; or, as a worker, say when ready and measure once for every line of standard input."""
    if not serve:
        say(measure())
        return
    say(dict(ready=True))
    for _ in sys.stdin:
        say(measure())
