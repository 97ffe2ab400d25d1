#!/usr/bin/env bash
# Run 'make test' and 'make run' as on a bare machine: a fresh clone, a user without root, an empty home, and
# no Docker, bubblewrap, tmux or Chromium on the PATH. Usage, as root: bash tools/test-bare.sh [pytest arguments]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

((EUID == 0)) || { echo "error: becoming a user without root needs root" >&2; exit 1; }

work=$(mktemp -d /tmp/bare.XXXX) # a short name: paths of sockets have little room
mkdir "$work/bin" "$work/home"

# All programs but those that a bare machine lacks; whatever the user may not run is not there for it either.
left_out='^(docker.*|containerd.*|podman|bwrap|tmux|chromium.*|apptainer|singularity|s(batch|queue|info)|slurm.*|mariadbd|debootstrap|uv|mksquashfs|unsquashfs|squashfuse.*|fuse-overlayfs)$'
for folder in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do
    [[ -d $folder ]] || continue
    find -L "$folder" -maxdepth 1 -type f -perm -o+x -printf '%f\n' 2>/dev/null | grep -vE "$left_out" |
        while read -r name; do [[ -e $work/bin/$name ]] || ln -s "$folder/$name" "$work/bin/$name"; done || true
done

# pip works with the machine's own settings, which may lie in root's home.
pip_config=$(python3 -m pip config debug 2>/dev/null | sed -nE 's/^ +(\/.*), exists: True$/\1/p' | tail -n 1)
[[ -z $pip_config ]] || install -m 644 "$pip_config" "$work/pip.conf"

git clone --quiet --no-local . "$work/clone"
chown -R nobody "$work"
chmod 755 "$work"

as_nobody() {
    setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups env -i -C "$work/clone" \
        PATH="$work/bin" HOME="$work/home" TERM=xterm-256color LANG=C.UTF-8 \
        ${pip_config:+PIP_CONFIG_FILE="$work/pip.conf"} ${PIP_CERT:+PIP_CERT="$PIP_CERT"} \
        PIP_RETRIES="${PIP_RETRIES:-5}" "$@"
}

finish() {
    as_nobody .venv/bin/mlebench-console --demo engine stop --with-runs >/dev/null 2>&1 || true
    # What the runner still writes while it ends would keep its folder.
    for ((tries = 0; tries < 20; tries++)); do
        rm -rf "$work" 2>/dev/null && return
        sleep 1
    done
    rm -rf "$work"
}
trap finish EXIT

# CI has run all tests a moment before. What reckons the same on every machine, or plays faults at length, is not run twice.
not_again=()
if [[ ${CI:-} == true ]]; then
    not_again=(--ignore=tests/competitions/test_hostile_submissions.py --ignore=tests/conformance/test_vectors.py
        --ignore=tests/conformance/test_without_pyarrow.py --ignore=tests/environment/agents/test_own_agents.py
        --ignore=tests/conformance/test_from_zips.py --ignore=tests/console/screens --ignore=tests/console/tui
        --ignore=tests/console/test_snapshots.py --ignore=tests/engine/integrity
        --ignore=tests/engine/test_fault_drill_of_many.py --ignore=tests/soak)
fi

as_nobody make test ARGS="${not_again[*]} $*" | tee "$work/test.log"
passed=$(sed -nE 's/^.*\b([0-9]+) passed.*$/\1/p' "$work/test.log" | tail -n 1)
if ((${passed:-0} < 5000)) && (($# == 0)); then
    echo "error: only ${passed:-0} tests ran on a bare machine (expected at least 5000)" >&2
    exit 1
fi

# The console in a terminal of its own, while the demo's runs come to their ends.
mkfifo "$work/keys"
chown nobody "$work/keys"
exec 3<>"$work/keys"
as_nobody script --quiet --return --command "stty cols 120 rows 40; make run" "$work/home/screen" <"$work/keys" >/dev/null &
console=$!
for ((seconds = 0; ; seconds += 5)); do
    medals=$(as_nobody .venv/bin/mlebench-console --demo runs list 2>/dev/null | grep -cE 'gold|silver|bronze' || true)
    ((medals >= 3)) && break
    if ((seconds >= 600)); then
        as_nobody .venv/bin/mlebench-console --demo status >&2 || true
        echo "error: 'make run' reached no medals within ten minutes" >&2
        exit 1
    fi
    sleep 5
done
printf q >&3
wait "$console"
as_nobody .venv/bin/mlebench-console --demo runs show 1 | grep -q 'not isolated' ||
    { echo "error: a run without isolation is not marked so" >&2; exit 1; }
echo "bare machine: $passed tests passed; 'make run' reached $medals medals, marked not isolated"
