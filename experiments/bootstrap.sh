#!/usr/bin/env bash
# Makes .venv with everything the commands need; a second run finds it and installs nothing.
#   bash experiments/bootstrap.sh [dev]
# `dev` adds what the tests need. PYTHON=/path/to/python chooses the interpreter.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { echo "error: $*" >&2; exit 2; }

find_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3.11 python3 python3.12 python3.13 python; do
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
        [ -z "${PYTHON:-}" ] || break
    done
    fail "Python 3.11, 3.12 or 3.13 is needed; install it, or name one with PYTHON=/path/to/python" \
         "(${PYTHON:-python3} is $("${PYTHON:-python3}" -V 2>&1 | head -n 1 || true))"
}

groups=(requirements.txt)
[ "${1:-}" != dev ] || groups+=(requirements-dev.txt)

# What is installed is described by its inputs: the requirement files and the C sources.
wanted=$(cat "${groups[@]}" setup.py experiments/bootstrap.sh \
             $(find interpretable_adv/nn/kernels -name '*.[ch]' 2>/dev/null | LC_ALL=C sort) | cksum)
stamp=".venv/installed-${1:-run}"
if [ -x .venv/bin/python ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi

for folder in . .venv; do
    [ ! -e "$folder" ] || [ -w "$folder" ] \
        || fail "$PWD is read-only, so .venv cannot be made there; copy the checkout to a folder" \
                "that you can write to"
done
python=$(find_python)
if ! .venv/bin/python -c 'import pip' 2>/dev/null; then
    echo "Setting up .venv with $("$python" -V) (once, about a minute) ..."
    rm -rf .venv
    "$python" -m venv .venv >/dev/null 2>&1 \
        || fail "'$python -m venv' failed; install Python's venv module (Debian: python3-venv)"
else
    echo "Updating .venv ..."
fi

log=.venv/install.log
install() {
    .venv/bin/python -m pip install --retries 2 --timeout 20 --disable-pip-version-check \
        "$@" >>"$log" 2>&1 || fail "installing Python packages failed; can pip reach its package" \
        "registry? Last line of $log: $(tail -n 1 "$log")"
}
: >"$log"
install 'setuptools>=70.1,<74'
install --no-build-isolation $(printf -- '-r %s ' "${groups[@]}")

# An older checkout has its build elsewhere.
rm -rf interpretable_adv/kernels

# The C kernels are optional: without a compiler the NumPy paths do the same, more slowly.
.venv/bin/python setup.py --quiet build_ext --inplace >>"$log" 2>&1 || true
.venv/bin/python -c 'from interpretable_adv.nn import kernels; exit(not kernels.available)' \
    || echo "The C kernels were not built (see $log); NumPy is used instead."
echo "$wanted" >"$stamp"
