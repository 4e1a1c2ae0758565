#!/usr/bin/env bash
# Regenerates the paper's tables. See README.md.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bash "$root/experiments/bootstrap.sh"
cd "$root"
data=${DATA_DIR:-experiments/data/toy}
.venv/bin/python -m interpretable_adv.data prepare --dataset toy --data_dir "$data"
.venv/bin/python -m interpretable_adv.data stats --data_dir "$data"
