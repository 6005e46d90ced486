#!/bin/bash
# Four workers on four nodes, a server beside each: sbatch examples/slurm_beside.sh train.py
#SBATCH --job-name=train
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=2
set -e

export DMLC_PS_VAN_TYPE=mercury
export DMLC_NUM_WORKER=$SLURM_JOB_NUM_NODES DMLC_NUM_SERVER=$SLURM_JOB_NUM_NODES
export DMLC_PS_ROOT_URI=$SLURMD_NODENAME # this script, and so the scheduler, runs on the first node
export DMLC_PS_ROOT_PORT=$((10000 + SLURM_JOB_ID % 20000))
MERCURY_JOB_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export MERCURY_JOB_TOKEN

DMLC_ROLE=scheduler python "$@" &

# On each node, task 0 is the worker and task 1 the server beside it.
srun bash -c '
    roles=(worker server)
    export DMLC_ROLE=${roles[$SLURM_LOCALID]} DMLC_TASK_ID=$SLURM_NODEID
    exec python "$@"
' - "$@"
wait
