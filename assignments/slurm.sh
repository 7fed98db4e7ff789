#!/usr/bin/env bash
# Marks one part of a large class in each job of an array; the last call, of the whole, merges them:
#   sbatch --export=ALL,HW=laplace,SUBMISSIONS=in,OUT=out assignments/slurm.sh
#   make grade HW=laplace SUBMISSIONS=in OUT=out
#SBATCH --array=1-40
#SBATCH --cpus-per-task=2
#SBATCH --mem=6G
#SBATCH --time=01:00:00
set -euo pipefail
make grade HW="$HW" SUBMISSIONS="$SUBMISSIONS" OUT="$OUT" JOBS="${SLURM_CPUS_PER_TASK:-2}" \
  SLICE="$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"
