#!/bin/sh
# Install the official clients of model providers, which tests call models with, into a folder of the user's cache: the
# project itself needs none of them. Quick when nothing changed. Usage: sh tools/test-clients.sh PYTHON
set -eu
cd "$(dirname "$0")/.."
folder=${MLEBENCH_TEST_CLIENTS:-${XDG_CACHE_HOME:-$HOME/.cache}/mlebench-console/test-clients}
stamp=$folder/installed.txt

cmp -s tools/test-clients.txt "$stamp" && "$folder/bin/python" -c '' && exit 0
echo "Setting up $folder from tools/test-clients.txt (270 MB, about a minute, only when it changed) ..." >&2
rm -rf "$folder"
"$1" -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --no-deps -r tools/test-clients.txt
cp tools/test-clients.txt "$stamp"
