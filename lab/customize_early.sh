#!/bin/sh
# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
# Run before the packages are unpacked: customize_early.sh TREE
# The initramfs is made several times during the build and unpacked at each boot, so it gets
# only what the root disk needs.
set -eu
tree=$1
install -d "$tree/etc/initramfs-tools/conf.d" "$tree/usr/share/initramfs-tools/modules.d"
echo MODULES=list > "$tree/etc/initramfs-tools/conf.d/lab"
printf 'virtio_pci\nvirtio_blk\next4\n' > "$tree/usr/share/initramfs-tools/modules.d/lab"
