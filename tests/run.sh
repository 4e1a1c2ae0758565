#!/usr/bin/env bash
# Runs every test: bash tests/run.sh [arguments of pytest]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bash "$root/experiments/bootstrap.sh" dev
cd "$root"

# The report's tests drive a browser and read PDFs. Where these can be installed, they are;
# elsewhere those tests skip and say why.
missing=()
command -v chromium >/dev/null || missing+=(chromium)
command -v pdftotext >/dev/null || missing+=(poppler-utils)
if [ ${#missing[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing ${missing[*]} ..."
    { apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; } \
        >.venv/apt.log 2>&1 || echo "apt-get failed (see .venv/apt.log); some tests will skip."
fi

.venv/bin/python -m ruff check .
# Two test processes, one thread each: on two cores that is faster than one with two.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
exec .venv/bin/python -m pytest -n 2 --dist worksteal -q --durations=10 \
    --cov=interpretable_adv --cov=lm --cov-report=term:skip-covered "$@"
