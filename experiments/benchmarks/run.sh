#!/usr/bin/env bash
# Measures everything, beside stock Chainer, PyTorch and faiss; ten minutes on two cores.
#   bash experiments/benchmarks/run.sh [arguments of python -m experiments.benchmarks]
# PyTorch and faiss go into an environment of their own, experiments/benchmarks/env.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bash experiments/bootstrap.sh
env=experiments/benchmarks/env
if ! "$env/bin/python" -c 'import faiss, torch' 2>/dev/null; then
    echo "Installing PyTorch and faiss into $env (once) ..."
    rm -rf "$env"
    .venv/bin/python -m venv "$env"
    "$env/bin/python" -m pip install --quiet --disable-pip-version-check \
        torch==2.13.0 faiss-cpu numpy \
        || { echo 'error: installing PyTorch and faiss failed; can pip reach its registry?' >&2
             exit 2; }
fi
exec .venv/bin/python -m experiments.benchmarks --torch_python "$env/bin/python" "$@"
