#!/usr/bin/env bash
# Install and start what the tests need beyond Python: packages, a Docker daemon, a base image for its tests.
# Usage, as root: bash tools/test-setup.sh
set -euo pipefail

base=${MLEBENCH_TEST_BASE:-mlebench-test-base}
apptainer=/opt/mlebench-test-apptainer

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
        mksquashfs:squashfs-tools squashfuse:squashfuse patchelf:patchelf; do
        command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
    done
    ((${#missing[@]})) || return 0
    retry apt-get -qq update
    retry apt-get -qq install --no-install-recommends -y "${missing[@]}" >/dev/null
}

# Temporary files of tests: half a million, which a disk makes slowly. What the mount can't be made for, a disk does.
mount_memory() {
    mountpoint -q /tmp/mem && return
    mkdir -p /tmp/mem
    mount -t tmpfs -o size=8g,mode=1777 mlebench-tests /tmp/mem ||
        echo "no file system in memory can be mounted at /tmp/mem: tests take longer" >&2
}

debians_archive() {
    apt-get indextargets --format '$(REPO_URI)' 'ORIGIN: Debian' 'LABEL: Debian' | head -n 1
}

# Debian has Apptainer in its unstable release alone, for newer libraries than a stable one has: both are taken from there,
# into a folder of their own, and nothing else of this machine sees them.
bring_apptainer() {
    command -v apptainer >/dev/null && return
    local archive work package program own libraries
    archive=$(debians_archive)
    if [[ -z $archive ]]; then # no list of packages was fetched yet, or this is another system
        retry apt-get -qq update
        archive=$(debians_archive)
    fi
    if [[ -z $archive ]]; then
        echo "no archive of Debian is configured from which to take Apptainer: its tests can't run" >&2
        return
    fi
    work=$(mktemp -d)
    mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/root"
    : >"$work/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $archive unstable main" >"$work/sources.list"
    cat >"$work/apt.conf" <<END
Dir::State "$work"; Dir::State::status "$work/status"; Dir::Cache "$work";
Dir::Etc::SourceList "$work/sources.list"; Dir::Etc::SourceParts "-"; Dir::Etc::PreferencesParts "$work/root";
Acquire::Languages "none"; APT::Sandbox::User "root";
END
    (
        cd "$work"
        export APT_CONFIG=$work/apt.conf
        retry apt-get -qq update
        retry apt-get -qq install --download-only --no-install-recommends -y apptainer >/dev/null
    )
    for package in "$work"/archives/*.deb; do dpkg-deb --extract "$package" "$work/root"; done
    rm -rf "$apptainer"
    mv "$work/root/usr" "$apptainer"
    # Apptainer and its starter find the rest by where they lie, each in its own way.
    own=$(dirname "$(find "$apptainer/lib" -path '*/apptainer/bin/starter')")
    libraries=${own%/apptainer/bin}
    mv "$work/root/etc" "$apptainer/etc"
    mkdir -p "$apptainer/var/lib/apptainer/mnt/session"
    ln -s ../etc ../var "$apptainer/lib/"
    for program in "$apptainer/bin/apptainer" "$own/starter"; do
        patchelf --set-interpreter "$(echo "$libraries"/ld-linux-*.so.*)" --force-rpath --set-rpath "$libraries" "$program"
    done
    chmod -R go+rX "$apptainer"
    rm -rf "$work"
    "$apptainer/bin/apptainer" --version >/dev/null
    ln -sf "$apptainer/bin/apptainer" /usr/local/bin/apptainer
}

# Apptainer is tried as an ordinary user.
make_ordinary_user() {
    id mlebench-test &>/dev/null || useradd --create-home mlebench-test
}

# As udev has it, which a container lacks.
allow_fuse() {
    [[ ! -c /dev/fuse ]] || chmod a+rw /dev/fuse
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
mount_memory
bring_apptainer
make_ordinary_user
allow_fuse
allow_user_namespaces
start_docker
make_base_image
