#!/bin/sh
# Ranks on the cores of one machine, or of several that share RUN. Started again, the run goes on with any number of ranks.
#   examples/ranks/mpirun.sh RANKS RUN [train flags]
set -eu
ranks=$1 run=$2
shift 2
while true; do
  code=0
  mpirun -np "$ranks" antiphase train --device cpu --dir "$run" "$@" || code=$?
  # 75: a rank was lost or the job was asked to stop, and a checkpoint is there to go on from.
  [ "$code" -eq 75 ] || exit "$code"
  [ -e "$run/stop" ] && exit 75
  echo "mpirun.sh: going on from the last checkpoint; touch $run/stop to leave instead" >&2
  sleep 5
done
