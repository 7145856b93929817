#!/bin/sh
# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes a freshly booted image the host NAME; runs in the guest, once for each new overlay.
# Usage: provision.sh NAME HAS_DATABASE(0|1)
set -eu
name=$1
has_database=$2

# Plain files and links, since to start hostnamed or to reload systemd takes an emulated host seconds.
echo "$name" > /etc/hostname
hostname "$name"
printf '127.0.0.1 localhost\n127.0.1.1 %s\n::1 localhost\n' "$name" > /etc/hosts

if [ "$has_database" = 1 ]; then
    # A simulation: device nodes with NVIDIA's numbers and no driver behind them. Opening one
    # gives ENXIO where it is allowed, and EPERM where a device filter of the cgroup forbids it.
    cat > /etc/tmpfiles.d/lab-nvidia.conf <<'EOF'
c /dev/nvidia0   0666 root root - 195:0
c /dev/nvidia1   0666 root root - 195:1
c /dev/nvidia2   0666 root root - 195:2
c /dev/nvidia3   0666 root root - 195:3
c /dev/nvidiactl 0666 root root - 195:255
EOF
    systemd-tmpfiles --create /etc/tmpfiles.d/lab-nvidia.conf
    printf '[mariadbd]\ninnodb_buffer_pool_size = 64M\n' > /etc/mysql/mariadb.conf.d/90-lab.cnf
    ln -sf /lib/systemd/system/mariadb.service /etc/systemd/system/multi-user.target.wants/mariadb.service
    systemctl start mariadb.service
fi
: > /var/lib/lab-provisioned
sync
