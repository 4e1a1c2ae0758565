#!/usr/bin/env bash
# The paper's elided grid search over K, ε and σ, one at a time, by dev accuracy; a second call
# resumes. The values to try are in the preset's section [grid_search].
#   PRESET=small SEEDS='1 2' bash experiments/grid_search.sh [--dry_run] [grid_search.n_epoch=4 …]
exec bash "$(dirname "${BASH_SOURCE[0]}")/run.sh" grid_search "$@"
