#!/usr/bin/env bash
# Damages the input of every reader: bash tests/hardening.sh [N [SEED]]
#   N     cases (default: 10,000), each in a forked child with 20 seconds and 4 GB
#   SEED  other seeds are other cases (default: the date)
# Then a tenth as many cases reach the C kernels under the address and undefined-behaviour
# sanitisers. Ends in a table, and in exit status 1 if there was a defect.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cases=${1:-10000}
seed=${2:-$(date +%Y%m%d)}
bash "$root/experiments/bootstrap.sh" dev
cd "$root"
# Threads do not survive a fork.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
status=0
.venv/bin/python -m tests.hardening "$cases" --seed "$seed" || status=1

if runtime=$(gcc -print-file-name=libasan.so 2>/dev/null) && [ -f "$runtime" ]; then
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$copy"
    .venv/bin/python -m tests.sanitized "$copy"
    echo "Under the sanitisers:"
    # Libraries that throw C++ exceptions need that runtime before the sanitiser's.
    env -C "$copy" LD_PRELOAD="$runtime $(gcc -print-file-name=libstdc++.so)" PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 \
        "$root/.venv/bin/python" -m tests.hardening $((cases / 10)) --seed "$seed" --sanitized \
        --batch 20 --targets Kernels,Snapshot,SnapshotOfLanguageModel,Classifier || status=1
else
    echo "skipped the sanitisers: gcc has no libasan here"
fi
exit $status
