#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs the named system packages that are missing: tools/apt_needs.sh PACKAGE[:COMMAND] ...
# A package whose command is already there, from wherever it came, is left alone.
set -euo pipefail

missing=()
for need in "$@"; do
    package=${need%%:*}
    command=${need#*:}
    if [[ $need == *:* ]] && command -v "$command" >/dev/null; then
        continue
    fi
    # The trailing newline of ${Status} would hide "not-installed" from a plain grep.
    if dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed; then
        continue
    fi
    missing+=("$package")
done

if ((${#missing[@]} == 0)); then
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    echo "These are missing and this system has no apt-get: ${missing[*]}. Install them by hand." >&2
    exit 1
fi

as_root=()
if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
        echo "Run as root: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi

install() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}"
}

echo "Installing system packages: ${missing[*]}"
mkdir -p .cache
# Package lists are only refreshed when the ones at hand do not do.
if ! install >.cache/apt.log 2>&1; then
    "${as_root[@]}" apt-get update -qq >>.cache/apt.log 2>&1 || true
    if ! install >>.cache/apt.log 2>&1; then
        tail -n 20 .cache/apt.log >&2
        echo "Could not install: ${missing[*]}. See .cache/apt.log, then try: apt-get install ${missing[*]}" >&2
        exit 1
    fi
fi
