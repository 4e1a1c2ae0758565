#!/usr/bin/env bash
# Table 3: test accuracy of all methods. Trains what is not trained yet.
#   PRESET=small SEEDS='1 2 3' JOBS=2 bash experiments/table3.sh [--dry_run] [train.n_epoch=3 …]
exec bash "$(dirname "${BASH_SOURCE[0]}")/run.sh" table3 "$@"
