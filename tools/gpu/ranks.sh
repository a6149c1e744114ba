#!/usr/bin/env bash
# Several NCCL ranks on one GPU, on a machine that needs neither Go nor a launcher nor a network: `make gpu` builds bin/antiphase and
# bin/train.test, this starts one process per rank with torchrun's variables. NCCL refuses two ranks of one host on one GPU, so each claims
# a host of its own and they talk through sockets on the loopback: results and failures can be seen here, speed cannot.
#   tools/gpu/ranks.sh                        everything, within LIMIT seconds (150)
#   tools/gpu/ranks.sh layouts lost absent    parts of it; there are also layer and save
# STEPS (16), LIMIT and OUT (a folder for ranks-table.txt and ranks-logs.txt) are variables. The table comes last. DEVICE=cpu tries the script where there is no GPU,
# with mpirun.
set -uo pipefail
cd "$(dirname "$0")/../.."
steps=${STEPS:-16}
limit=${LIMIT:-150}
device=${DEVICE:-cuda}
bin=$PWD/bin/antiphase
work=$(mktemp -d)
logs=$work/logs
table=$work/table
mkdir -p "$logs"
SECONDS=0
trap 'kill_all; keep; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# NCCL of PyTorch's wheel, where the loader does not know it.
if nccl=$(python3 -c 'import nvidia.nccl as n; print(list(n.__path__)[0] + "/lib")' 2>/dev/null) && [[ -e $nccl/libnccl.so.2 ]]; then
  export ANTIPHASE_CUDA_PATH=${ANTIPHASE_CUDA_PATH:+$ANTIPHASE_CUDA_PATH:}$nccl
fi
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK NODE_RANK MASTER_ADDR MASTER_PORT TORCHELASTIC_RUN_ID
export NCCL_NET=Socket NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 NCCL_DEBUG=WARN

say() { printf '%s\n' "$*" | tee -a "$table"; }
left() { echo $((limit - SECONDS)); }
# out_of_time SECONDS WHAT: says so and is true where fewer seconds are left.
out_of_time() {
  (($(left) >= $1)) && return 1
  say "$2: not run, $(left) of $limit s left"
}

# keep leaves the table and the end of every log in OUT, as two files.
keep() {
  [[ -n ${OUT:-} ]] || return
  mkdir -p "$OUT"
  cp "$table" "$OUT/ranks-table.txt" 2>/dev/null
  tail -n 200 -v "$logs"/*.log >"$OUT/ranks-logs.txt" 2>/dev/null
}

pids=()
kill_all() {
  local p
  for p in "${pids[@]}"; do kill -9 "$p" 2>/dev/null; done
  pids=()
}

# begin NAME N ARG...: n ranks of the program in the background. $work/NAME.R gets a rank's process, $work/NAME.R.exit its exit code and
# when it left, $logs/NAME.R.log what it says.
begin() {
  local name=$1 n=$2 r tries
  shift 2
  pids=()
  rm -f "$work/$name".*
  mkdir -p "$work/meet-$name"
  if [[ $device == cpu ]] && ((n > 1)); then
    mpirun --allow-run-as-root --oversubscribe -np "$n" "$0" __rank "$work/$name" "$logs/$name" "${program:-$bin}" "$@" >"$logs/$name.mpirun.log" 2>&1 &
  else
    for ((r = 0; r < n; r++)); do
      local who=()
      ((n == 1)) || who=(--rendezvous "file://$work/meet-$name" --interface lo --join-timeout 40s --peer-timeout 5s --stall-timeout 40s)
      rank_of "$work/$name" "$logs/$name" "$r" "$n" "${program:-$bin}" "$@" "${who[@]}" &
    done
  fi
  for ((r = 0; r < n; r++)); do
    for ((tries = 0; tries < 100; tries++)); do [[ -s $work/$name.$r ]] && break; sleep 0.05; done
    pids+=("$(cat "$work/$name.$r")")
  done
}

# rank_of STATE LOG R N PROGRAM ARG...: one rank, and how it ended.
rank_of() {
  local state=$1 log=$2 r=$3 n=$4 p
  shift 4
  if [[ $device != cpu ]] && ((n > 1)); then
    export RANK=$r WORLD_SIZE=$n LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 NCCL_HOSTID=host$r
  fi
  "$@" >"$log.$r.log" 2>&1 &
  p=$!
  echo "$p" >"$state.$r"
  wait "$p"
  echo "$? $EPOCHREALTIME" >"$state.$r.exit"
} 2>/dev/null
if [[ ${1:-} == __rank ]]; then # as mpirun starts it
  trap - EXIT
  trap '' TERM
  shift
  state=$1 log=$2
  shift 2
  rank_of "$state" "$log" "$OMPI_COMM_WORLD_RANK" "$OMPI_COMM_WORLD_SIZE" "$@"
  rm -rf "$work"
  exit "$(cut -d' ' -f1 "$state.$OMPI_COMM_WORLD_RANK.exit")"
fi

# finish NAME N SECONDS: waits for the ranks, ends those that take longer. code is the largest exit code.
finish() {
  local name=$1 n=$2 until=$((SECONDS + $3)) r
  code=0
  for ((r = 0; r < n; r++)); do
    until [[ -s $work/$name.$r.exit ]] || ! kill -0 "${pids[r]}" 2>/dev/null || ((SECONDS >= until)); do sleep 0.1; done
  done
  ((SECONDS < until)) || say "$name: ended after $3 s"
  kill_all
  sleep 0.2
  for ((r = 0; r < n; r++)); do
    local c=137
    [[ -s $work/$name.$r.exit ]] && c=$(cut -d' ' -f1 "$work/$name.$r.exit")
    ((c > code)) && code=$c
  done
}

tiny=(--size tiny --arch diff --device "$device" --data "$work/set" model.dim=256 model.heads=4 model.kv_heads=4 model.head_dim=32 model.ffn=688
  model.layers=2 optim.warmup=4 train.seq_len=128 train.batch=16 train.micro_batch=8 train.eval_every=0 train.eval_batches=4 train.log_every=10)
big=(--size 160m --arch diff --device "$device" --data "$work/set" train.eval_every=0 train.eval_batches=0)
[[ $device == cuda ]] || big=(--size tiny --arch diff --device "$device" --data "$work/set" train.eval_every=0 train.eval_batches=0)

# data makes one token set for all runs.
data() {
  timeout 60 "$bin" tokenizer train synthetic:docs=2000 --vocab 1024 -o "$work/tok.json" -q &&
    timeout 60 "$bin" data build synthetic:docs=2000 --tokenizer "$work/tok.json" -o "$work/set" -q
} >"$logs/data.log" 2>&1

# compare NAME: largest difference of a step's loss from the single process's, and the last held-out loss.
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
print(f'{abs(one[worst]["loss"] - got[worst]["loss"]):9.5f} at {worst + 1:<3} {got[0]["loss"]:7.4f} → {got[-1]["loss"]:7.4f}  {held[-1] if held else float("nan"):8.4f}')
PY
}

# moments NAME: MiB of moments on rank 0's device, and of every rank's file of moments.
moments() {
  local mib
  mib=$(sed -n 's/^.*moments on this rank: \([0-9.]*\) MiB.*/\1/p' "$logs/$1.0.log" | head -n 1)
  printf '%6s  %s' "${mib:--}" "$(find "$work/$1/checkpoints" -name 'optimizer*.safetensors' -printf '%f %s\n' 2>/dev/null | sort |
    awk '{printf "%s%.2f", sep, $2 / 1048576; sep = " "}')"
}

# row NAME N LAYOUT SETTING...: one line of the table.
row() {
  local name=$1 n=$2 layout=$3 began=$SECONDS how=()
  shift 3
  out_of_time 25 "$name ($layout)" && return
  ((n == 1)) || how=(--parallel "$layout")
  begin "$name" "$n" train "${tiny[@]}" --dir "$work/$name" "train.steps=$steps" train.save_every=0 "${how[@]}" "$@"
  finish "$name" "$n" 60
  say "$(printf '%-18s %d  exit %-3d %3d s  %s  %s' "$layout" "$n" "$code" $((SECONDS - began)) "$(compare "$name")" "$(moments "$name")")"
  ((code == 0)) || tail -qn 2 "$logs/$name".[0-9].log | cut -c1-300
}

# layouts: curves beside one process's. Its second line is the same run with other micro-batches, which is the noise of bf16 (its held-out
# loss is over other rows).
layouts() {
  say "$(printf '%-18s %s  %-8s %5s  %16s %18s  %8s  %6s  %s' layout n exit time 'loss off, step' 'first → last loss' 'held out' moments 'files of moments, MiB')"
  row one 1 'one process'
  row again 1 'other micro-batch' train.micro_batch=16
  row dp2 2 dp=2
  row zero2 2 dp=2,zero=1
  row tp2 2 tp=2
  row dp4 4 dp=4
  row zero4 4 dp=4,zero=1
  row tp4 4 tp=4
  row all 4 dp=2,tp=2,zero=1
  if [[ -d $work/all/checkpoints ]] && ! out_of_time 15 resume; then
    begin resume 1 train "${tiny[@]}" --dir "$work/all" "train.steps=$((steps + 2))" train.save_every=0 --inexact
    finish resume 1 30
    say "the last one's checkpoint, continued by one process: exit $code, $(tail -n 1 "$logs/resume.0.log" | cut -c1-100)"
  fi
}

# lost NAME N LAYOUT VICTIM: kill -9 of a rank inside a run of collectives; the others must leave with 75 and name it.
lost() {
  local name=$1 n=$2 layout=$3 victim=$4 r i
  out_of_time 30 "kill -9 ($layout)" && return
  begin "$name" "$n" train "${tiny[@]}" --dir "$work/$name" train.steps=1000000 train.save_every=4 --parallel "$layout"
  for ((i = 0; i < 200; i++)); do
    compgen -G "$work/$name/checkpoints/step-????????" >/dev/null && break
    sleep 0.1
  done
  sleep 0.5
  local at=$EPOCHREALTIME
  kill -9 "${pids[victim]}"
  finish "$name" "$n" 25
  for ((r = 0; r < n; r++)); do
    ((r == victim)) && continue
    local c=- when=$EPOCHREALTIME
    [[ -s $work/$name.$r.exit ]] && read -r c when <"$work/$name.$r.exit"
    say "$(printf 'kill -9 of rank %d (%s): rank %d left with %s after %.1f s: %s' "$victim" "$layout" "$r" "$c" \
      "$(awk -v a="$at" -v b="$when" 'BEGIN {print b - a}')" "$(grep -a 'error: ' "$logs/$name.$r.log" | tail -n 1 | cut -c1-150)")"
  done
}

# absent: the same program, asked for a library that is not there.
absent() {
  out_of_time 20 'NCCL absent' && return
  sed 's/libnccl\.so\.2/libnccl.so.9/g' "$bin" >"$work/without" && chmod +x "$work/without"
  program=$work/without begin absent 2 train "${tiny[@]}" --dir "$work/absent" train.steps=4
  finish absent 2 15
  local r
  for r in 0 1; do
    say "NCCL absent: rank $r left with $(cut -d' ' -f1 "$work/absent.$r.exit" 2>/dev/null): $(grep -ac 'error: ' "$logs/absent.$r.log") line: $(
      grep -a 'error: ' "$logs/absent.$r.log" | head -n 1 | cut -c1-150)"
  done
}

# layer: what the layer for ranks adds to a step of one rank.
layer() {
  out_of_time 25 'cost at world = 1' && return
  if [[ ! -x bin/train.test ]]; then
    say 'cost at world = 1: not run, bin/train.test is missing (make gpu)'
    return
  fi
  (cd train && timeout 60 ../bin/train.test -test.run '^$' -test.bench "Layer/$device" -test.benchtime 6s) >"$logs/layer.log" 2>&1
  say "cost at world = 1: $(grep -a '^BenchmarkLayer' "$logs/layer.log" | tr -s ' \t' ' ' || tail -n 1 "$logs/layer.log")"
}

# save: what checkpoints of 160m cost, of the recipe's own batch. A save's cost is the pause plus what steps lose while it is written, against
# the median of the steps before it; per 100 steps that is one of them.
save() {
  out_of_time 45 'asynchronous save' && return
  begin save 1 train "${big[@]}" --dir "$work/save" train.steps=30 train.save_every=10 train.keep_last=1
  finish save 1 $(($(left) > 70 ? 70 : $(left)))
  say "asynchronous save, exit $code: $(python3 - "$work/save/metrics.jsonl" <<'PY'
import json, statistics, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
quiet = statistics.median(r["step_ms"] for r in rows[3:10])
tok = rows[5]["tok_s"] * rows[5]["step_ms"] / 1e3
pause, slower, n = 0.0, 0.0, 0
for at in (10, 20):  # the row after a save tells its pause
    if at + 9 > len(rows):
        break
    n += 1
    pause += 1e3 * (rows[at].get("save_s") or 0)
    slower += sum(r["step_ms"] - quiet for r in rows[at:at + 9])
share = (pause + slower) / max(n, 1) / (100 * quiet)
print(f"step {quiet:.0f} ms ({tok / quiet * 1e3:.0f} tokens/s), pause {pause / max(n, 1):.0f} ms, steps while it writes {slower / max(n, 1):+.0f} ms in all: "
      f"{100 * share:.2f} % of 100 steps ({n} saves)")
PY
)"
}

[[ -x $bin ]] || { echo "$0: bin/antiphase is missing: make gpu" >&2; exit 2; }
data || { cat "$logs/data.log"; exit 1; }
for part in "${@:-all}"; do
  case $part in
  layouts | absent | layer | save) "$part" ;;
  lost) lost lost4 4 dp=4,zero=1 2; lost lost2 2 tp=2 1 ;;
  all) layouts; lost lost4 4 dp=4,zero=1 2; lost lost2 2 tp=2 1; absent; save; layer ;;
  *) echo "$0: $part is unknown; there are layouts, lost, absent, layer and save" >&2; exit 2 ;;
  esac
done >"$logs/run.log" 2>&1
tail -n +1 "$logs/run.log" | grep -avxF -f "$table" | tail -n 30
printf '\n'
cat "$table"
printf 'in all %d s; %s\n' "$SECONDS" "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo no GPU)" | tee -a "$table"
