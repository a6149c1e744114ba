#!/bin/sh
# Ranks on the cores of one machine, or of several that share RUN. Started again, the run goes on with any number of ranks.
#   examples/ranks/mpirun.sh RANKS RUN [train flags]
# MPIRUN names the launcher and its options, such as "mpirun --oversubscribe"; RETRY is the pause before another try.
set -eu
ranks=$1 run=$2
shift 2
stop=
trap 'stop=1' INT TERM
while true; do
  code=0
  ${MPIRUN:-mpirun} -np "$ranks" antiphase train --device cpu --dir "$run" "$@" || code=$?
  case $code in
    # Done, or an error that another try would only repeat.
    0 | 1 | 2 | 3 | 4 | 5) exit "$code" ;;
  esac
  # 75: a rank was lost or asked to stop. Launchers give other codes, such as 137 or 9, if a rank was killed.
  [ -e "$run/checkpoints/latest" ] || exit "$code"
  if [ -n "$stop" ] || [ -e "$run/stop" ]; then exit 75; fi
  echo "mpirun.sh: exit code $code, going on from the last checkpoint; touch $run/stop to leave instead" >&2
  sleep "${RETRY:-5}"
done
