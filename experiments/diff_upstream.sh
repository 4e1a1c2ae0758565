#!/usr/bin/env bash
# Compares this port with a clone of upstream, in which nothing is written:
#   bash experiments/diff_upstream.sh PATH_TO_CLONE [--text FILE] [--steps N] [--full DATA_DIR] [--json]
#   bash experiments/diff_upstream.sh --golden FOLDER_OF_RECORDINGS
# Ends in `agrees` (exit status 0) or `differs` (1); a usage problem is one line (2).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bash "$root/experiments/bootstrap.sh" >&2
# -P: files of the current directory, which may be the clone, are not taken for modules.
PYTHONPATH="$root" exec "$root/.venv/bin/python" -P -m experiments.upstream_diff "$@"
