#!/usr/bin/env bash
# The wgmma kernels on a Hopper GPU: `make gpu` builds bin/cuda.test, this runs it, each shape in a process of its own with a
# limit, so that a hang costs one shape.
#   tools/gpu/hopper.sh check      build every kernel; results against the general kernels, then the float64 oracle
#   tools/gpu/hopper.sh times      milliseconds in turns with the mma kernels and with variants
#   tools/gpu/hopper.sh lengths    milliseconds of T = 2048 to 65,536, with and without dQ's adds
#   tools/gpu/hopper.sh sanitize [SHAPE...]   plain, V2 and V1 at d = 64, or these shapes, under memcheck
#   tools/gpu/hopper.sh step       tokens/s of 160m with both kinds of kernels
#   tools/gpu/hopper.sh stress [n [without]]
#                                  n processes (20) for each of three shapes and each direction: how many hang, fault or change bits; then
#                                  the same without one suspect: prefetch, registers (no setmaxnreg) or indirect (maps in memory)
#   tools/gpu/hopper.sh variants   ways to add to dQ: bits against the table's kernels, then milliseconds
#   tools/gpu/hopper.sh chunks     prompts over pages against rows one by one
#   tools/gpu/hopper.sh prefill    tokens/s of prompts beside the forward pass of training
#   tools/gpu/hopper.sh adopted    kernels that have become the default: results alone
#   tools/gpu/hopper.sh bytes      decoding with a cache of bytes, tokens/s beside bf16, and its ops
#   tools/gpu/hopper.sh large      a step of 6.8b, and of 1.4b with 65,536 tokens, with recomputation
#   tools/gpu/hopper.sh profile    what bounds the cached kernel at batch 64 and the backward kernels, by ncu
#   tools/gpu/hopper.sh small      small in training, not in a benchmark: one run, then three at once in one process
#   tools/gpu/hopper.sh budget     ops of a step of 160m, V2 beside the Transformer: where V2's step takes longer
#   tools/gpu/hopper.sh peer SIZE  steps of a size in turns with PyTorch: the Transformer, and our DIFF beside it
#   tools/gpu/hopper.sh decode SIZE   batch 64 with a cache of bytes against transformers' generate, in turns
#   tools/gpu/hopper.sh long       steps of 160m with 65,536 tokens
#   tools/gpu/hopper.sh all SECONDS   what has not been measured yet, in order of value, each part with a limit, within SECONDS in all;
#                                  the table of results comes last. PYTHON is the interpreter that has PyTorch and transformers
#   tools/gpu/hopper.sh            check, then times
set -uo pipefail
self=$(realpath "$0")
cd "$(dirname "$0")/../../device/cuda"
bin=$PWD/../../bin/cuda.test
python=${PYTHON:-python3}
export ANTIPHASE_REQUIRE_CUDA=1
shapes=(11_64_64 11_96_96 11_128_128 22_64_128 22_96_192 22_128_256 21_64_64 21_96_96 21_128_128) # maps, key heads, D, DV

# status NAME SECONDS COMMAND...: one line, and the end of the output where it failed.
status() {
  local name=$1 limit=$2 began=$SECONDS out code
  shift 2
  out=$(timeout -k 5 "$limit" "$@" 2>&1)
  code=$?
  case $code in
  0) echo "ok    $name ($((SECONDS - began)) s)" ;;
  124 | 137) echo "HANG  $name (over $limit s)" ;;
  *) echo "FAIL  $name ($code)"; tail -n 12 <<<"$out" | cut -c1-240 ;;
  esac
  return $code
}

check() {
  timeout -k 5 240 "$bin" -test.v -test.run 'TestHopperBuild' | grep -E 'attn_hopper|C75|FAIL|does not'
  for s in "${shapes[@]}"; do status "$s" 40 "$bin" -test.run "TestAttnHopper/$s"; done
  status conformance 150 "$bin" -test.run TestAttnConformance
}

# A training step of 160m with both kinds of kernels, in turns.
step() {
  for arch in transformer diff diff2; do
    for kind in mma wgmma mma wgmma; do
      echo "$arch $kind $(ANTIPHASE_ATTENTION=$kind timeout -k 5 90 ../../bin/antiphase bench train --size 160m --arch "$arch" \
        --device cuda --seq 2048 --batch 16 --json 2>&1 | grep -E '"(value|unit|loss)"|rror' | tr -d '\n')"
    done
  done
}

# Rare faults: one line for each shape and direction, the first messages below. Compare runs alone with runs beside other work on the GPU.
stress() {
  local code good hang bad first
  for s in 11_128_128 22_64_128 11_64_64; do
    for way in forward_table backward_table ${2:+forward_$2 backward_$2}; do
      good=0 hang=0 bad=0 first=
      for ((i = 0; i < ${1:-20}; i++)); do
        out=$(ANTIPHASE_TEST_STRESS=300 timeout -k 2 20 "$bin" -test.run "TestHopperStress/$s/$way\$" 2>&1)
        code=$?
        case $code in
        0) good=$((good + 1)) ;;
        124 | 137) hang=$((hang + 1)) ;;
        *) bad=$((bad + 1)) first=${first:-$(grep -m1 -E 'launches|rror' <<<"$out" | cut -c1-200)} ;;
        esac
      done
      echo "stress $s $way: $good ok, $hang hang, $bad fail $first"
    done
  done
  dmesg 2>/dev/null | grep -i xid | tail -n 5
}

# Bits of every way to add to dQ, then the times of the shapes that have goals.
variants() {
  local goals=(11_128_128/T8192 22_128_256/T8192 21_128_128/T8192 11_64_64/T2048 22_64_128/T2048 11_96_96/T2048 22_96_192/T2048 21_96_96/T2048)
  for s in "${goals[@]}"; do status "bits ${s%/*}" 60 "$bin" -test.run "TestHopperBackwards/${s%/*}\$"; done
  for s in "${goals[@]}"; do
    ANTIPHASE_TEST_TIMES=1 timeout -k 5 60 "$bin" -test.run "TestHopperTimes/$s" | grep -vE '^(ok|PASS)'
  done
}

chunks() {
  for s in "${shapes[@]}"; do status "chunks $s" 40 "$bin" -test.run "TestHopperChunks/$s"; done
  status prompt 60 "$bin" -test.run 'TestPrompt$'
}

# bench NAME SECONDS ARGS...: the value and rate of each row.
bench() {
  local name=$1 limit=$2
  shift 2
  echo "$name: $(timeout -k 5 "$limit" ../../bin/antiphase bench "$@" --device cuda --json 2>&1 |
    grep -E '"(name|value|rate|memory)":|rror|memory' | tr -d '\n' | tr -s ' ' | cut -c1-400)"
}

# fed SIZE ARCH LENGTH COUNT: prompts, then the forward pass of training on as many sequences of that length.
fed() {
  bench "$1 $2 $4 × $3 prompt" 40 decode --size "$1" --arch "$2" --context "$3" --prompts "$4" --batch 1 --reps 3 --warmup 1
  bench "$1 $2 $4 × $3 forward" 40 train --size "$1" --arch "$2" --seq "$3" --batch "$4" --forward --steps 3 --warmup 2
}

prefill() {
  local arch n
  for arch in diff diff2 transformer; do
    for n in 1024 16384 65000; do fed 160m $arch $n 1; done
    fed 160m $arch 1024 8
  done
  for n in 1024 16384 65000; do fed 830m diff $n 1; done
  fed 830m diff 1024 8
}

# Results of what trials have made the default.
adopted() {
  status "bytes" 60 "$bin" -test.run 'TestBytes$|TestDecode$'
  status "joined" 60 "$bin" -test.run 'TestJoined$'
  status "ring and warps" 60 "$bin" -test.run 'TestClassifyRing$|TestNormWarps$'
}

# Decoding with keys and values in bf16 and in bytes.
bytes() {
  local size kind
  for size in 160m 830m; do
    for kind in int8 auto; do bench "$size $kind" 40 decode --size $size --arch diff --batch 64 --context 1024 --kv-cache $kind; done
  done
  bench "160m V2 int8" 40 decode --size 160m --arch diff2 --batch 64 --context 1024 --kv-cache int8
  bench "830m one row int8" 40 decode --size 830m --arch diff --batch 1 --context 4096 --kv-cache int8
  for size in 160m 830m; do
    timeout -k 5 30 ../../bin/antiphase bench decode --size $size --arch diff --batch 64 --context 1024 --kv-cache int8 --ops --device cuda 2>&1 |
      grep -vE '^(built )?kernel ' | head -n 30
  done
}

# rate DIR...: tokens/s of each run from the median step after the first hundred.
rate() {
  python3 - "$@" <<'END'
import json, statistics, sys
for path in sys.argv[1:]:
    rows = [json.loads(line) for line in open(path)][100:]
    ms = statistics.median(r["step_ms"] for r in rows)
    print(f"  {path.split('/')[-2]}: {ms:.2f} ms a step, {16384 / ms / 1000:.2f}M tokens/s")
END
}

small() {
  local dir jobs
  dir=$(mktemp -d)
  for jobs in 1 3; do
    echo "small diff, $jobs at once"
    timeout -k 5 100 ../../bin/antiphase compare --dir "$dir/$jobs" --name small --size small --arch diff --seeds $jobs --jobs $jobs --steps 600 \
      --data 'synthetic:docs=20000,len=2048' --set train.micro_batch=32 --probe none --task lm --keep none --device cuda >"$dir/log" 2>&1 || tail -n 5 "$dir/log"
    rate "$dir/$jobs"/runs/*/metrics.jsonl
  done
  rm -r "$dir"
}

large() {
  export ANTIPHASE_ATTENTION=wgmma
  bench "6.8b diff" 150 train --size 6.8b --arch diff --batch 4 --steps 2 --warmup 2
  bench "1.4b diff 64k blocks" 100 train --size 1.4b --arch diff --seq 65536 --batch 1 --recompute blocks --steps 2 --warmup 2
  bench "1.4b diff 64k attention" 100 train --size 1.4b --arch diff --seq 65536 --batch 1 --recompute attention --steps 2 --warmup 2
  bench "160m diff 64k" 60 train --size 160m --arch diff --seq 65536 --batch 1 --steps 3 --warmup 2
}

times() {
  for s in "${shapes[@]}"; do
    ANTIPHASE_TEST_TIMES=1 timeout -k 5 100 "$bin" -test.run "TestHopperTimes/$s/T(2048|8192)\$" | grep -vE '^(ok|PASS)'
  done
}

# Goals are at T = 2048 and 8192; longer sequences shall run at that rate.
lengths() {
  for s in 11_64_64 22_64_128 21_64_64 11_128_128 22_128_256 21_128_128; do
    ANTIPHASE_TEST_TIMES=1 ANTIPHASE_TEST_VARIANTS='^(table|no adds)$' timeout -k 5 100 "$bin" -test.run "TestHopperTimes/$s/" | grep -vE '^(ok|PASS)'
  done
}

# Not under racecheck: it does not follow mbarriers of bulk copies and reports every read of a ring (docs/kernels.md, a rare fault).
sanitize() {
  local s
  [ $# -gt 0 ] || set -- 21_64_64 11_64_64 22_64_128
  for s; do
    status "memcheck $s" 100 compute-sanitizer --tool memcheck --error-exitcode 1 "$bin" -test.run "TestAttnHopper/$s"
  done
}

# counters NAME KERNEL COMMAND...: one launch of a kernel, its time, its share of each unit's peak and the two largest stalls.
counters() {
  local name=$1 kernel=$2
  shift 2
  printf '%s\n' "$name"
  timeout -k 5 120 ncu --graph-profiling node --kernel-name "regex:$kernel" --launch-skip 24 --launch-count 1 --csv --page raw --metrics \
gpu__time_duration.sum,sm__issue_active.avg.pct_of_peak_sustained_elapsed,sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active,\
dram__throughput.avg.pct_of_peak_sustained_elapsed,lts__t_sectors.avg.pct_of_peak_sustained_elapsed,l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed,\
sm__warps_active.avg.pct_of_peak_sustained_active,regex:smsp__average_warps_issue_stalled_.*_per_issue_active.ratio "$@" 2>/dev/null |
    python3 -c '
import csv, sys
rows = [r for r in csv.reader(sys.stdin) if len(r) > 5]
pairs = sorted(zip(rows[0], rows[1], rows[-1]), key=lambda p: p[0])
stalls = sorted(((float(v), k) for k, _, v in pairs if "stalled" in k), reverse=True)[:2]
for k, unit, v in pairs:
    if k == "gpu__time_duration.sum" or ".avg.pct_of_peak" in k:
        print(f"  {k.split(chr(46))[0]:48} {v} {unit}")
for v, k in stalls:
    print(f"  {k.split(chr(46))[0]:48} {v:.2f}")
' || echo "  no counters: ncu is missing or may not read them"
}

profile() {
  local kind
  for kind in auto int8; do
    counters "160m diff, batch 64, context 1024, cache $kind" diffattention_splits ../../bin/antiphase bench decode --size 160m --arch diff --batch 64 --context 1024 \
      --kv-cache $kind --device cuda --reps 2 --warmup 1
  done
  counters "160m diff, backward" attn_hopper_backward ../../bin/antiphase bench train --size 160m --arch diff --seq 2048 --batch 16 --device cuda --steps 2 --warmup 2
  counters "830m diff, batch 64, context 1024, cache int8" diffattention_splits ../../bin/antiphase bench decode --size 830m --arch diff --batch 64 \
    --context 1024 --kv-cache int8 --device cuda --reps 2 --warmup 1
  counters "830m diff, backward" attn_hopper_backward ../../bin/antiphase bench train --size 830m --arch diff --seq 2048 --batch 4 --device cuda --steps 2 --warmup 2
  counters "1.4b diff, backward" attn_hopper_backward ../../bin/antiphase bench train --size 1.4b --arch diff --seq 4096 --batch 1 --device cuda --steps 2 --warmup 2
}

# A step's ops: V2's, and the Transformer's.
budget() {
  local arch
  for arch in diff2 transformer; do
    timeout -k 5 30 ../../bin/antiphase bench train --size 160m --arch $arch --seq 2048 --batch 16 --ops --device cuda 2>&1 | grep -vE '^(built )?kernel '
  done
}

# compare ARGS...: with PyTorch or transformers in turns.
compare() { "$python" ../../tools/bench/compare.py "$@" --binary ../../bin/antiphase; }

peer() {
  case $1 in
  160m) compare train --arch transformer,diff2,diff --rounds 3 --seq 2048 --batch 16 ;;
  830m) compare train --size 830m --arch transformer --also diff,diff2 --rounds 3 --steps 6 --seq 2048 --batch 16 ;;
  1.4b) compare train --size 1.4b --arch transformer --also diff --rounds 3 --steps 5 --seq 4096 --batch 4 --vocab 50304 ;;
  esac
}

decode() { compare decode --size "$1" --batch 64 --context 1024 --arch diff --rounds 3 --cache dynamic --kv-cache int8; }

long() {
  local arch
  for arch in diff transformer diff2; do bench "160m $arch 64k" 40 train --size 160m --arch $arch --seq 65536 --batch 1 --steps 3 --warmup 2; done
}

# part NAME LEAST MOST COMMAND...: a part of all, if LEAST seconds are left; it gets MOST at most.
part() {
  local name=$1 least=$2 most=$3 left=$((deadline - SECONDS)) began=$SECONDS code
  shift 3
  if ((left < least)); then
    skipped+=" $name"
    return
  fi
  most=$((left < most ? left : most))
  echo "== $name, at most $most s"
  echo "$name" >>"$dir/order"
  timeout -k 5 "$most" "$self" "$@" 2>&1 | tee "$dir/$name"
  code=${PIPESTATUS[0]}
  echo "== $name: $([ "$code" = 124 ] && echo stopped || echo "exit $code"), $((SECONDS - began)) s"
}

all() {
  local dir deadline=$((SECONDS + $1 - 5)) skipped=
  dir=$(mktemp -d)
  : >"$dir/order"
  part prefill 40 200 prefill
  part long 20 60 long
  part profile 60 120 profile
  part peer-160m 100 300 peer 160m
  part peer-830m 90 240 peer 830m
  part peer-1.4b 100 280 peer 1.4b
  part bytes 40 120 bytes
  part chunks 30 70 chunks
  part adopted 30 90 adopted
  part decode-160m 45 80 decode 160m
  part decode-830m 60 100 decode 830m
  part budget 20 40 budget
  part check 40 90 check
  part sanitize 60 200 sanitize
  [ -n "$skipped" ] && echo "not run:$skipped"
  python3 ../../tools/gpu/table.py "$dir"
  rm -r "$dir"
}

case ${1:-} in
"") check; times ;;
all)
  [[ ${2:-} =~ ^[0-9]+$ ]] || { echo "$0 all: how many seconds? For example: $0 all 600" >&2; exit 2; }
  all "$2"
  ;;
peer | decode)
  [[ "$1 ${2:-}" =~ ^(peer\ (160m|830m|1.4b)|decode\ (160m|830m))$ ]] || { echo "$0 $1: of which size? peer takes 160m, 830m and 1.4b, decode 160m and 830m" >&2; exit 2; }
  "$@"
  ;;
check | times | lengths | sanitize | step | stress | variants | chunks | prefill | adopted | bytes | small | large | profile | budget | long) "$@" ;;
*)
  echo "$0: $1 is unknown; there are all, check, times, lengths, step, sanitize, stress, variants, chunks, prefill, adopted, bytes, small, large, profile, budget, peer, decode and long" >&2
  exit 2
  ;;
esac
