#!/usr/bin/env bash
# Install and start what the tests need beyond Python: packages, a Docker daemon, a base image for its tests.
# Usage, as root: bash tools/test-setup.sh
set -euo pipefail

base=${MLEBENCH_TEST_BASE:-mlebench-test-base}

retry() {
    local attempt
    for attempt in 1 2 3 4 5; do
        "$@" && return
        echo "attempt $attempt of '$*' failed" >&2
        sleep $((attempt * 5))
    done
    return 1
}

has_python() {
    local candidate
    for candidate in python3 python3.13 python3.12 python3.11; do
        "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' &>/dev/null && return
    done
    return 1
}

install_packages() {
    export DEBIAN_FRONTEND=noninteractive
    local missing=()
    has_python || missing+=(python3 python3-venv)
    local pair
    for pair in make:make git:git curl:curl bwrap:bubblewrap tmux:tmux chromium:chromium dockerd:docker.io \
        debootstrap:debootstrap \
        slurmctld:slurmctld slurmd:slurmd sbatch:slurm-client slurmdbd:slurmdbd mariadbd:mariadb-server-core \
        mksquashfs:squashfs-tools squashfuse:squashfuse fuse-overlayfs:fuse-overlayfs podman:podman newuidmap:uidmap; do
        command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
    done
    ((${#missing[@]})) || return 0
    retry apt-get -qq update
    retry apt-get -qq install --no-install-recommends -y "${missing[@]}" >/dev/null
}

# Podman is tried as an ordinary user, who needs subordinate users.
make_podmans_user() {
    id mlebench-podman &>/dev/null || useradd --create-home mlebench-podman
    grep -q '^mlebench-podman:' /etc/subuid ||
        usermod --add-subuids 300000-365535 --add-subgids 300000-365535 mlebench-podman
}

# Ubuntu forbids bubblewrap's user namespaces unless told otherwise.
allow_user_namespaces() {
    local restriction=/proc/sys/kernel/apparmor_restrict_unprivileged_userns
    [[ -w $restriction ]] || return 0
    echo 0 >"$restriction" || echo "user namespaces stay restricted: tests of isolation may fail" >&2
}

start_docker() {
    docker info &>/dev/null && return
    # A daemon that was killed leaves its pid file, which stops the next one once the number is in use again.
    pgrep -x dockerd >/dev/null || rm -f /var/run/docker.pid
    setsid dockerd --storage-driver=overlay2 >/tmp/dockerd.log 2>&1 </dev/null &
    for _ in {1..60}; do
        docker info &>/dev/null && return
        sleep 1
    done
    echo "The Docker daemon did not start; see /tmp/dockerd.log." >&2
    return 1
}

make_base_image() {
    docker image inspect "$base" &>/dev/null || bash "$(dirname "${BASH_SOURCE[0]}")/../environment/base-image.sh" "$base" >/dev/null
}

if ((EUID != 0)); then
    echo "error: installing packages and starting a Docker daemon needs root; run: sudo make test-setup" >&2
    exit 1
fi
install_packages
make_podmans_user
allow_user_namespaces
start_docker
make_base_image
