#!/usr/bin/env bash
# Marks one part of a large class in each job of an array. From the course's folder, `make assignments`
# done once (it installs what is needed); the last command merges the parts and writes the tables:
#   sbatch --export=ALL,HW=laplace,SUBMISSIONS=in,OUT=out assignments/slurm.sh
#   make grade HW=laplace SUBMISSIONS=in OUT=out
# Jobs that were lost can be sent again (--array=3,7): what is marked is not marked twice.
# Options of `grade` go last (... assignments/slurm.sh --cell-seconds 60).
# For another number of parts: sbatch --array=1-8 --export=ALL,PARTS=8,HW=...
# What was said is in OUT/slurm; what went wrong before that (no OUT, say) in slurm-<job>.txt here.
#SBATCH --array=1-40
#SBATCH --cpus-per-task=2
#SBATCH --mem=6G
#SBATCH --time=01:00:00
#SBATCH --output=slurm-%A.txt
#SBATCH --open-mode=append
set -euo pipefail
mkdir -p "$OUT/slurm"
exec >>"$OUT/slurm/part-$SLURM_ARRAY_TASK_ID.txt" 2>&1
"${PYTHON:-.venv/bin/python}" -m assignments.grader grade --masters "${ASSIGNMENTS:-assignments}" \
  --part "$SLURM_ARRAY_TASK_ID/${PARTS:-40}" --jobs "${SLURM_CPUS_PER_TASK:-2}" \
  "$@" "$HW" "$SUBMISSIONS" "$OUT"
