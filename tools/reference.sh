#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Writes the reference of every module, plugin and role to docs/reference.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export ANSIBLE_COLLECTIONS_PATH=$PWD/.cache/collections
rm -rf docs/reference
mkdir -p docs/reference
antsibull-docs collection --use-current --squash-hierarchy --output-format simplified-rst \
    --dest-dir docs/reference gpufleet.host >.cache/reference.log 2>&1 || {
    tail -n 20 .cache/reference.log >&2
    echo "The reference could not be written; 'make lint' names the faulty documentation." >&2
    exit 1
}
echo "docs/reference: $(find docs/reference -name '*.rst' | wc -l) pages"
