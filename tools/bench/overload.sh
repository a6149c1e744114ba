#!/usr/bin/env bash
# A server under 1, 2 and 10 times the load that it can take, on loopback: what is accepted, how long it takes, how fast the rest is
# refused, and whether anything is left afterwards. `make build` makes bin/antiphase.
#   tools/bench/overload.sh MODEL      MODEL is a run folder, a checkpoint or a Hugging Face folder
# SECONDS_EACH=60   time of one load          PROMPT=64 OUTPUT=64   tokens of a request
# SERVER_CORES=0,1  where the server runs     CLIENT_CORES=2-3      where the load comes from; by default both are anywhere
# DEVICE=cpu        and further flags of serve in FLAGS
set -euo pipefail
cd "$(dirname "$0")/../.."
model=${1:?which model?}
each=${SECONDS_EACH:-60}
bin=$PWD/bin/antiphase
work=$(mktemp -d)
pid=
trap '[[ -n $pid ]] && kill "$pid" 2>/dev/null; wait; rm -rf "$work"' EXIT

on() { # CORES COMMAND...: run it there
  local cores=$1
  shift
  if [[ -n $cores ]]; then exec taskset -c "$cores" "$@"; else exec "$@"; fi
}

: >"$work/log"
# shellcheck disable=SC2086 # FLAGS are several words
on "${SERVER_CORES:-}" "$bin" serve --model "m=$model" --listen 127.0.0.1:0 --device "${DEVICE:-cpu}" --log-json ${FLAGS:-} 2>"$work/log" &
pid=$!
for ((i = 0; i < 600; i++)); do
  url=$(sed -n 's/^serving on //p' "$work/log")
  [[ -n $url ]] && break
  kill -0 "$pid" || { cat "$work/log" >&2; exit 1; }
  sleep 0.1
done

load() { (on "${CLIENT_CORES:-}" "$bin" bench serve --url "$url" --vocab 250 --prompt "${PROMPT:-64}" --output "${OUTPUT:-64}" --deadline 5s --json "$@"); }
field() { python3 -c 'import json, sys; print(eval("r" + sys.argv[1], {"r": json.load(sys.stdin)}))' "$1"; }
state() { # what the server holds
  curl -s "$url/metrics" | awk -v rss="$(awk '/VmRSS/ {print int($2 / 1024)}' "/proc/$pid/status")" '
    /^antiphase_num_requests_running/ {run = $2} /^antiphase_num_requests_waiting/ {wait = $2} /^antiphase_kv_cache_usage_perc/ {kv = $2} /^go_goroutines/ {go = $2}
    END {printf "running %d, waiting %d, pages %.3f, goroutines %d, %d MiB\n", run, wait, kv, go, rss}'
}

load --concurrency 11 --requests 22 >/dev/null # to warm up
capacity=$(load --concurrency 11 --requests 99 | field '["answered_rps"]')
sleep 2
printf 'capacity %.1f answers/s; before: %s\n' "$capacity" "$(state)"
printf '%5s %10s %12s %10s %12s %10s %16s %14s\n' load offered/s answered/s refused failed goodput 'accepted p99 s' 'refusal p99 ms'
for times in 1 2 10; do
  rate=$(awk -v c="$capacity" -v t="$times" 'BEGIN {print c * t}')
  load --rate "$rate" --requests "$(awk -v r="$rate" -v s="$each" 'BEGIN {print int(r * s) + 1}')" >"$work/$times.json"
  python3 - "$work/$times.json" "$times" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
print(f'{sys.argv[2]:>4}× {r["offered_rps"]:10.1f} {r["answered_rps"]:12.1f} {r["rejected_429"]:10d} {r["failed"]:12d} {r["goodput_rps"]:10.1f} {r["e2e"]["p99"]:16.2f} {1e3 * r["reject"]["p99"]:14.1f}')
for text, n in r.get("errors", {}).items():
    print(f"      {n} × {text}")
PY
done
sleep 8 # an idle server gives memory back after 5 s
printf 'after: %s\n' "$(state)"
