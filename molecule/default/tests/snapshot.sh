#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Prints everything that a run may have changed, a line each, so that two states of a host can be compared.
set -u
# Not here: arrays and filesystems that were made, which nothing may undo, and the running kernel's command line,
# which the next boot reads from grub.cfg.
# What the system itself rewrites: the mount table's cache, the password lock, the clock's drift, systemd's own links, and
# the loader's cache, once more for each package. A package that a role brought stays.
listed() {
    find /etc /usr/local /boot/grub/grub.cfg -xdev ! -path '/etc/mtab' ! -path '/etc/.pwd.lock' ! -path '/etc/adjtime' \
        ! -path '/etc/resolv.conf' ! -path '/etc/ld.so.cache' "$@"
}
listed -type f -print0 | xargs -0 sha256sum | sed 's/^/file /'
listed -type f -printf 'mode %p %m %u %g\n'
listed -type l -printf 'link %p -> %l\n'
sysctl -a 2>/dev/null | grep -E '^(vm\.(swappiness|dirty_|max_map_count|zone_reclaim|min_free)|kernel\.numa_balancing|net\.core\.)' | sed 's/^/sysctl /'
for file in /sys/kernel/mm/transparent_hugepage/{enabled,defrag} /sys/block/{nvme*,sd*,vd*}/queue/{scheduler,nr_requests,read_ahead_kb,rq_affinity,nomerges}; do
    echo "value $file $(cat "$file")"
done
findmnt -rno TARGET,FSTYPE,OPTIONS -t xfs,ext4,vfat | sed 's/^/mount /'
systemctl show -p Id,AllowedCPUs,AllowedMemoryNodes,MemoryMax,MemoryHigh,DevicePolicy,DeviceAllow mariadb.service | sed 's/^/unit /'
systemctl list-units --all --plain --no-legend 'gpufleet*' | sed 's/^/slice /'
exit 0
