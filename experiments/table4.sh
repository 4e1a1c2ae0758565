#!/usr/bin/env bash
# Table 4: accuracy of all classifiers under attack. Trains what is not trained yet.
#   PRESET=small SEEDS='1 2 3' bash experiments/table4.sh [--dry_run] [robustness.n_samples=500 …]
exec bash "$(dirname "${BASH_SOURCE[0]}")/run.sh" table4 "$@"
