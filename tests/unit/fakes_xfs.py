# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with disks: sysfs, udev's links, mountinfo, systemd's generator, and the tools that change them.

What lies on a device is a file below /fake/disk (none for a blank one), or below /fake/raw where it carries no
signature, what is mounted one below /fake/mounts, so that all of it survives the death of a process.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any, Sequence

from fakes import FakeHost, Program

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Text
from ansible_collections.gpufleet.host.plugins.module_utils._plan import xfs_mounts

GIB = 2**30
OK = Result(0, "", "")
FLAGS = ("noatime", "nodev", "nosuid", "noexec", "nodiratime")
ROOT_MOUNT = "26 1 254:2 / / rw,relatime shared:1 - ext4 /dev/vda2 rw,errors=remount-ro\n"
MACHINE_ID = "0123456789abcdef0123456789abcdef"


class DiskHost(FakeHost):
    def read(self, path: str) -> Text:
        if path == "/proc/self/mountinfo":
            return ROOT_MOUNT + "".join(self._mountinfo(mount) for _path, mount in self.mounts())
        return super().read(path)

    def commands(self) -> dict[str, Program]:
        names = ("blkid", "wipefs", "mkfs.xfs", "mdadm", "mount", "umount", "mkdir", "rmdir", "systemctl")
        names += ("sh", "xfs_spaceman", "xfs_db", "xfs_growfs", "gpufleet-samples", "gpufleet-answers")
        return {name: getattr(self, "_" + re.sub("[.-]", "_", name)) for name in names}

    # Setting up

    def add_disk(
        self, name: str, size: int, ids: Sequence[str], number: str, content: dict[str, Any] | None = None
    ) -> None:
        base = "/sys/block/%s/" % name
        self.put(base + "dev", number + "\n")
        self.put(base + "size", "%d\n" % (size // 512))
        self.put(base + "queue/rotational", "0\n")
        os.makedirs(self.root + base + "holders")
        os.makedirs(self.root + base + "slaves")
        self.link("/sys/class/block/" + name, "../../block/" + name)
        self.link("/sys/dev/block/" + number, "../../block/" + name)
        rows = ["S:disk/by-id/" + one for one in ids] + ["E:ID_SERIAL_SHORT=" + ids[0].rsplit("_", 1)[-1]]
        self.put("/run/udev/data/b" + number, "\n".join(rows) + "\n")
        for one in ids:
            self.link("/dev/disk/by-id/" + one, "../../" + name)
        if content:
            self.store(name, content)

    def add_partition(self, disk: str, name: str, number: str) -> None:
        self.put("/sys/block/%s/%s/partition" % (disk, name), "1\n")
        self.put("/sys/block/%s/%s/dev" % (disk, name), number + "\n")
        self.put("/sys/block/%s/%s/size" % (disk, name), "2048\n")
        self.link("/sys/class/block/" + name, "../../block/%s/%s" % (disk, name))
        self.link("/sys/dev/block/" + number, "../../block/%s/%s" % (disk, name))

    def link(self, path: str, target: str) -> None:
        os.makedirs(os.path.dirname(self.root + path), exist_ok=True)
        if not os.path.islink(self.root + path):
            os.symlink(target, self.root + path)

    def store(self, name: str, content: dict[str, Any]) -> None:
        """Put something on a device, and udev's links for it."""
        self.put("/fake/disk/" + name, json.dumps(content, sort_keys=True))
        if content["kind"] == "xfs":
            self.link("/dev/disk/by-uuid/" + content["uuid"], "../../" + name)
        if content["kind"] == "xfs" and not name.startswith("md"):
            # For arrays udev's record lags behind here, as it may.
            number = self._text("/sys/block/%s/dev" % name)
            path = "/run/udev/data/b" + number
            rows = [row for row in self._text(path).splitlines() if not row.startswith("E:ID_FS_")]
            rows += ["E:ID_FS_TYPE=xfs", "E:ID_FS_UUID=" + content["uuid"], "E:ID_FS_LABEL=" + content["label"]]
            self.put(path, "\n".join(rows) + "\n")

    def content(self, name: str) -> dict[str, Any] | None:
        text = self._text("/fake/disk/" + name)
        return json.loads(text) if text else None

    def mounts(self) -> list[tuple[str, dict[str, Any]]]:
        folder = self.root + "/fake/mounts"
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        rows = [json.loads(self._text("/fake/mounts/" + name)) for name in names]
        return [(row["path"], row) for row in rows]

    def mounted(self, path: str, name: str, options: Sequence[str]) -> None:
        """Mount a device as the kernel does: flags to the mount, the rest to the filesystem."""
        flags = [option for option in options if option in FLAGS]
        shown = ["inode32" if "inode32" in options else "inode64"]
        shown += [option for option in options if option.startswith(("allocsize=", "logbsize=", "discard"))]
        shown += ["logbufs=8", "noquota"]
        access = "ro" if "ro" in options else "rw"
        mount = {
            "path": path,
            "name": name,
            "flags": [access, *(flags if "noatime" in flags else ["relatime", *flags])],
            "super": [access, "attr2", *shown],
        }
        self.put("/fake/mounts/" + path.strip("/").replace("/", "-"), json.dumps(mount, sort_keys=True))

    # Programs

    def _gpufleet_answers(self, argv: Sequence[str], stdin: str) -> Result:
        reason = self._text("/fake/silent" + argv[1])
        return Result(-1, "", "", reason) if "hung" in reason else Result(int(bool(reason)), "", reason)

    def _gpufleet_samples(self, argv: Sequence[str], stdin: str) -> Result:
        raw = self._text("/fake/raw/" + self.name_of(argv[-1]))
        found: dict[str, Any] = {"blank": not raw, "samples": 550, "read_bytes": 56 << 20}
        if raw:
            found.update(at=512, bytes="75 73 74", like=raw)
        return Result(int(bool(raw)), json.dumps(found), "%s reads as data: %s" % (argv[-1], raw) if raw else "")

    def _blkid(self, argv: Sequence[str], stdin: str) -> Result:
        content = self.content(self.name_of(argv[-1]))
        if content is None:
            return Result(2, "", "")
        kind = "PTTYPE" if content["kind"] in ("gpt", "dos") else "TYPE"
        rows = {
            "DEVNAME": argv[-1],
            "UUID": content.get("uuid", ""),
            "LABEL": content.get("label", ""),
            kind: content["kind"],
        }
        return Result(0, "".join("%s=%s\n" % row for row in rows.items() if row[1]), "")

    def _wipefs(self, argv: Sequence[str], stdin: str) -> Result:
        if not os.path.isdir(self.root + "/sys/class/block/" + self.name_of(argv[-1])):
            return Result(
                1, "", "wipefs: error: %s: probing initialization failed: No such file or directory" % argv[-1]
            )
        content = self.content(self.name_of(argv[-1]))
        rows = (
            [{"type": content["kind"], "uuid": content.get("uuid"), "label": content.get("label"), "offset": "0x0"}]
            if content
            else []
        )
        return Result(0, json.dumps({"signatures": rows}), "")

    def _mkfs_xfs(self, argv: Sequence[str], stdin: str) -> Result:
        name = self.name_of(argv[-1])
        if self.content(name):
            return Result(
                1,
                "",
                "mkfs.xfs: %s appears to contain an existing filesystem\nmkfs.xfs: Use the -f option to force overwrite."
                % name,
            )
        words = " ".join(argv)
        unknown = re.search(r"(bigtime2|metadir)=", words)
        if unknown:
            return Result(1, "", "unknown option -m %s" % unknown.group(1))
        size = int(self._text("/sys/block/%s/size" % name)) * 512
        unit, width = re.search(r"su=(\d+)", words), re.search(r"sw=(\d+)", words)
        content = {
            "kind": "xfs",
            "uuid": str(re.search(r"uuid=([0-9a-f-]+)", words).group(1)),  # type: ignore[union-attr]
            "label": argv[argv.index("-L") + 1],
            "agcount": int(_after(words, r"agcount=(\d+)", "4")),
            "log": int(_after(words, r"-l size=(\d+)", "134217728")),
            "size": size // 4096 * 4096,
            "su": int(unit.group(1)) if unit else 0,
            "sw": int(width.group(1)) if width else 0,
            "nrext64": int(_after(words, r"nrext64=(\d)", self._text("/fake/nrext64") or "0")),
        }
        if "-N" in argv:
            return Result(0, _geometry(content), "")
        self.store(name, content)
        return OK

    def _mdadm(self, argv: Sequence[str], stdin: str) -> Result:
        words = dict(word[2:].split("=", 1) for word in argv if word.startswith("--") and "=" in word)
        members = [self.name_of(word) for word in argv[3:] if word.startswith("/dev/")]
        if argv[1] != "--create" or any(self.content(name) for name in members):
            return Result(2, "", "mdadm: %s appears to contain data\nmdadm: create aborted." % members)
        size = sum(int(self._text("/sys/block/%s/size" % name)) for name in members) * (
            1 if words["level"] == "0" else 0
        )
        size = size or int(self._text("/sys/block/%s/size" % members[0]))
        self.add_disk("md127", size * 512, ["md-uuid-" + words["uuid"]], "9:127")
        chunk = int(words.get("chunk", "0" if words["level"] == "1" else "512")) * 1024
        values = {"level": "raid" + words["level"], "chunk_size": str(chunk), "raid_disks": str(len(members))}
        values.update(
            {"metadata_version": words["metadata"], "array_state": "clean", "uuid": words["uuid"].replace(":", "")}
        )
        if words["level"] != "0":
            values.update({"degraded": "0", "sync_action": "idle"})
        for key, value in values.items():
            self.put("/sys/block/md127/md/" + key, value + "\n")
        self.put("/run/udev/data/b9:127", "E:MD_DEVNAME=%s\nE:MD_UUID=%s\n" % (words["name"], words["uuid"]))
        self.link("/dev/md/" + words["name"], "../md127")
        for name in members:
            self.hold(name, "md127")
            self.store(
                name, {"kind": "linux_raid_member", "uuid": _dashed(words["uuid"]), "label": "gpu01:" + words["name"]}
            )
        return OK

    def hold(self, name: str, holder: str) -> None:
        os.makedirs("%s/sys/block/%s/holders/%s" % (self.root, name, holder), exist_ok=True)
        os.makedirs("%s/sys/block/%s/slaves/%s" % (self.root, holder, name), exist_ok=True)

    def _mount(self, argv: Sequence[str], stdin: str) -> Result:
        path = argv[-1]
        words = argv[argv.index("-o") + 1].split(",") if "-o" in argv else []
        if "remount" in words:
            mount = dict(self.mounts())[path]
            kept = [option for option in mount["super"] if option.startswith(("allocsize=", "logbsize="))]
            self.mounted(path, mount["name"], [word for word in words if not word.startswith("allocsize=")] + kept)
            return OK
        if len(argv) == 2:
            rows = [line.split() for line in self._text("/etc/fstab").splitlines() if line and line[0] != "#"]
            row = next(fields for fields in rows if fields[1] == path)
            return self._attach(row[0], path, row[3].split(","))
        return self._attach(argv[-2], path, words)

    def _attach(self, spec: str, path: str, options: Sequence[str]) -> Result:
        name = self.name_of(re.sub("^UUID=", "/dev/disk/by-uuid/", spec))
        content = self.content(name)
        if not os.path.isdir(self.root + path) or not content or content["kind"] != "xfs":
            return Result(32, "", "mount: %s: can't find %s" % (path, spec))
        self.mounted(path, name, options)
        return OK

    def _umount(self, argv: Sequence[str], stdin: str) -> Result:
        os.unlink(self.root + "/fake/mounts/" + argv[-1].strip("/").replace("/", "-"))
        return OK

    def _mkdir(self, argv: Sequence[str], stdin: str) -> Result:
        os.mkdir(self.root + argv[-1])
        return OK

    def _rmdir(self, argv: Sequence[str], stdin: str) -> Result:
        if argv[-1] in dict(self.mounts()):
            return Result(1, "", "rmdir: failed to remove '%s': Device or resource busy" % argv[-1])
        os.rmdir(self.root + argv[-1])
        return OK

    def _sh(self, argv: Sequence[str], stdin: str) -> Result:
        """The scripts of _plan/xfs_mounts, known by their text."""
        path, is_mounted = argv[4], argv[4] in dict(self.mounts())
        if argv[2] == xfs_mounts.RMDIR:
            if is_mounted and (self.content(dict(self.mounts())[path]["name"]) or {})["uuid"] == argv[5]:
                self._umount(["umount", path], "")
            return self._rmdir(["rmdir", path], "") if os.path.isdir(self.root + path) else OK
        if argv[2] == xfs_mounts.UMOUNT:
            return self._umount(["umount", path], "") if is_mounted else OK
        if argv[2] == xfs_mounts.REMOUNT:
            return self._mount(["mount", "-o", "remount," + argv[5], path], "") if is_mounted else OK
        assert argv[2] == xfs_mounts.MOUNT_AS_BEFORE
        return OK if is_mounted else self._attach(argv[6], path, argv[5].split(","))

    def _xfs_spaceman(self, argv: Sequence[str], stdin: str) -> Result:
        mount = dict(self.mounts()).get(argv[-1])
        content = self.content(mount["name"]) if mount else None
        return (
            Result(0, _geometry(content), "")
            if content
            else Result(1, "", "%s: Not on a mounted XFS filesystem." % argv[-1])
        )

    def _xfs_db(self, argv: Sequence[str], stdin: str) -> Result:
        content = self.content(self.name_of(argv[-1]))
        if not content or content["kind"] != "xfs":
            return Result(1, "", "not a valid XFS filesystem")
        return Result(0, _geometry(content) + "inprogress = %d\n" % content.get("inprogress", 0), "")

    def _xfs_growfs(self, argv: Sequence[str], stdin: str) -> Result:
        name = dict(self.mounts())[argv[-1]]["name"]
        content = self.content(name)
        assert content is not None
        new = int(self._text("/sys/block/%s/size" % name)) * 512 // 4096 * 4096
        group = content["size"] // content["agcount"]
        self.store(name, dict(content, size=new, agcount=-(-new // group)))
        return OK

    def _systemctl(self, argv: Sequence[str], stdin: str) -> Result:
        verb = argv[1]
        if verb == "daemon-reload":
            self._generate()
        elif verb == "show":
            return Result(0, "\n".join(self._shown(unit) for unit in argv[argv.index("--") + 1 :]), "")
        elif verb == "start":
            text = dict(re.findall(r"^(\w+)=(.*)$", self._text("/fake/loaded/" + argv[2]), re.MULTILINE))
            if not os.path.isdir(self.root + text["Where"]):
                os.makedirs(self.root + text["Where"])
            return self._attach(text["What"], text["Where"], text["Options"].split(","))
        else:
            self._enable(verb, argv[2])
        return OK

    def _generate(self) -> None:
        """systemd-fstab-generator, and the unit files as they are loaded now."""
        shutil.rmtree(self.root + "/run/systemd/generator", ignore_errors=True)
        shutil.rmtree(self.root + "/fake/loaded", ignore_errors=True)
        os.makedirs(self.root + "/run/systemd/generator")
        for line in self._text("/etc/fstab").splitlines():
            fields = line.split()
            if len(fields) > 3 and line[0] != "#" and fields[1] != "/":
                what = re.sub("^UUID=", "/dev/disk/by-uuid/", fields[0])
                text = "[Mount]\nWhat=%s\nWhere=%s\nType=%s\nOptions=%s\n" % (what, fields[1], fields[2], fields[3])
                self.put("/run/systemd/generator/%s.mount" % fields[1].strip("/").replace("/", "-"), text)
        for place in Path(self.root + "/etc/systemd/system").glob("*.mount"):
            self.put("/fake/loaded/" + place.name, place.read_text())

    def _shown(self, unit: str) -> str:
        now, loaded = self._text("/etc/systemd/system/" + unit), self._text("/fake/loaded/" + unit)
        stale = "yes" if loaded and now != loaded else "no"
        return "Id=%s\nNames=%s\nLoadState=%s\nActiveState=active\nNeedDaemonReload=%s\n" % (
            unit,
            unit,
            "loaded" if loaded else "not-found",
            stale,
        )

    def _enable(self, verb: str, unit: str) -> None:
        for kind, word in (("wants", "WantedBy"), ("requires", "RequiredBy")):
            path = "/etc/systemd/system/local-fs.target.%s/%s" % (kind, unit)
            if os.path.islink(self.root + path):
                os.unlink(self.root + path)
            if verb in ("enable", "reenable") and word in self._text("/etc/systemd/system/" + unit):
                self.link(path, "/etc/systemd/system/" + unit)

    # Helpers

    def name_of(self, path: str) -> str:
        place = self.root + path
        for _hop in range(5):
            if not os.path.islink(place):
                break
            place = os.path.join(os.path.dirname(place), os.readlink(place))
        return os.path.basename(place)

    def _text(self, path: str) -> str:
        text = super().read(path)
        return text.strip() if isinstance(text, str) else ""

    def _mountinfo(self, mount: dict[str, Any]) -> str:
        number = self._text("/sys/block/%s/dev" % mount["name"])
        row = (number, mount["path"], ",".join(mount["flags"]), mount["name"], ",".join(mount["super"]))
        return "42 26 %s / %s %s shared:9 - xfs /dev/%s %s\n" % row


def xfs_content(
    uuid: str, label: str = "", size: int = 8 * GIB, agcount: int = 32, log: int = 134217728, **more: Any
) -> dict[str, Any]:
    return dict(
        {"kind": "xfs", "uuid": uuid, "label": label, "agcount": agcount, "log": log, "size": size, "su": 0, "sw": 0},
        **more,
    )


def make(root: Path) -> DiskHost:
    """Root on vda2; two blank NVMe disks, one disk with XFS made by hand, one with ext4, a SCSI disk."""
    host = DiskHost(root)
    host.put("/etc/machine-id", MACHINE_ID + "\n")
    host.put("/etc/hostname", "gpu01\n")
    host.put("/etc/mdadm/mdadm.conf", "HOMEHOST <system>\nMAILADDR root\n")
    host.put(
        "/etc/fstab",
        "# static\n/dev/vda2 / ext4 errors=remount-ro 0 1\nUUID=00000000-aaaa /scratch xfs defaults,noatime,allocsize=64k,nofail,x-mine 0 2\n",
    )
    host.put("/proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n")
    host.put("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n")
    host.put("/usr/sbin/mdadm", "")
    os.makedirs(root / "run/systemd/system")
    os.makedirs(root / "scratch")
    host.add_disk("vda", 8 * GIB, ["virtio-ROOT"], "254:0", {"kind": "gpt"})
    host.add_partition("vda", "vda2", "254:2")
    host.add_disk("nvme0n1", 8 * GIB, ["nvme-QEMU_S0", "nvme-eui.0000"], "259:0")
    host.add_disk("nvme1n1", 8 * GIB, ["nvme-QEMU_S1"], "259:1")
    host.add_disk("nvme2n1", 8 * GIB, ["nvme-QEMU_S2"], "259:2", xfs_content("00000000-aaaa"))
    host.add_disk("nvme3n1", 8 * GIB, ["nvme-QEMU_S3"], "259:3", {"kind": "ext4", "uuid": "1-2", "label": "old"})
    host.add_disk("sda", 1 * GIB, ["scsi-SQEMU_S4"], "8:0")
    host.mounted("/scratch", "nvme2n1", ["noatime", "allocsize=64k"])
    host._generate()
    return host


def _after(words: str, pattern: str, otherwise: str) -> str:
    match = re.search(pattern, words)
    return match.group(1) if match else otherwise


def _dashed(uuid: str) -> str:
    digits = uuid.replace(":", "")
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _geometry(content: dict[str, Any]) -> str:
    blocks = content["size"] // 4096
    rows = [
        "meta-data=/dev/x isize=512    agcount=%d, agsize=%d blks"
        % (content["agcount"], -(-blocks // content["agcount"])),
        "         =       sectsz=512   attr=2, projid32bit=1",
        "         =       crc=1        finobt=1, sparse=1, rmapbt=0",
        "         =       reflink=%d    bigtime=1 inobtcount=1 nrext64=%d"
        % (content.get("reflink", 1), content.get("nrext64", 0)),
        "data     =       bsize=4096   blocks=%d, imaxpct=25" % blocks,
        "         =       sunit=%d      swidth=%d blks"
        % (content["su"] // 4096, content["su"] * content["sw"] // 4096),
        "naming   =version 2 bsize=4096 ascii-ci=0, ftype=%d" % content.get("ftype", 1),
        "log      =internal log bsize=4096 blocks=%d, version=2" % (content["log"] // 4096),
    ]
    return "\n".join(rows) + "\n"
