#!/usr/bin/env bash
# What table1.sh … table4.sh, figures.sh, grid_search.sh and reproduce.sh share: makes the
# environment if it is missing, then runs `python -m experiments` with the arguments given.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bash "$root/experiments/bootstrap.sh"
PYTHONPATH=$root${PYTHONPATH:+:$PYTHONPATH} exec "$root/.venv/bin/python" -m experiments "$@"
