#!/bin/sh
# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
# Gives each disk of lab-refuse1 what its serial says, by the real tools; a second run changes
# nothing. Prints `by-id-path kind` for each. Run in the guest, as root:
#   lab/lab.py ssh lab-refuse1 sh -s < lab/make_signatures.sh
set -eu
ids=/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_REFUSE

# Whether a disk carries something already.
has() { blkid -p "$1" >/dev/null 2>&1; }

# Whether there is anything at all in its first MiB: some disks have no signature that blkid knows.
written() { [ "$(head -c 1048576 "$1" | tr -d '\0' | wc -c)" -ne 0 ]; }

# Write bytes given in printf's notation: bytes DISK OFFSET TEXT
# shellcheck disable=SC2059
bytes() { printf -- "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }

# Win7 header and the metadata block it points to, as libblkid checks them; no tool of Debian's
# makes a BitLocker volume.
make_bitlocker() {
    bytes "$1" 0 '\353\130\220-FVE-FS-'
    bytes "$1" 176 '\000\000\020\000\000\000\000\000' # the metadata start at 1 MiB
    bytes "$1" 1048576 '-FVE-FS-'
    bytes "$1" 1048584 '\100\000\002\000' # size 64, version 2
}

# Uberblocks of the first label: at 128 KiB, one each KiB. There is no zfs in Debian's main
# section.
make_zfs() {
    for slot in 0 1 2 3 4 5 6 7; do
        bytes "$1" $((131072 + slot * 1024)) '\014\261\272\000\000\000\000\000'
    done
}

make_md() {
    mdadm --create /dev/md/refuse --run --quiet --metadata=1.2 --level=1 --raid-devices=2 "$1" missing </dev/null
    mdadm --stop --quiet /dev/md/refuse
}

make_luks() {
    printf secret | cryptsetup luksFormat --batch-mode --key-file=- --pbkdf=pbkdf2 \
        --pbkdf-force-iterations=1000 "$1"
}

make_mounted() {
    has "$1" || mkfs.ext4 -q "$1"
    mkdir -p /mnt/refuse-mounted
    # Read-only: the kernel itself writes to a mounted ext4 for a while, which nobody can tell from our writing.
    mountpoint -q /mnt/refuse-mounted || mount -o ro,noload "$1" /mnt/refuse-mounted
}

# A mapping over the bare disk: no signature, and yet somebody's.
make_dmheld() {
    dmsetup info refuse-held >/dev/null 2>&1 ||
        dmsetup create refuse-held --table "0 $(blockdev --getsz "$1") linear $1 0"
}

# No signature, and yet not blank: plain dm-crypt looks like RANDOM.
make_unsigned() {
    written "$2" && return
    case $1 in
        RANDOM) dd if=/dev/urandom of="$2" bs=1M count=4 status=none ;;
        TAR) tar -cf "$2" -C /etc hostname os-release ;;
        SPDK) bytes "$2" 0 'SPDKBLOB\003' ;;
        WIPED)
            mkfs.ext4 -q "$2"
            dd if=/dev/zero of="$2" bs=4096 count=1 conv=notrunc status=none
            ;;
    esac
}

make() {
    case $1 in
        RANDOM | TAR | SPDK | WIPED) make_unsigned "$1" "$2"; return ;;
        MOUNTED) make_mounted "$2"; return ;;
        DMHELD) make_dmheld "$2"; return ;;
        BLANK | SMALL) return ;;
    esac
    has "$2" && return
    case $1 in
        EXT4) mkfs.ext4 -q "$2" ;;
        XFS) mkfs.xfs -q "$2" ;;
        BTRFS) mkfs.btrfs -q "$2" >/dev/null ;;
        VFAT) mkfs.vfat --mbr=n "$2" >/dev/null ;;
        SWAP) mkswap -q "$2" ;;
        LVM) pvcreate -q -y "$2" >/dev/null ;;
        MD) make_md "$2" ;;
        GPT) sgdisk --new=1:0:0 "$2" >/dev/null ;;
        MBR) echo 'start=2048, type=83' | sfdisk -q --label dos "$2" ;;
        LUKS) make_luks "$2" ;;
        BITLOCKER) make_bitlocker "$2" ;;
        ZFS) make_zfs "$2" ;;
    esac
}

udevadm settle
for kind in EXT4 XFS BTRFS VFAT SWAP LVM MD GPT MBR LUKS BITLOCKER ZFS MOUNTED DMHELD RANDOM TAR SPDK WIPED BLANK SMALL; do
    make "$kind" "$ids-$kind" >&2
    echo "$ids-$kind $(echo "$kind" | tr '[:upper:]' '[:lower:]')"
done
udevadm settle
