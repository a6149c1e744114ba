#!/usr/bin/env bash
# Old and new binary in turns on every CPU tier: tools/bench/tiers.sh OLD NEW
#
# Prints, for each tier and measure, the median of the rounds' ratios new / old (above 1: the new one is faster) and their range. Tiers that
# the machine lacks are left out. It needs bash and the two binaries; taskset pins them where it is installed.
#
#   CPUS=0,1    the CPUs to run on, one thread each (the default)
#   ROUNDS=5    rounds at most
#   LIMIT=140   seconds: a round that would end after them is not begun
#   TIERS=...   of amx avx512 avx2 generic
set -euo pipefail
[[ $# -eq 2 && -x $1 && -x $2 ]] || { echo "usage: $0 OLD NEW (two antiphase binaries)" >&2; exit 2; }
old=$(realpath "$1") new=$(realpath "$2")
cpus=${CPUS:-0,1} rounds=${ROUNDS:-5} limit=${LIMIT:-140}

pin=()
if command -v taskset >/dev/null; then
  pin=(taskset -c "$cpus")
fi

# tier, then what bench is asked. Steps are fewer where a step takes longer; one tier's rows all take about a second.
runs=(
  "amx train --size tiny --arch diff --steps 15"
  "amx train --size small --arch diff --batch 1 --steps 3"
  "amx gemm --shape 1024x768x768 --reps 20"
  "amx decode --size small --arch diff --batch 1 --context 64 --reps 4"
  "avx512 train --size tiny --arch diff --steps 6"
  "avx512 train --size small --arch diff --batch 1 --steps 2"
  "avx512 gemm --shape 1024x768x768 --reps 10"
  "avx512 decode --size small --arch diff --batch 1 --context 64 --reps 4"
  "avx2 train --size tiny --arch diff --steps 4"
  "avx2 train --size small --arch diff --batch 1 --steps 2"
  "avx2 gemm --shape 1024x768x768 --reps 6"
  "avx2 decode --size small --arch diff --batch 1 --context 64 --reps 4"
  "generic train --size tiny --arch diff --batch 1 --steps 8"
  "generic gemm --shape 256x256x256 --reps 6"
  "generic decode --size tiny --arch diff --batch 1 --context 16 --reps 2"
)

# measure BINARY TIER ARGS... prints "name|microunits|unit" for every row.
measure() {
  local binary=$1 tier=$2 line name= value=
  shift 2
  while IFS= read -r line; do
    line=${line#"${line%%[![:space:]]*}"}
    line=${line%,}
    case $line in
      '"name":'*) name=${line#*: } ;;
      '"value":'*) value=${line#*: } ;;
      '"unit":'*)
        printf -v value '%.0f' "${value}e6"
        echo "${name//\"/}|$value|${line#*: }"
        ;;
    esac
  done < <(ANTIPHASE_SIMD=$tier "${pin[@]}" "$binary" bench "$@" --device cpu --warmup 1 --json 2>/dev/null)
}

declare -A ratios # "tier|name" → ratios of all rounds, in 1/10000
declare -A speed  # "tier|name" → the new binary's value in the last round, for the reader
order=()

# compare RUN ROUND measures one run with both binaries, in an order that changes from round to round.
compare() {
  local tier=${1%% *} args=${1#* } first=$old second=$new row name value unit
  local -A a b
  (($2 % 2)) && { first=$new second=$old; }
  while IFS='|' read -r name value unit; do a[$name]=$value; done < <(measure "$first" "$tier" $args)
  while IFS='|' read -r name value unit; do
    b[$name]=$value
    [[ -n ${a[$name]:-} ]] || continue
    local was=${a[$name]} is=$value ratio key="$tier|${args%% *} $name"
    [[ $first == "$old" ]] || { was=$value is=${a[$name]}; }
    ratio=$((10000 * is / was))
    [[ $unit == '"ms"' ]] && ratio=$((10000 * was / is)) # of times the lower is the better
    [[ -n ${ratios[$key]:-} ]] || order+=("$key")
    ratios[$key]+="$ratio "
    printf -v "speed[$key]" '%d.%02d %s' $((is / 1000000)) $((is % 1000000 / 10000)) "${unit//\"/}"
  done < <(measure "$second" "$tier" $args)
}

# decimal N prints N/10000.
decimal() { printf '%d.%03d' $(($1 / 10000)) $(($1 % 10000 / 10)); }

have=" $("$new" doctor 2>/dev/null | tr -d '()' | sed -n 's/^instructions//p') "
longest=0 done_rounds=0
for ((r = 0; r < rounds; r++)); do
  begin=$SECONDS
  ((begin + longest <= limit)) || break
  for run in "${runs[@]}"; do
    tier=${run%% *}
    [[ $have == *[\ \;]"$tier"[\ \;]* ]] || continue
    [[ " ${TIERS:-$tier} " == *" $tier "* ]] || continue
    compare "$run" "$r"
  done
  ((SECONDS - begin > longest)) && longest=$((SECONDS - begin))
  done_rounds=$((r + 1))
done

echo "new / old, medians of $done_rounds rounds, CPUs $cpus, ${SECONDS}s"
printf '%-9s %-44s %7s %7s %7s  %s\n' tier measure median lowest highest "new, last round"
for key in "${order[@]}"; do
  mapfile -t sorted < <(printf '%s\n' ${ratios[$key]} | sort -n)
  n=${#sorted[@]}
  middle=$(((sorted[(n - 1) / 2] + sorted[n / 2]) / 2))
  printf '%-9s %-44s %7s %7s %7s  %s\n' "${key%%|*}" "${key#*|}" "$(decimal "$middle")" "$(decimal "${sorted[0]}")" "$(decimal "${sorted[n - 1]}")" "${speed[$key]}"
done
