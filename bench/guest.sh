#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs in the booted container, once: puts up what a GPU host has and this machine has not.
# Usage: guest.sh DISK_A DISK_B VOLUME   (loop devices by kernel name)
set -euo pipefail
disk_a=$1 disk_b=$2 volume=$3
edge=/run/bench
mkdir -p "$edge/block"

# Two loop devices go by the names and ids of NVMe disks. Their queues are real queues of the kernel.
cat >/etc/udev/rules.d/10-bench.rules <<RULES
ACTION=="remove", GOTO="bench_end"
KERNEL=="$disk_a", ENV{ID_SERIAL}="BENCH_NVME_0", SYMLINK+="disk/by-id/nvme-BENCH_NVME_0"
KERNEL=="$disk_b", ENV{ID_SERIAL}="BENCH_NVME_1", SYMLINK+="disk/by-id/nvme-BENCH_NVME_1"
KERNEL=="$volume", ENV{ID_SERIAL}="BENCH_DATA", SYMLINK+="disk/by-id/virtio-BENCH_DATA", IMPORT{builtin}="blkid"
KERNEL=="$volume", ENV{ID_FS_UUID_ENC}=="?*", SYMLINK+="disk/by-uuid/\$env{ID_FS_UUID_ENC}"
KERNEL=="$volume", TAG+="systemd"
LABEL="bench_end"
RULES
for entry in /sys/block/*; do
    case ${entry##*/} in "$disk_a" | "$disk_b") ;; *) ln -s "$(readlink "$entry")" "$edge/block/${entry##*/}" ;; esac
done
ln -s "../devices/virtual/block/$disk_a" "$edge/block/nvme0n1"
ln -s "../devices/virtual/block/$disk_b" "$edge/block/nvme1n1"
mount --bind "$edge/block" /sys/block
udevadm control --reload
udevadm trigger --action=add "/sys/class/block/$disk_a" "/sys/class/block/$disk_b" "/sys/class/block/$volume"
udevadm settle

# A profile of tuned with what tuned covers of the same state.
mkdir -p /etc/tuned/bench
{
    printf '[main]\nsummary=the bench\n[vm]\ntransparent_hugepages=%s\n' "$THP"
    printf '[disk]\ndevices=%s,%s\nelevator=%s\n[sysctl]\n%s\n' "$disk_a" "$disk_b" "$SCHEDULER" "$SYSCTLS"
} >/etc/tuned/bench/tuned.conf

grep -qw cpuset /sys/fs/cgroup/cgroup.controllers && exit 0

# The cpuset controller is bound to cgroup v1 on this machine. Its files are simulated below the slices of both
# contestants: systemd itself writes and we read them; systemd-run gives a process the CPUs that they name.
echo "simulated: cpuset controller"
echo cpuset >"$edge/controllers"
mount --bind "$edge/controllers" /sys/fs/cgroup/cgroup.controllers
group() {
    mkdir -p "$1"
    printf 'populated 0\nfrozen 0\n' >"$1/cgroup.events"
    echo cpuset >"$1/cgroup.controllers"
    touch "$1/cgroup.procs" "$1/cgroup.subtree_control" "$1/cpuset.cpus" "$1/cpuset.mems"
    ln -s cpuset.cpus "$1/cpuset.cpus.effective"
    ln -s cpuset.mems "$1/cpuset.mems.effective"
}
for top in gpufleet peer; do
    node=$edge/$top/$top-node0.slice
    for folder in "$edge/$top" "$node" "$node/$top-node0-gpu0.slice" "$node/$top-node0-gpu1.slice"; do group "$folder"; done
    mkdir -p "/sys/fs/cgroup/$top.slice"
    mount --bind "$edge/$top" "/sys/fs/cgroup/$top.slice"
done
systemctl daemon-reexec
# A file of the kernel holds what was written last; a plain file keeps the rest of a longer text behind it.
cat >/usr/local/sbin/bench-trim <<'TRIM'
#!/bin/bash
find /sys/fs/cgroup/gpufleet.slice /sys/fs/cgroup/peer.slice -name 'cpuset.*' -type f -exec sed --in-place '2,$d' {} +
TRIM
cat >/usr/local/sbin/systemd-run <<'RUN'
#!/bin/bash
for word; do
    case $word in --slice=*) slice=${word#--slice=} ;; esac
done
file=$(find /sys/fs/cgroup/gpufleet.slice -path "*/$slice/cpuset.cpus" -type f | head -n 1)
[ -n "$file" ] || exec /usr/bin/systemd-run "$@"
while [ "$1" != -- ]; do shift; done
shift
exec taskset --cpu-list "$(cat "$file")" "$@"
RUN
chmod 755 /usr/local/sbin/systemd-run /usr/local/sbin/bench-trim
