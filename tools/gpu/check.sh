#!/usr/bin/env bash
# What only a GPU can show, on a machine that need not have Go: `make gpu` builds the test binaries into bin/, this runs them.
#   tools/gpu/check.sh            every test of results; hopper.sh has those of single kernels and their variants
#   tools/gpu/check.sh sanitize   the hand-written kernels under compute-sanitizer: memcheck, then racecheck (minutes)
#   tools/gpu/check.sh repeat [ARCH...]   300 steps of 160m twice, the second time stopped halfway and resumed: the same bytes
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$PWD/bin
export ANTIPHASE_REQUIRE_CUDA=1

tests() {
  (cd device/cuda && "$bin/cuda.test" -test.run "$1")
}

# twice ARCH: all files of the last checkpoints must be equal.
twice() {
  local dir end=checkpoints/step-00000300 train
  dir=$(mktemp -d)
  train=("$bin/antiphase" train --size 160m --arch "$1" --steps 300 --data 'synthetic:docs=3000,len=2048' --set train.batch=4
    --set train.micro_batch=4 --set train.eval_every=0 --set train.save_every=150 --device cuda -q --dir)
  "${train[@]}" "$dir/whole"
  "${train[@]}" "$dir/broken" &
  while kill -0 $! && [ ! -e "$dir/broken/checkpoints/step-00000150" ]; do sleep 0.05; done
  kill -KILL $! || true
  wait $! || true
  [ ! -e "$dir/broken/$end" ] || { echo "$1: was not stopped in time" >&2 && return 1; }
  "${train[@]}" "$dir/broken"
  diff -r "$dir/whole/$end" "$dir/broken/$end"
  echo "$1: whole and resumed are equal, $(sha256sum <"$dir/whole/$end/model.safetensors" | cut -c1-16)"
  rm -r "$dir"
}

case ${1:-all} in
all)
  tests 'TestSmoke|TestConformance|TestWide|TestAttn|TestHopperChunks|TestLong|TestGraph|TestDecode|TestRecorded|TestPrompt|TestAdvance|TestRecompute|TestBytes|TestPrepare|TestJoined|TestClassifyRing|TestNormWarps'
  (cd train && "$bin/train.test" -test.v -test.run 'TestCurve|TestResumeOnGPU')
  (cd hf && "$bin/hf.test" -test.v -test.run 'TestGolden/.*/cuda')
  ;;
sanitize)
  for tool in memcheck racecheck; do
    (cd device/cuda && compute-sanitizer --tool "$tool" --error-exitcode 1 "$bin/cuda.test" -test.run "${2:-TestConformance}")
  done
  ;;
repeat)
  shift
  [ $# -gt 0 ] || set -- transformer diff diff2
  for arch; do twice "$arch"; done
  ;;
*)
  echo "$0: $1 is unknown; there are all, sanitize and repeat" >&2
  exit 2
  ;;
esac
