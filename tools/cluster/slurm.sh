#!/usr/bin/env bash
# Runs a command beside a real Slurm of one node on loopback: munged, slurmctld and slurmd with a configuration of their own, started
# here and stopped at the end. It needs root and Debian's slurm-wlm and munge; exit code 77 says what is missing.
#
#   tools/cluster/slurm.sh srun -n 2 --mpi=pmix antiphase launch-info --meet
set -euo pipefail

skip() { echo "skipped: $*" >&2; exit 77; }
export PATH=$PATH:/usr/sbin:/sbin
((EUID == 0)) || skip "slurmd needs root"
for p in munged slurmctld slurmd srun; do
  command -v "$p" >/dev/null || skip "$p is not installed (Debian: slurm-wlm munge)"
done

dir=$(mktemp -d)
chmod 755 "$dir"
host=$(hostname -s)
pids=()
# A daemon whose children hang does not leave by itself.
stop() {
  local p children=()
  for p in "${pids[@]}"; do children+=($(pgrep -P "$p" || true)); done
  for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done
  for _ in $(seq 20); do
    kill -0 "${pids[@]}" 2>/dev/null || break
    sleep 0.1
  done
  kill -KILL "${pids[@]}" "${children[@]}" 2>/dev/null || true
  wait "${pids[@]}" 2>/dev/null || true
  rm -rf "$dir"
}
trap stop EXIT

# Each daemon stays in the foreground, so that its process can be stopped by number.
mkdir -m 700 "$dir/munge"
head -c 1024 /dev/urandom >"$dir/munge/key"
chmod 400 "$dir/munge/key"
munged --foreground --force --socket="$dir/munge.sock" --key-file="$dir/munge/key" --log-file="$dir/munge/log" \
  --pid-file="$dir/munge/pid" --seed-file="$dir/munge/seed" >"$dir/munged.out" 2>&1 &
pids+=($!)

ports=$((20000 + $$ % 20000))
mkdir "$dir/state" "$dir/spool"
cat >"$dir/slurm.conf" <<CONF
ClusterName=loopback
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.sock
CredType=cred/munge
SlurmctldPort=$ports
SlurmdPort=$((ports + 1))
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
KillWait=30
JobRequeue=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
CONF
export SLURM_CONF=$dir/slurm.conf

wait_for() { # what, command
  for _ in $(seq 100); do
    if eval "$2" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  echo "slurm.sh: $1 did not come up" >&2
  tail -n 20 "$dir"/*.log "$dir"/*.out >&2 || true
  exit 1
}
wait_for munged "test -S $dir/munge.sock"
slurmctld -D >"$dir/slurmctld.out" 2>&1 &
pids+=($!)
wait_for slurmctld "scontrol ping | grep -q UP"
slurmd -D >"$dir/slurmd.out" 2>&1 &
pids+=($!)
wait_for slurmd "sinfo -h -o %T | grep -qE 'idle|mixed|allocated'"

"$@"
