#!/bin/bash
# A worker and a server on each of four nodes. The job goes on without nodes that fail, as long as
# two workers are left, and what is killed comes back: sbatch examples/slurm_elastic.sh train.py
# One more worker, from the same folder: sbatch --wrap "srun mercury join join-JOB.env -- python train.py"
#SBATCH --job-name=train
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=2
#SBATCH --no-kill
set -e

export DMLC_PS_VAN_TYPE=mercury
export DMLC_NUM_WORKER=$SLURM_JOB_NUM_NODES DMLC_NUM_SERVER=$SLURM_JOB_NUM_NODES
export MERCURY_MIN_WORKERS=${MERCURY_MIN_WORKERS:-2} MERCURY_MAX_WORKERS=${MERCURY_MAX_WORKERS:-8}
export DMLC_PS_ROOT_URI=$SLURMD_NODENAME # this script, and so the scheduler, runs on the first node
export DMLC_PS_ROOT_PORT=$((10000 + SLURM_JOB_ID % 20000))
MERCURY_JOB_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export MERCURY_JOB_TOKEN

# For `mercury join`. It has the token, so it is this user's alone.
join=join-$SLURM_JOB_ID.env
journal=$PWD/scheduler-$SLURM_JOB_ID.journal
trap 'rm -f "$join" "$journal"' EXIT
(umask 077 && env | grep -E '^(DMLC_(PS|NUM)_|MERCURY_JOB_TOKEN=)' > "$join")

# If it is killed, another goes on; a job that is over leaves no journal.
scheduler() {
    export DMLC_ROLE=scheduler MERCURY_JOURNAL=$journal
    for _ in 1 2 3 4 5 6; do
        python "$@" && return
        [ -e "$journal" ] || return 1
        sleep 1
    done
}
rm -f "$journal" # a job that was requeued begins anew
scheduler "$@" &

# On each node, task 0 is the worker and task 1 the server beside it.
srun --no-kill --kill-on-bad-exit=0 --wait=0 bash -c '
    roles=(worker server)
    export DMLC_ROLE=${roles[$SLURM_LOCALID]} DMLC_TASK_ID=$SLURM_NODEID
    code=0
    python "$@" || code=$?
    # By a signal, such as the kernel sends for lack of memory: its script may be sound.
    if [ "$code" -gt 128 ]; then exec python "$@"; fi
    exit "$code"
' - "$@"
wait
