#!/usr/bin/env bash
# The wgmma kernels on a Hopper GPU: `make gpu` builds bin/cuda.test, this runs it, each shape in a process of its own with a
# limit, so that a hang costs one shape.
#   tools/gpu/hopper.sh check      build every kernel; results against the general kernels, then the float64 oracle
#   tools/gpu/hopper.sh times      milliseconds beside the mma kernels, with variants
#   tools/gpu/hopper.sh sanitize   two shapes under compute-sanitizer: memcheck, racecheck
#   tools/gpu/hopper.sh step       tokens/s of 160m with both kinds of kernels
#   tools/gpu/hopper.sh            check, then times
set -uo pipefail
cd "$(dirname "$0")/../../device/cuda"
bin=$PWD/../../bin/cuda.test
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
  status conformance 150 "$bin" -test.run TestHopperConformance
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

times() {
  for s in "${shapes[@]}"; do
    ANTIPHASE_TEST_TIMES=1 timeout -k 5 100 "$bin" -test.run "TestHopperTimes/$s" | grep -vE '^(ok|PASS)'
  done
}

sanitize() {
  for tool in memcheck racecheck; do
    for s in 11_64_64 22_128_256; do
      status "$tool $s" 280 compute-sanitizer --tool "$tool" --error-exitcode 1 "$bin" -test.run "TestAttnHopper/$s"
    done
  done
}

case ${1:-all} in
all) check; times ;;
check | times | sanitize | step) "$1" ;;
*)
  echo "$0: $1 is unknown; there are check, times, step and sanitize" >&2
  exit 2
  ;;
esac
