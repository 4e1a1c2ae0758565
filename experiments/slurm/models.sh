#!/usr/bin/env bash
#SBATCH --job-name=spgd-models
#SBATCH --array=0-24
#SBATCH --nodes=1
#SBATCH --gpus-per-node=1
#SBATCH --cpus-per-task=4
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --output=%x-%A_%a.txt
# Five models, five seeds: one training per task of the array, on one GPU, after prepare.sh.
#   sbatch experiments/slurm/models.sh
#   PRESET=paper bash experiments/table3.sh      # when all have ended: Table 3, nothing is trained
# Arguments go to `python -m experiments`. A task that was cut off resumes from its last snapshot
# when it is submitted again: sbatch --array=7 experiments/slurm/models.sh
set -euo pipefail
cd "${SLURM_SUBMIT_DIR:-$(dirname "${BASH_SOURCE[0]}")/../..}"
methods=(baseline pretrained adv iadv spgd)
seeds=(1 2 3 4 5)
method=${methods[SLURM_ARRAY_TASK_ID / ${#seeds[@]}]}
seed=${seeds[SLURM_ARRAY_TASK_ID % ${#seeds[@]}]}
export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1} OPENBLAS_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
export PRESET=${PRESET:-paper} GPU=${GPU:-0} JOBS=1
exec bash experiments/table3.sh --seeds "$seed" plan.methods="$method" "$@"
