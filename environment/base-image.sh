#!/usr/bin/env bash
# Make a base image from this machine's own package mirror, so that no image registry has to serve one.
# Usage, as root: bash base-image.sh NAME        (needs debootstrap and a Docker daemon; Debian or Ubuntu)
set -euo pipefail

name=${1:?usage: base-image.sh NAME}

source /etc/os-release
# Newer releases have no sources.list, only files in sources.list.d.
mirror=$(find /etc/apt \( -name '*.list' -o -name '*.sources' \) -print0 2>/dev/null | sort -z | xargs -0 --no-run-if-empty cat |
    sed -nE 's/^(deb( \[[^]]*\])?|URIs:) +([^ ]+\/(debian|ubuntu)\/?)( .*)?$/\3/p' | sed -n 1p)
if [[ -z $mirror || -z ${VERSION_CODENAME:-} ]]; then
    echo "no Debian or Ubuntu package mirror is named in /etc/apt" >&2
    exit 1
fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
# A mirror that fails once often serves the next time.
for try in 1 2 3; do
    debootstrap --variant=minbase --include=ca-certificates "$VERSION_CODENAME" "$root" "$mirror" && break
    ((try < 3)) || exit 1
    sleep $((try * 10))
    rm -rf "$root"
    mkdir "$root"
done
# As in the images that registries serve: a build that is cut off is begun anew, so nothing is gained by waiting for the disk.
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io"
tar -C "$root" -c . | docker import - "$name"
