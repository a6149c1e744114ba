#!/usr/bin/env bash
# The server beside the engine inside it, in turns in one process, on a GPU and on two quiet cores: `make build` makes bin/antiphase, this
# needs nothing else. First some steps of training on docs/*.md, so that tokens have text; speed does not depend on what a model has learned.
#   tools/gpu/serve.sh             batches of 1 and 32 on the GPU (160m, 830m) and on cores 0 and 1 (small, 160m): about 4 minutes
#   tools/gpu/serve.sh overload    1, 2 and 10 times the capacity for a minute each, on cores 0 and 1, load from the others: about 4 minutes
# Wanted: RATIO at least 0.95, the last RATIO (first byte over prefill + step) at most 1.2.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$PWD/bin/antiphase
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# learn SIZE ARCH DEVICE: a model that writes text, in $work/SIZE-ARCH.
learn() {
  local dir=$work/$1-$2 steps=30
  [[ $1 != small ]] || steps=150 # after fewer its tokens have no text of their own
  [[ -d $dir ]] || "$bin" train --size "$1" --arch "$2" --device "$3" --steps "$steps" --data 'docs/*.md' --dir "$dir" --quiet --set train.seq_len=128 --set train.batch=8 \
    --set train.micro_batch=8 --set train.eval_every=0 --set train.save_every=0 --set optim.lr=0.001
}

# row SIZE ARCH DEVICE OUTPUT COMMAND...: one table.
row() {
  local size=$1 arch=$2 device=$3 output=$4
  shift 4
  learn "$size" "$arch" "$device"
  printf '\n%s %s on %s\n' "$size" "$arch" "$device"
  "$@" "$bin" bench serve --model "$work/$size-$arch" --device "$device" --batch 1,32 --prompt 64 --output "$output" --reps "${REPS:-9}" --quiet || echo "failed: $?"
}

case ${1:-speed} in
speed)
  if [[ ${DEVICE:-cuda} == cuda ]]; then
    row 160m diff cuda 256
    row 160m transformer cuda 256
    row 830m diff cuda 256
    printf '\nbench decode, for comparison\n'
    "$bin" bench decode --size 160m --arch diff --batch 1,32 --context 64 --device cuda --quiet
  fi
  row small diff cpu 128 taskset -c 0,1
  row 160m diff cpu 64 taskset -c 0,1
  ;;
overload)
  learn small diff cpu
  SERVER_CORES=0,1 CLIENT_CORES=2-$(($(nproc) - 1)) OUTPUT=32 tools/bench/overload.sh "$work/small-diff"
  ;;
*)
  echo "$0: $1 is unknown; there are speed and overload" >&2
  exit 2
  ;;
esac
