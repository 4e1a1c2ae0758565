#!/usr/bin/env bash
# Trains the embedded classifier on all of IMDB and puts it into interpretable_adv/demo: one epoch of
# a language model, then at most six of SPGD.
#   [ARCHIVE=aclImdb_v1.tar.gz] bash experiments/demo_model.sh [FOLDER]
# FOLDER is where it trains (default: experiments/runs/demo_model); stopped, it resumes there.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
runs=$(realpath -m "${1:-$root/experiments/runs/demo_model}")
data=$root/experiments/data/imdb
bash "$root/experiments/bootstrap.sh"
cd "$root"
python=.venv/bin/python
words=(--lower 1 --min_count 20)

if [ ! -d "$data" ]; then
    source=(--download)
    [ -z "${ARCHIVE:-}" ] || source=(--archive "$ARCHIVE")
    $python -m interpretable_adv.data prepare --dataset imdb --data_dir "$data" "${source[@]}"
fi
$python -m lm.pretrain --preset paper --data_dir "$data" --out "$runs/lm" "${words[@]}" --random-seed 1 \
    --n-units-word 96 --unit 160 --cutoffs 1000,6000 --dropout 0 --alpha 0.002 --batchsize 32 \
    --eval_streams 32 --epoch 1 --snapshot_minutes 10 --resume
$python -m interpretable_adv.train --preset paper --method spgd --data_dir "$data" --out "$runs/spgd" \
    "${words[@]}" --random_seed 1 --emb_dim 96 --hidden_dim 160 --pretrained_model "$runs/lm/best.model" \
    --n_epoch 6 --patience 2 --snapshot_minutes 10 --resume
$python -m experiments.demo_model "$runs/spgd" --data_dir "$data"
