#!/usr/bin/env bash
# What only a GPU can show, on a machine that need not have Go: `make gpu` builds the test binaries into bin/, this runs them.
#   tools/gpu/check.sh            every GPU test
#   tools/gpu/check.sh sanitize   the hand-written kernels under compute-sanitizer: memcheck, then racecheck (minutes)
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$PWD/bin
export ANTIPHASE_REQUIRE_CUDA=1

tests() {
  (cd device/cuda && "$bin/cuda.test" -test.run "$1")
}

case ${1:-all} in
all)
  tests 'TestSmoke|TestConformance|TestWide|TestAttn|TestHopperChunks|TestLong|TestGraph|TestDecode|TestRecorded|TestPrompt|TestAdvance|TestRecompute|TestBytes'
  (cd train && "$bin/train.test" -test.v -test.run 'TestCurve|TestResumeOnGPU')
  (cd hf && "$bin/hf.test" -test.v -test.run 'TestGolden/.*/cuda')
  ;;
sanitize)
  for tool in memcheck racecheck; do
    (cd device/cuda && compute-sanitizer --tool "$tool" --error-exitcode 1 "$bin/cuda.test" -test.run "${2:-TestConformance}")
  done
  ;;
*)
  echo "$0: $1 is unknown; there are all and sanitize" >&2
  exit 2
  ;;
esac
