#!/usr/bin/env bash
#SBATCH --job-name=spgd-multi-node
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=4
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --output=%x-%j.txt
# One model on all GPUs of several machines, which share a file system. --batchsize is that of all
# processes together, so make it larger than for one GPU.
#   sbatch experiments/slurm/multi_node.sh lm.pretrain --preset paper --batchsize 256 \
#       --data_dir experiments/data/imdb --out lm_multi_node
#   sbatch --nodes=2 experiments/slurm/multi_node.sh interpretable_adv.train --preset paper \
#       --method spgd --batchsize 128 --data_dir experiments/data/imdb --out spgd_multi_node
# COMMUNICATOR=naive GPU=-1 trains on CPUs. The job resumes from its last snapshot when it is
# submitted again.
set -euo pipefail
cd "${SLURM_SUBMIT_DIR:-$(dirname "${BASH_SOURCE[0]}")/../..}"
if [ $# = 0 ]; then
    echo 'error: say what to run: interpretable_adv.train or lm.pretrain, and its flags' >&2
    exit 2
fi
program=$1
shift
export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1} OPENBLAS_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
export PATH=$PWD/.venv/bin:$PATH
exec mpiexec -n "${SLURM_NTASKS:?is set by sbatch}" \
    ${SLURM_NTASKS_PER_NODE:+-ppn "$SLURM_NTASKS_PER_NODE"} \
    python -m "$program" --communicator "${COMMUNICATOR:-pure_nccl}" --gpu "${GPU:-0}" "$@" --resume
