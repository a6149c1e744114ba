#!/usr/bin/env bash
# Tokens/s of training on text beside `antiphase bench train` with the same shapes, in turns: the loader, metrics and the rest of a
# run must not slow a step.
#
#   tools/parity/speed.sh gpu WORK SOURCE...    160m, 16 × 2048 tokens a step
#   tools/parity/speed.sh cpu WORK SOURCE...    small, 8 × 512 tokens a step
#
# Variables: ANTIPHASE (the binary), ARCH, ROUNDS, STEPS, THREADS, TOKENIZER (a tokenizer.json; without it one is trained on the text).
set -euo pipefail
[[ $# -ge 3 ]] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }
kind=$1 work=$2
shift 2
ap=${ANTIPHASE:-antiphase} arch=${ARCH:-diff} rounds=${ROUNDS:-3} steps=${STEPS:-60}
case $kind in
gpu) shape=(--device cuda --size 160m) rows=16 length=2048 ;;
cpu) shape=(--device cpu --size small) rows=8 length=512 ;;
*) echo "speed: $kind is neither gpu nor cpu" >&2; exit 2 ;;
esac
shape+=(--arch "$arch" --threads "${THREADS:-0}")
flags=(-q --set train.batch=$rows --set train.micro_batch=$rows --set train.seq_len=$length --set train.eval_every=0
  --set train.save_every=100000)
[[ -z ${TOKENIZER:-} ]] || flags+=(--tokenizer "$TOKENIZER")
for s in "$@"; do flags+=(--data "$s"); done
mkdir -p "$work"

# text ROUND: the median of a run's steps, the first ten left out. The first run builds the token set, later ones link it.
text() {
  local dir=$work/speed.$arch.$1
  rm -rf "$dir"
  if [[ -e $work/set ]]; then mkdir -p "$dir"; cp -al "$work/set" "$dir/data"; fi
  "$ap" train "${shape[@]}" "${flags[@]}" --dir "$dir" --steps "$steps" >&2
  [[ -e $work/set ]] || cp -al "$dir/data" "$work/set"
  sed -n 's/.*"tok_s":\([0-9.e+]*\).*/\1/p' "$dir/metrics.jsonl" | tail -n +11 | sort -g | awk '{x[NR] = $1} END {print x[int((NR + 1) / 2)]}'
}

bare() {
  "$ap" bench train "${shape[@]}" --seq "$length" --batch "$rows" --vocab "$vocab" --steps $((steps / 2)) --json |
    sed -n 's/^ *"value": \([0-9.e+]*\).*/\1/p' | head -n 1
}

ratios=()
for ((i = 1; i <= rounds; i++)); do
  t=$(text "$i")
  vocab=$(sed -n 's/^ *"vocab": \([0-9]*\).*/\1/p' "$work/speed.$arch.$i/recipe.json" | tail -n 1)
  b=$(bare)
  ratios+=("$(awk -v t="$t" -v b="$b" 'BEGIN {printf "%.3f", t / b}')")
  echo "round $i: $t tokens/s on text, $b in bench train: ${ratios[-1]}"
done
printf '%s\n' "${ratios[@]}" | sort -g | awk '{x[NR] = $1} END {print "median of ratios: " x[int((NR + 1) / 2)]}'
