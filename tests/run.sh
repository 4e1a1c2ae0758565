#!/usr/bin/env bash
# Runs every check and test but those of tests/deep.sh: bash tests/run.sh [arguments of pytest]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bash "$root/experiments/bootstrap.sh" dev
cd "$root"

# Where there is a compiler there are kernels; without them the tests would check NumPy only.
if command -v gcc >/dev/null || command -v cc >/dev/null; then
    .venv/bin/python -c 'from interpretable_adv.nn import kernels; exit(not kernels.available)' || {
        echo "error: there is a C compiler, but the kernels are not built; see .venv/install.log" >&2
        exit 1
    }
fi

# The report's tests drive a browser and read PDFs, those of the kernels emulate processors, those of
# synonyms read WordNet. What they need is installed where that is possible; elsewhere those tests
# skip and say why.
missing=()
command -v chromium >/dev/null || missing+=(chromium)
command -v pdftotext >/dev/null || missing+=(poppler-utils)
command -v qemu-x86_64 >/dev/null || missing+=(qemu-user)
command -v aarch64-linux-gnu-gcc >/dev/null || missing+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
[ -e /usr/share/wordnet/data.noun ] || missing+=(wordnet-base)
if [ ${#missing[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing ${missing[*]} ..."
    { apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; } \
        >.venv/apt.log 2>&1 || echo "apt-get failed (see .venv/apt.log); some tests will skip."
fi

.venv/bin/python -m ruff check .
.venv/bin/python -m mypy
.venv/bin/lint-imports --no-cache >.venv/imports.log || { cat .venv/imports.log; exit 1; }
# Two test processes, one thread each: on two cores that is faster than one with two.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
exec .venv/bin/python -m pytest -n 2 --dist worksteal -q --durations=10 -m "not deep" "$@"
