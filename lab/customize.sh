#!/bin/sh
# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
# Turns the unpacked packages into a host that boots by itself and lets root in.
# Run at the end of the build, outside the tree: customize.sh TREE PUBLIC_KEY
set -eu
tree=$1
key=$2

echo lab-new > "$tree/etc/hostname"
printf '127.0.0.1 localhost\n127.0.1.1 lab-new\n::1 localhost\n' > "$tree/etc/hosts"
printf '/dev/vda2 / ext4 errors=remount-ro 0 1\n/dev/vda1 /boot/efi vfat umask=0077,noauto 0 0\n' > "$tree/etc/fstab"
mkdir -p "$tree/boot/efi"
: > "$tree/etc/machine-id"
rm -f "$tree/var/lib/dbus/machine-id"

install -d -m 0700 "$tree/root/.ssh"
install -m 0600 "$key" "$tree/root/.ssh/authorized_keys"
cat > "$tree/etc/ssh/sshd_config.d/lab.conf" <<'EOF'
PasswordAuthentication no
PermitRootLogin prohibit-password
UseDNS no
# The default exchange takes an emulated processor seconds.
KexAlgorithms curve25519-sha256
EOF
echo LANG=C.UTF-8 > "$tree/etc/default/locale"

cat > "$tree/etc/systemd/network/50-lab.network" <<'EOF'
[Match]
Name=en* eth*

[Network]
Address=10.0.2.15/24
Gateway=10.0.2.2
IPv6AcceptRA=no
LinkLocalAddressing=no
EOF

# An emulated processor runs at a few percent of a real one: nothing may run on its own account.
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
    e2scrub_reap.service logrotate.timer mdcheck_start.timer mdcheck_continue.timer \
    mdmonitor-oneshot.timer systemd-networkd-wait-online.service lvm2-monitor.service \
    multipathd.service multipathd.socket tuned.service rsync.service \
    nvmefc-boot-connections.service nvmf-autoconnect.service grub-common.service; do
    systemctl --root="$tree" disable "$unit" >/dev/null 2>&1 || true
done
systemctl --root="$tree" mask systemd-networkd-wait-online.service systemd-binfmt.service \
    proc-sys-fs-binfmt_misc.automount sys-fs-fuse-connections.mount systemd-pstore.service \
    modprobe@drm.service modprobe@efi_pstore.service >/dev/null 2>&1
systemctl --root="$tree" enable systemd-networkd.service ssh.service >/dev/null 2>&1
# `enable` gives mariadb its other names; provision.sh starts it where a database is wanted.
systemctl --root="$tree" enable mariadb.service >/dev/null 2>&1
rm -f "$tree/etc/systemd/system/multi-user.target.wants/mariadb.service"
# Without a login prompt on the screen that nobody has.
systemctl --root="$tree" mask getty@tty1.service >/dev/null 2>&1
# Debian runs these at boot through its own wrappers.
rm -f "$tree"/etc/systemd/system/multi-user.target.wants/e2scrub_reap.service

# raid456 measures the processor for seconds when it is loaded, at each boot; cfg80211 waits for
# a firmware file that is not there. The lab has use for neither.
printf 'install raid456 /bin/false\ninstall cfg80211 /bin/false\n' > "$tree/etc/modprobe.d/lab.conf"
chroot "$tree" update-initramfs -u

install -d "$tree/etc/default/grub.d"
cat > "$tree/etc/default/grub" <<'EOF'
GRUB_DEFAULT=0
GRUB_TIMEOUT=0
GRUB_RECORDFAIL_TIMEOUT=0
GRUB_DISTRIBUTOR=Debian
GRUB_CMDLINE_LINUX_DEFAULT="quiet"
GRUB_CMDLINE_LINUX="console=ttyS0,115200"
GRUB_TERMINAL=console
GRUB_GFXPAYLOAD_LINUX=text
GRUB_DISABLE_LINUX_UUID=true
GRUB_DISABLE_OS_PROBER=true
GRUB_DISABLE_RECOVERY=true
EOF

# grub.cfg is made by the real update-grub. grub-probe has no disk to look at yet, so a
# stand-in answers for it this once with the names the disk will have.
mv "$tree/usr/sbin/grub-probe" "$tree/usr/sbin/grub-probe.real"
cat > "$tree/usr/sbin/grub-probe" <<'EOF'
#!/bin/sh
case "$*" in
    *target=device*) echo /dev/vda2 ;;
    *target=fs_uuid*) echo 6a0e1a2b-0000-4000-8000-67707566a001 ;;
    *target=partuuid*) echo 6a0e1a2b-0000-4000-8000-67707566a002 ;;
    *target=fs_label*) echo lab-root ;;
    *target=fs*) echo ext2 ;;
    *target=partmap*) echo gpt ;;
    *target=compatibility_hint*) echo hd0,gpt2 ;;
    *target=hints_string*) echo --hint-efi=hd0,gpt2 ;;
    *) ;;
esac
EOF
chmod 0755 "$tree/usr/sbin/grub-probe"
chroot "$tree" update-grub
mv "$tree/usr/sbin/grub-probe.real" "$tree/usr/sbin/grub-probe"

# What grub-install would do on a machine that has its disk: modules, and the EFI program.
cp -r "$tree/usr/lib/grub/x86_64-efi" "$tree/boot/grub/"
cat > "$tree/boot/grub/early.cfg" <<'EOF'
search --no-floppy --label --set=root lab-root
set prefix=($root)/boot/grub
normal
EOF
chroot "$tree" grub-mkimage -O x86_64-efi -p /boot/grub -c /boot/grub/early.cfg \
    -o /boot/grub/BOOTX64.EFI part_gpt fat ext2 search search_label normal configfile linux \
    echo test loadenv gzio minicmd sleep reboot halt

# A repository with one package: a test takes it away, and a role has to bring it back.
repo=$tree/var/lib/lab-repo
install -d "$repo"
(
    cd "$repo"
    APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get -q download xfsprogs
    for deb in *.deb; do
        dpkg-deb -f "$deb"
        printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$deb" "$(stat -c %s "$deb")" \
            "$(sha256sum "$deb" | cut -d' ' -f1)"
    done > Packages
)

rm -f "$tree/etc/ssh/ssh_host_rsa_key" "$tree/etc/ssh/ssh_host_rsa_key.pub"
rm -rf "$tree"/var/cache/apt/*.bin "$tree"/var/cache/apt/archives/*.deb "$tree"/var/lib/apt/lists/*
# apt has nothing else to reach from inside.
rm -rf "$tree/etc/apt/sources.list" "$tree"/etc/apt/sources.list.d/* "$tree/etc/apt/apt.conf.d/99mmdebstrap"
echo 'deb [trusted=yes] file:/var/lib/lab-repo ./' > "$tree/etc/apt/sources.list"
