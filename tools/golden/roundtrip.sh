#!/usr/bin/env bash
# Makes what roundtrip.py checks: small runs of every kind, each exported as a Hugging Face folder, with our own logits and
# token ids beside it.
#
#   tools/golden/roundtrip.sh ANTIPHASE OUT     ANTIPHASE: the binary; OUT: a new folder
#   python3 tools/golden/roundtrip.py OUT       on a machine with torch and transformers
set -euo pipefail
(($# == 2)) || { sed -n '2,7p' "$0" >&2; exit 2; }
antiphase=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ids=256,72,101,108,108,111,32,119,111,114,108,100,46,10,84,104,101,32,99,111,100,101,32,105,115,32,52,50
text='Hello, wörld! 3.14 ▁ <|endoftext|> done'

# run NAME ARCH [SETTING…]: a few steps at a high rate, so that every parameter leaves its first value.
run() {
  local name=$1 arch=$2
  shift 2
  local set=()
  for s in "$@"; do set+=(--set "$s"); done
  "$antiphase" train --size nano --arch "$arch" --dir "$work/$name" --set optim.lr=0.02 "${set[@]}" -q
}

# folder NAME RUN LOGITS [FLAG…]: exports a run and writes the logits of LOGITS (run or folder) beside it.
folder() {
  local name=$1 from=$2 truth=$3
  shift 3
  "$antiphase" export "$work/$from" "$out/$name" -q "$@"
  local model=$work/$from
  [[ $truth == run ]] || model=$out/$name
  "$antiphase" logits -m "$model" --ids "$ids" --out "$out/$name/ours.safetensors" -q
  "$antiphase" tokenize -m "$out/$name" --json "$text" >"$out/$name/ours.json"
  echo "$name"
}

both() { local name=$1; run "$@"; folder "$name" "$name" run; }

both transformer transformer
both transformer-mha-halves transformer model.rope_interleaved=false
both transformer-gqa-bias transformer model.kv_heads=2 model.attention_bias=true model.tie_embeddings=false
both transformer-mqa-wide transformer model.kv_heads=1 model.head_dim=12 model.rope_theta=640000
both transformer-headnorm transformer model.head_norm=affine
both diff diff
both diff-plain diff model.head_norm=plain
both diff-halves diff model.rope_interleaved=false
both diff-gqa diff model.heads=4 model.kv_heads=2
both diff-bias-untied diff model.kv_heads=1 model.attention_bias=true model.tie_embeddings=false
both diff-wide diff model.head_dim=12 model.rope_theta=500000
both diff-eps diff model.head_norm_eps=0.001 model.attention_bias=true
both diff-constant diff model.lambda_init=constant model.lambda_const=0.8
both diff-constant-low diff model.lambda_init=constant model.lambda_const=0.1
both diff-nonorm diff model.head_norm=off
both diff2 diff2
both diff2-gqa-bias-untied diff2 model.kv_heads=2 model.attention_bias=true model.tie_embeddings=false
both transformer-llama3 transformer 'model.rope_scaling={"type":"llama3","factor":4,"low_freq_factor":1,"high_freq_factor":4,"original_context":16}'
both diff-yarn diff 'model.rope_scaling={"type":"yarn","factor":4,"original_context":16}'
both diff2-yarn diff2 'model.rope_scaling={"type":"yarn","factor":4,"original_context":16}'
both diff2-linear diff2 'model.rope_scaling={"type":"linear","factor":2}'
both diff2-halves-norm diff2 model.rope_interleaved=false model.head_norm=affine
folder diff-own diff run --class antiphase
folder diff-sharded diff run --max-shard-size 20KB
folder diff-bf16 diff folder --dtype bfloat16
folder diff2-bf16-sharded diff2 folder --dtype bfloat16 --max-shard-size 20KB
folder transformer-f16 transformer folder --dtype float16
