#!/bin/sh
# Resolve pyproject.toml into requirements.lock: universal for Linux, hashed, without any index address.
# Usage: sh tools/lock.sh [--upgrade]
set -eu
cd "$(dirname "$0")/.."

if ! command -v uv >/dev/null 2>&1; then
    echo "make lock needs uv, which is not on the PATH." >&2
    echo "Install it (for example: pipx install uv) and try again." >&2
    exit 1
fi

resolved=$(mktemp)
trap 'rm -f "$resolved"' EXIT
grep -v '^#' requirements.lock >"$resolved" || true
uv pip compile pyproject.toml --group dev --group build --universal --python-version 3.11 --quiet \
    --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate \
    --output-file "$resolved" "$@" >/dev/null
{
    echo "# Pinned and hashed: everything that running, testing and building mlebench-console on Linux needs."
    echo "# Made by 'make lock' from pyproject.toml; not to be edited by hand."
    cat "$resolved"
} >requirements.lock
