#!/bin/bash
# Trains on several nodes, and again from the last checkpoint where a node is lost or taken away.
# Submit with: sbatch slurm.sh fashion-mnist --replicas 8
#SBATCH --job-name=samegrad
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2    # one process per NUMA node
#SBATCH --cpus-per-task=16
#SBATCH --requeue
#SBATCH --signal=TERM@120      # a checkpoint is saved in these seconds before the end
#SBATCH --open-mode=append
set -u
folder=${CHECKPOINTS:-$PWD/training_checkpoints}
launch=${LAUNCH:-srun --kill-on-bad-exit=1 --cpu-bind=ldoms}
requeue=${REQUEUE:-scontrol requeue ${SLURM_JOB_ID:-}}
resume=
[ -e "$folder/checkpoint" ] && resume=--resume
# The number of processes may be another one each time: the bits are the same.
$launch samegrad "$@" --checkpoint-dir "$folder" $resume
code=$?
if [ $code -ne 0 ] && [ $code -ne 2 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt 10 ]; then
  $requeue # 2: what was asked for cannot be done, a second time neither
fi
exit $code
