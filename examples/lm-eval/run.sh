#!/usr/bin/env bash
# Scores a served model with lm-evaluation-harness: pip install "lm-eval[api]", antiphase serve --model NAME=FOLDER, then ./run.sh NAME.
# The remote tokenizer is found by itself: /tokenize, /detokenize and /tokenizer_info are served.
set -euo pipefail
export OPENAI_API_KEY="${ANTIPHASE_API_KEY:-none}"
lm_eval --model local-completions \
  --model_args "model=${1:?name of the served model},base_url=http://127.0.0.1:8080/v1/completions,num_concurrent=8,max_retries=3,max_length=2048" \
  --tasks hellaswag,arc_easy --batch_size 8 --limit 200
