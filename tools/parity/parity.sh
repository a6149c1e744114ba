#!/usr/bin/env bash
# Trains the same models with antiphase and with PyTorch on the same text and keeps both curves. On a GPU one run trains at a
# time, while PyTorch compiles the next ones.
#
#   tools/parity/parity.sh gpu WORK SOURCE...    160m, 1,050 steps of 16 × 2048 tokens, all architectures
#   tools/parity/parity.sh cpu WORK SOURCE...    small, 300 steps of 8 × 512 tokens
#
# WORK keeps sets, runs and curves: a second call goes on where the first one stopped. Sources are those of `antiphase train`.
# Variables: ANTIPHASE (the binary), PYTHON, TOKENIZER (a tokenizer.json; without it one is trained on the text), ARCHS,
# REPEATS (PyTorch's shared start again, for its own spread: 2 3), OWN (seeds of PyTorch's own starts), SEEDS (seeds of
# antiphase; 1 is the shared start), STEPS, COMPILE, LOGITS of PyTorch (fp32 as ours, or bf16 as autocast gives),
# PRECISION (bf16 or fp32, both sides), JOBS (peers in flight), THREADS and PEER_THREADS of a CPU.
# In the end: tools/parity/collect.py WORK SIZE KIND
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -ge 3 ]] || { sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2; }
kind=$1 work=$2
shift 2
ap=${ANTIPHASE:-antiphase} python=${PYTHON:-python3} threads=${THREADS:-0}
archs=${ARCHS:-transformer diff diff2} seeds=${SEEDS-1 2} own=${OWN-1 2} precision=${PRECISION:-bf16}
config=(data.held_out_by=documents train.eval_every=0 train.save_every=100000)
case $kind in
gpu)
  device=cuda size=160m steps=${STEPS:-1050} compile=${COMPILE---compile} batches=12 jobs=${JOBS:-3}
  config+=(train.batch=16 train.micro_batch=16 train.seq_len=2048)
  ;;
cpu)
  device=cpu size=${SIZE:-small} steps=${STEPS:-300} compile=${COMPILE-} batches=64 jobs=${JOBS:-1}
  config+=(train.batch=8 train.micro_batch=8)
  ;;
*) echo "parity: $kind is neither gpu nor cpu" >&2; exit 2 ;;
esac
config+=("train.eval_batches=$batches")
[[ -z ${TOKENIZER:-} ]] || config+=("tokenizer.path=$TOKENIZER")
flags=(--device "$device" --size "$size" --threads "$threads" --precision "$precision" -q)
for c in "${config[@]}"; do flags+=(--set "$c"); done
for s in "$@"; do flags+=(--data "$s"); done
mkdir -p "$work/curves" "$work/runs"

# turn COMMAND...: runs it when the GPU is free.
turn() {
  if [[ $kind == gpu ]]; then flock "$work/turn" "$@"; else "$@"; fi
}

# ours ARCH SEED STEPS: antiphase trains, or goes on. The token set is made once and linked into the other runs.
ours() {
  local dir=$work/runs/$1.$2
  if [[ ! -e $dir/data && -e $work/set ]]; then
    mkdir -p "$dir"
    cp -al "$work/set" "$dir/data"
  fi
  turn "$ap" train "${flags[@]}" --arch "$1" --dir "$dir" --steps "$3" --set "train.seed=$2"
  [[ -e $work/set ]] || cp -al "$dir/data" "$work/set"
}

# begin ARCH: the initial weights of seed 1.
begin() {
  [[ -e $work/$1.safetensors ]] && return
  ours "$1" 1 0
  cp "$work/runs/$1.1/checkpoints/step-00000000/model.safetensors" "$work/$1.safetensors"
}

# peer ARCH START SEED FLAGS...: PyTorch trains; a finished run is kept.
peer() {
  local arch=$1 out=$work/curves/$1.$2.$3.jsonl seed=$3
  shift 3
  [[ -s $out ]] && return
  [[ $kind != gpu ]] || set -- "$@" --turn "$work/turn"
  while (($(jobs -rp | wc -l) >= jobs)); do wait -n; done
  "$python" "$here/torch_train.py" --recipe "$work/runs/$arch.1/recipe.json" --valid "$work/valid.bin" --seed "$seed" \
    --device "$device" --threads "${PEER_THREADS:-0}" --steps "$steps" --logits "${LOGITS:-fp32}" \
    --precision "$precision" $compile --out "$out.part" "$@" && mv "$out.part" "$out" &
}

antiphase_side() {
  local arch seed
  for seed in $seeds; do
    for arch in $archs; do ours "$arch" "$seed" "$steps"; done
  done
}

torch_side() {
  local arch seed
  for arch in $archs; do peer "$arch" shared 1 --rows "$work/rows.bin" --init "$work/$arch.safetensors"; done
  for seed in ${REPEATS:-}; do
    for arch in $archs; do
      peer "$arch" repeat "$seed" --rows "$work/rows.bin" --init "$work/$arch.safetensors"
    done
  done
  for seed in $own; do
    for arch in $archs; do peer "$arch" own "$seed" --shards "$work/set"; done
  done
  wait
}

for arch in $archs; do begin "$arch"; done
first=$work/runs/${archs%% *}.1
[[ -e $work/rows.bin ]] || "$ap" data show "$first" --steps "1:$steps" --out "$work/rows.bin"
[[ -e $work/valid.bin ]] || "$ap" data show "$first" --split valid --steps "1:$batches" --out "$work/valid.bin"
antiphase_side &
side=$!
torch_side &
wait "$side" && wait $!
