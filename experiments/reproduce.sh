#!/usr/bin/env bash
# All tables and figures of the paper: minutes at the preset toy, on a made-up corpus.
#   bash experiments/reproduce.sh                                    three minutes on two cores
#   PRESET=small ARCHIVE=aclImdb_v1.tar.gz bash experiments/reproduce.sh     hours, real IMDB
#   PRESET=paper GPU=0 JOBS=1 bash experiments/reproduce.sh          the paper's size, on a GPU
# SEEDS='1 2 3', JOBS=2, RUNS=folder, DATA_DIR=folder; --dry_run prints every command;
# section.flag=value overrides the preset, e.g. train.n_epoch=3. A second call resumes.
exec bash "$(dirname "${BASH_SOURCE[0]}")/run.sh" all "$@"
