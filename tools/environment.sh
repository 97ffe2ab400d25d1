#!/bin/sh
# Bring a virtual environment up to requirements.lock; quick when nothing changed.
# Usage: sh tools/environment.sh DIRECTORY   ($PYTHON names another interpreter)
set -eu
cd "$(dirname "$0")/.."
venv=${1:-.venv}
stamp=$venv/.installed

wanted=$(cat requirements.lock pyproject.toml | cksum)
is_current() { [ -x "$venv/bin/python" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; }
is_current && exit 0

# Two makes at once must not install into each other; the second one finds the work done.
if command -v flock >/dev/null 2>&1; then
    exec 9<pyproject.toml
    flock -n 9 || { echo "Another make is setting up $venv; waiting until it is done ..." >&2; flock 9; }
    is_current && exit 0
fi

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.14 python}; do
        if is_new_enough "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

if ! is_new_enough "$venv/bin/python" || ! "$venv/bin/python" -c 'import pip' >/dev/null 2>&1; then
    if ! python=$(find_python); then
        echo "mlebench-console needs Python 3.11 or newer, and none was found on the PATH." >&2
        echo "Install one (Debian, Ubuntu: apt install python3 python3-venv), or name it: make PYTHON=/path/to/python3.12" >&2
        exit 1
    fi
    if ! "$python" -c 'import venv, ensurepip' >/dev/null 2>&1; then
        echo "$python can't make virtual environments: its venv module is missing." >&2
        echo "Install it (Debian, Ubuntu: apt install $("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'))." >&2
        exit 1
    fi
    rm -rf "$venv"
    "$python" -m venv "$venv"
fi

echo "Setting up $venv from requirements.lock (a minute or two, only when it changed) ..." >&2
rm -f "$stamp"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements.lock
# On all processors, where pip would take half of its time on one; what can't be compiled is left out, as pip does.
"$venv/bin/python" -m compileall -q -j 0 "$venv/lib" >/dev/null 2>&1 || :
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
printf '%s\n' "$wanted" >"$stamp"
