#!/usr/bin/env bash
# Several NCCL ranks on one GPU: `make build` makes bin/antiphase, this starts it once per rank. NCCL refuses two ranks of one host on
# one GPU, so each claims a host of its own and they talk through sockets on the loopback: right results and failures can be seen
# here, speed cannot.
#   tools/gpu/ranks.sh [STEPS]     layouts of 2 and 4 ranks beside one process, then kill -9 of a rank inside a run
# Prints a table: largest difference of a step's loss from one process's, held-out loss, GPU memory of rank 0.
set -uo pipefail
cd "$(dirname "$0")/../.."
steps=${1:-60}
bin=$PWD/bin/antiphase
work=$(mktemp -d)
trap 'jobs -p | xargs -r kill -9 2>/dev/null; rm -rf "$work"' EXIT
common=(train --size tiny --arch diff --device "${DEVICE:-cuda}" --quiet --data synthetic:docs=3000
  train.batch=16 train.micro_batch=4 train.seq_len=128 train.eval_every=0 train.eval_batches=4 data.held_out=0.05)

# start NAME N LAYOUT SETTING...: n ranks in the background, their pids in pids[].
start() {
  local name=$1 n=$2 layout=$3 r
  shift 3
  mkdir -p "$work/$name" "$work/$name.meet"
  pids=()
  for ((r = 0; r < n; r++)); do
    local who=()
    if ((n > 1)); then
      who=(--rank "$r" --world-size "$n" --local-rank 0 --rendezvous "file://$work/$name.meet" --interface lo --peer-timeout 5s --parallel "$layout")
    fi
    NCCL_HOSTID=host$r NCCL_NET=Socket NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 \
      "$bin" "${common[@]}" --dir "$work/$name" "${who[@]}" "$@" >"$work/$name.$r.log" 2>&1 &
    pids+=($!)
  done
}

# memory PID: the most MiB that nvidia-smi saw it use until it ended; n/a where processes are hidden.
memory() {
  local most=0 now
  while kill -0 "$1" 2>/dev/null; do
    now=$(nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader,nounits 2>/dev/null | awk -F', ' -v p="$1" '$1 == p {print $2}')
    [[ $now =~ ^[0-9]+$ ]] && ((now > most)) && most=$now
    sleep 0.2
  done
  ((most > 0)) && echo "$most" || echo n/a
}

# compare NAME: largest difference of the loss, its step, last held-out loss.
compare() {
  python3 - "$work/one/metrics.jsonl" "$work/$1/metrics.jsonl" <<'PY'
import json, sys
def rows(path):
    try:
        return [json.loads(line) for line in open(path)]
    except OSError:
        return []
one, got = map(rows, sys.argv[1:])
if len(got) != len(one) or not one:
    print(f"{len(got)} of {len(one)} rows")
    sys.exit()
worst = max(range(len(one)), key=lambda i: abs(one[i]["loss"] - got[i]["loss"]))
held = [r.get("valid_loss") for r in got if r.get("valid_loss") is not None]
print(f'{abs(one[worst]["loss"] - got[worst]["loss"]):.5f} at step {worst + 1}, loss {got[-1]["loss"]:.4f}, held out {held[-1] if held else "none"}')
PY
}

# row NAME N LAYOUT: one line of the table.
row() {
  local code=0 p began=$SECONDS mib
  start "$1" "$2" "$3" "train.steps=$steps" train.save_every=0
  mib=$(memory "${pids[0]}")
  for p in "${pids[@]}"; do wait "$p" || code=$?; done
  printf '%-22s %2d  exit %-3d %4d s  %6s MiB  %s\n' "$3" "$2" "$code" $((SECONDS - began)) "$mib" "$(compare "$1")"
  ((code == 0)) || tail -n 3 "$work/$1".*.log | cut -c1-240
}

# lost LAYOUT: kill -9 of a rank while collectives run; the others must leave with 75 and name it.
lost() {
  local name=lost-${1//[^a-z0-9]/} i p code
  start "$name" 4 "$1" train.steps=1000000 train.save_every=20
  for ((i = 0; i < 600; i++)); do
    compgen -G "$work/$name/checkpoints/step-????????" >/dev/null && break
    sleep 0.1
  done
  sleep 1
  kill -9 "${pids[2]}"
  local began=$(date +%s.%N)
  for i in 0 1 3; do
    timeout 60 tail --pid="${pids[i]}" -f /dev/null
    wait "${pids[i]}"
    code=$?
    printf 'kill -9 of rank 2 (%s): rank %d left with %d after %.1f s: %s\n' "$1" "$i" "$code" "$(awk -v a="$began" -v b="$(date +%s.%N)" "BEGIN {print b - a}")" \
      "$(grep -a 'error:' "$work/$name.$i.log" | tail -n 1 | cut -c1-160)"
  done
}

printf '%-22s %2s  %-8s %6s  %10s  %s\n' layout n exit time 'rank 0' 'loss beside one process'
row one 1 dp=1
row dp2 2 dp=2
row zero2 2 dp=2,zero=1
row tp2 2 tp=2
row dp4 4 dp=4
row zero4 4 dp=4,zero=1
row dp2tp2 4 dp=2,tp=2
row all 4 dp=2,tp=2,zero=1
lost dp=4,zero=1
lost dp=2,tp=2
echo "resumed by one process: $("$bin" "${common[@]}" --dir "$work/all" train.steps=$((steps + 2)) 2>&1 | tail -n 1)"
