#!/usr/bin/env bash
# What takes longer than tests/run.sh may: bash tests/deep.sh [quick|whole]
#   quick  the tests marked deep: installing, sanitisers, steps at the paper's size; then tiny
#          trainings on emulated processors and with other Pythons: the same bits everywhere
#   whole  also ten clients of the live page for 30 seconds, and the suite with every variant of the
#          kernels and on other Pythons
# Ends in a line 'N passed, N failed, N skipped'. .ci/run calls the quick part.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
part=${1:-quick}
case $part in quick | whole) ;; *) echo "error: give quick or whole, not $part" >&2; exit 2 ;; esac
bash experiments/bootstrap.sh dev || exit 2

passed=0 failed=0 skipped=0
outputs=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$outputs"' EXIT
start() {  # name, command: runs it in the background
    local name=$1
    shift
    { "$@" >"$outputs/$name" 2>&1; echo $? >"$outputs/$name.status"; } &
}
finish() {  # name: waits for it and says how it ended
    while [ ! -s "$outputs/$1.status" ]; do sleep 1; done
    if [ "$(cat "$outputs/$1.status")" = 0 ]; then
        passed=$((passed + 1))
        echo "ok      $1 (after $SECONDS s): $(tail -n 1 "$outputs/$1")"
    else
        failed=$((failed + 1))
        echo "FAILED  $1 (after $SECONDS s):"
        tail -n 25 "$outputs/$1"
    fi
}
check() { start "$@"; finish "$1"; }
skip() { skipped=$((skipped + 1)); echo "skipped $1: $2"; }

# Emulated processors: Haswell has AVX2, Nehalem neither AVX nor FMA. They run beside the rest.
emulated() {  # processor, Python's arguments
    # OPENBLAS_CORETYPE, where it is set, is for the real processor. Python names the signal that it
    # dies on. Where it does not, qemu itself has died, which was seen once: that run is tried again
    # and reported.
    local try status
    for try in 1 2 3; do
        status=0
        env -u OPENBLAS_CORETYPE OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONFAULTHANDLER=1 \
            qemu-x86_64 -cpu "$1" .venv/bin/python "${@:2}" || status=$?
        [ "$status" -gt 128 ] && ! grep -q 'Fatal Python error' "$outputs/$1" || break
        echo "        $1: qemu died on signal $((status - 128)), try $try" >&3
    done
    return "$status"
}
emulate() {  # processor
    emulated "$1" -m pytest -q tests/interpretable_adv/nn/test_kernels.py -k nothing_behind &&
        emulated "$1" -m tests.same_bits --check
}
exec 3>&1
processors=()
if ! command -v qemu-x86_64 >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing qemu-user ..."
    { apt-get update && apt-get install -y --no-install-recommends qemu-user; } \
        >.venv/apt.log 2>&1 || true
fi
for processor in Haswell Nehalem; do
    if [ "$(uname -m)" != x86_64 ]; then
        skip "$processor" "emulating it needs an x86 interpreter"
    elif ! command -v qemu-x86_64 >/dev/null; then
        skip "$processor" "needs qemu-x86_64 (apt-get install qemu-user)"
    else
        start "$processor" emulate "$processor"
        processors+=("$processor")
    fi
done

check "tests marked deep" env OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
    .venv/bin/python -m pytest -q -n 2 -m deep tests

# Other Pythons, which come with NumPy 2, each with an environment of its own.
find_python() {
    local candidate
    for candidate in "$(command -v "python$1")" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
        if [ -x "$candidate" ] && "$candidate" -c 'import venv' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
}
# Their checkouts are in .venv, so that is where they look for the recordings.
[ ! -d "$root/../shared" ] || ln -sfn "$(realpath "$root/../shared")" .venv/shared
for version in 3.12 3.13; do
    python=$(find_python "$version")
    if [ -z "$python" ]; then
        skip "Python $version" "it is not installed"
        continue
    fi
    copy=.venv/deep-$version
    mkdir -p "$copy"
    git ls-files -z | tar --null -T - -cf - 2>/dev/null | tar -xf - -C "$copy"
    git -C "$copy" init --quiet  # some tests ask git which files there are
    group=$([ "$part" = whole ] && echo dev || echo run)
    check "set-up with Python $version" env PYTHON="$python" bash "$copy/experiments/bootstrap.sh" \
        ${group/run/}
    check "Python $version" env -C "$copy" .venv/bin/python -m tests.same_bits --check
    [ "$part" = quick ] || check "suite with Python $version" bash "$copy/tests/run.sh" -m ''
done

for processor in ${processors[@]+"${processors[@]}"}; do finish "$processor"; done

if [ "$part" = whole ]; then
    check "ten clients of the live page for 30 s" env EXPLORE_SECONDS=30 \
        .venv/bin/python -m pytest -q tests/interpretable_adv/test_explore.py -k parallel
    for variant in plain avx2; do
        check "suite with $variant kernels" env INTERPRETABLE_ADV_KERNELS="$variant" bash tests/run.sh -m ''
    done
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
