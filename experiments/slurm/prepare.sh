#!/usr/bin/env bash
#SBATCH --job-name=spgd-prepare
#SBATCH --nodes=1
#SBATCH --gpus-per-node=1
#SBATCH --cpus-per-task=4
#SBATCH --time=48:00:00
#SBATCH --requeue
#SBATCH --output=%x-%j.txt
# The corpus, the language model that the classifiers start from, and the first of these. From the
# project's folder, with .venv made there by `bash experiments/bootstrap.sh`:
#   first=$(sbatch --parsable experiments/slurm/prepare.sh)
#   sbatch --dependency=afterok:$first experiments/slurm/models.sh
# Arguments go to `python -m experiments`, e.g. --dry_run. A job that was cut off resumes from its
# last snapshot when it is submitted again.
set -euo pipefail
cd "${SLURM_SUBMIT_DIR:-$(dirname "${BASH_SOURCE[0]}")/../..}"
export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1} OPENBLAS_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
export PRESET=${PRESET:-paper} GPU=${GPU:-0} JOBS=1
exec bash experiments/table3.sh --seeds 1 plan.methods=pretrained "$@"
