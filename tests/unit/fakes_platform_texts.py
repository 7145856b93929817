# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the files and tools of the fake HGX hosts say, in the words of the tools and of the kernel."""

from __future__ import annotations

import json

MODULES = 16
CPU = "Intel(R) Xeon(R) Platinum 8480+"
# Name and time to wake, as intel_idle lists them on Sapphire Rapids.
IDLE = (("POLL", 0), ("C1", 1), ("C1E", 2), ("C6", 290))

KERNEL_LOG = """\
2026-11-29T22:10:01+00:00 gpu01 kernel: Linux version 6.8.0-51-generic (buildd@lcy02) (gcc 13.3.0) #52-Ubuntu SMP
2026-11-29T22:10:01+00:00 gpu01 kernel: iommu: Default domain type: Passthrough (set via kernel command line)
2026-11-29T22:10:02+00:00 gpu01 kernel: secureboot: Secure boot disabled
2026-11-29T22:10:14+00:00 gpu01 kernel: nvidia-nvlink: Nvlink Core is being initialized, major device number 510
2026-11-29T22:10:14+00:00 gpu01 kernel: NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  590.48.01  Release Build
2026-11-29T22:10:20+00:00 gpu01 kernel: nvidia-nvswitch0: using MSI
"""
FABRIC_LOG = """\
2026-11-29T22:10:30+00:00 gpu01 nv-fabricmanager[2101]: Connected to 1 node.
2026-11-29T22:10:41+00:00 gpu01 nv-fabricmanager[2101]: Successfully configured all the available GPUs and NVSwitches to route NVLink traffic.
"""
# After an `sdr elist` of ipmitool (tests/corpus/ipmi); redundancy as IPMI 2.0, table 42-2 has it.
SENSORS = "".join(
    [
        "PSU%d Status      | C%dh | ok  | 10.%d | Presence detected\n" % (number, number, number)
        for number in range(1, 7)
    ]
    + [
        "Power Redundancy | D0h | ok  | 21.1 | Fully Redundant\n",
        "Inlet Temp       | 04h | ok  |  7.1 | 25 degrees C\n",
    ]
    + ["FAN%d             | 4%dh | ok  | 29.%d | 9800 RPM\n" % (number, number, number) for number in range(1, 5)]
)
DCMI = """\

    Instantaneous power reading:                  2310 Watts
    Minimum during sampling period:               1980 Watts
    Maximum during sampling period:               6400 Watts
    Average power reading over sample period:     2300 Watts
    IPMI timestamp:                           Mon Nov 30 06:00:00 2026
    Sampling period:                          00000001 Seconds.
    Power reading state is:                   activated

"""
# In the form of ipmitool(1), mc info.
MC_INFO = """\
Device ID                 : 32
Device Revision           : 1
Firmware Revision         : 1.74
IPMI Version              : 2.0
Manufacturer ID           : 10876
Manufacturer Name         : Supermicro
Product ID                : 6929 (0x1b11)
Product Name              : Unknown (0x1B11)
Device Available          : yes
Provides Device SDRs      : no
Additional Device Support :
    Sensor Device
    SDR Repository Device
Aux Firmware Rev Info     :
    0x04
    0x00
"""
DCB = {
    "pfc": json.dumps(
        {"pfc_cap": 8, "macsec_bypass": False, "delay": 0, "prio_pfc": [place == 3 for place in range(8)]}
    ),
    "app": json.dumps({"dscp_prio": [[26, 3, " "], [48, 6, " "]]}),
    "dcbx": json.dumps({"host": True, "ieee": True}),
    "apptrust": json.dumps({"order": ["dscp", "pcp"]}),
}
PAUSE = "Pause parameters for ens1f0:\nAutonegotiate:\toff\nRX:\t\toff\nTX:\t\toff\n"
STATISTICS = """\
NIC statistics:
     rx_packets: 41982211
     rx_discards_phy: 0
     rx_prio3_pause: 12
     tx_prio3_pause: 4
     link_down_events_phy: 1
"""
NETDEV = {
    "operstate": "up", "carrier": "1", "mtu": "9000", "speed": "400000", "duplex": "full", "dev_port": "0",
    "carrier_changes": "3", "carrier_up_count": "2", "carrier_down_count": "1",
}  # fmt: skip


def packages(driver: str) -> str:
    rows = (
        ("libcudnn9-cuda-13", "9.17.0.29-1"),
        ("libnvidia-compute-590", driver + "-0ubuntu1"),
        ("libnvidia-nscq", driver + "-1"),
        ("nvidia-dkms-590-open", driver + "-0ubuntu1"),
        ("nvidia-driver-590-open", driver + "-0ubuntu1"),
        ("nvidia-fabricmanager", driver + "-1"),
        ("nvidia-persistenced", driver + "-1"),
    )
    return "".join("hi  %s %s amd64\n" % row for row in rows)


def modinfo(driver: str, kernel: str) -> str:
    return (
        "filename:       /lib/modules/{1}/updates/dkms/nvidia.ko.zst\n"
        "import_ns:      DMA_BUF\nalias:          char-major-195-*\nversion:        {0}\nsupported:      external\n"
        "license:        Dual MIT/GPL\nfirmware:       nvidia/{0}/gsp_tu10x.bin\nfirmware:       nvidia/{0}/gsp_ga10x.bin\n"
        "srcversion:     B9B1E6F2A7C6F9C0E0A1234\nname:           nvidia\n"
        "vermagic:       {1} SMP preempt mod_unload modversions\nsig_id:         PKCS#7\n"
        "signer:         gpu01 Secure Boot Module Signature key\nsig_hashalgo:   sha512\n"
    ).format(driver, kernel)


def unit(name: str) -> str:
    """A block of `systemctl show`."""
    running = name in ("nvidia-fabricmanager.service", "nvidia-persistenced.service")
    states = ("loaded", "active", "running", "enabled") if running else ("not-found", "inactive", "dead", "")
    return (
        "Id={0}\nNames={0}\nLoadState={1}\nActiveState={2}\nSubState={3}\nResult=success\nUnitFileState={4}\n"
        "NRestarts=0\nExecMainStatus=0\nActiveEnterTimestamp=\n"
    ).format(name, *states)


def dmidecode() -> str:
    """Parts of the output of dmidecode 3.5, with one module on each channel of two processors."""
    head = """\
# dmidecode 3.5
Getting SMBIOS data from sysfs.
SMBIOS 3.5.0 present.

Handle 0x0000, DMI type 0, 26 bytes
BIOS Information
\tVendor: American Megatrends International, LLC.
\tVersion: 2.1
\tRelease Date: 03/12/2024
\tROM Size: 32 MB
\tCharacteristics:
\t\tPCI is supported
\t\tUEFI is supported
\tBIOS Revision: 5.32

Handle 0x0001, DMI type 1, 27 bytes
System Information
\tManufacturer: Supermicro
\tProduct Name: SYS-821GE-TNHR
\tVersion: 0123456789
\tSerial Number: A479911X3822143

Handle 0x0020, DMI type 16, 23 bytes
Physical Memory Array
\tLocation: System Board Or Motherboard
\tUse: System Memory
\tError Correction Type: Multi-bit ECC
\tMaximum Capacity: 8 TB
\tNumber Of Devices: 32
"""
    return head + "".join(_module(number) for number in range(MODULES))


def _module(number: int) -> str:
    """P1-DIMMA1 to P1-DIMMH1, and the same of P2."""
    return """
Handle 0x%04x, DMI type 17, 92 bytes
Memory Device
\tArray Handle: 0x0020
\tTotal Width: 80 bits
\tData Width: 64 bits
\tSize: 64 GB
\tForm Factor: DIMM
\tLocator: P%d-DIMM%s1
\tBank Locator: P%d_Node0_Channel%d_Dimm0
\tType: DDR5
\tType Detail: Synchronous Registered (Buffered)
\tSpeed: 4800 MT/s
\tManufacturer: Samsung
\tSerial Number: 80CE01%08X
\tPart Number: M321R8GA0BB0-CQKZJ
\tRank: 2
\tConfigured Memory Speed: 4800 MT/s
\tMemory Technology: DRAM
\tVolatile Size: 64 GB
""" % (0x22 + number, number // 8 + 1, "ABCDEFGH"[number % 8], number // 8, number % 8, 0x2A4B1000 + number)


def devinfo(name: str) -> str:
    """An adapter in `ibv_devinfo`."""
    return (
        "hca_id:\t%s\n\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t\t28.39.1002\n\tphys_port_cnt:\t\t\t1\n"
        "\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t4096 (5)\n"
        "\t\t\tlink_layer:\t\tEthernet\n\n" % name
    )


def rdma_files(name: str, interface: str, place: int) -> dict[str, str]:
    guid = "a088:c203:00b9:%04x" % (0x6E00 + place)
    local, mapped = (
        "fe80:0000:0000:0000:a288:c2ff:fe49:%04x" % place,
        "0000:0000:0000:0000:0000:ffff:0a14:%04x" % (place + 1),
    )
    found = {
        "fw_ver": "28.39.1002", "hca_type": "MT4129", "board_id": "MT_0000000838", "node_desc": "gpu01 HCA-%d" % place,
        "node_guid": guid, "sys_image_guid": guid, "ports/1/state": "4: ACTIVE", "ports/1/phys_state": "5: LinkUp",
        "ports/1/rate": "400 Gb/sec (4X NDR)", "ports/1/lid": "0x0", "ports/1/sm_lid": "0x0", "ports/1/link_layer": "Ethernet",
        "ports/1/counters/link_downed": "0", "ports/1/counters/symbol_error": "0", "ports/1/counters/port_xmit_data": "771233",
        "ports/1/hw_counters/out_of_sequence": "0", "ports/1/hw_counters/lifespan": "12",
    }  # fmt: skip
    for index, (gid, kind) in enumerate(
        ((local, "IB/RoCE v1"), (local, "RoCE v2"), (mapped, "IB/RoCE v1"), (mapped, "RoCE v2"))
    ):
        found["ports/1/gids/%d" % index] = gid
        found["ports/1/gid_attrs/types/%d" % index] = kind
        found["ports/1/gid_attrs/ndevs/%d" % index] = interface
    return found


def counters(kind: str) -> str:
    """aer_dev_correctable and its sisters."""
    names = (
        ("RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout") if kind == "correctable" else ("DLP", "TLP", "CmpltTO")
    )
    total = {"correctable": "TOTAL_ERR_COR", "nonfatal": "TOTAL_ERR_NONFATAL", "fatal": "TOTAL_ERR_FATAL"}[kind]
    return "".join("%s 0\n" % name for name in (*names, total))


def gpu_files(address: str, place: int, driver: str) -> dict[str, str]:
    return {
        "/proc/driver/nvidia/gpus/%s/information" % address: (
            "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 40%d\nGPU UUID: \t GPU-1ab00000-0000-4000-8000-00000000000%d\n"
            "Video BIOS: \t 96.00.a5.00.01\nBus Type: \t PCIe\nDMA Size: \t 52 bits\nBus Location: \t %s\n"
            "Device Minor: \t %d\nGPU Firmware: \t %s\nGPU Excluded:\t No\n" % (place, place, address, place, driver)
        )
    }


def cpuinfo(cpu: int) -> str:
    return (
        "processor\t: %d\nvendor_id\t: GenuineIntel\nmodel name\t: %s\nflags\t\t: fpu vme msr pae sse4_2 avx512f\n\n"
        % (cpu, CPU)
    )


# A variable of efivarfs is four bytes of attributes and its value.
_OFF = "\x06\0\0\0\0"


def files(driver: str, kernel: str) -> dict[str, str]:
    efivars, dmi = "/sys/firmware/efi/efivars/", "/sys/class/dmi/id/"
    torch = "/opt/venv/lib/python3.12/site-packages/"
    dkms = "/var/lib/dkms/nvidia/%s/" % driver
    return {
        "/proc/sys/kernel/osrelease": kernel + "\n",
        "/proc/driver/nvidia/version": (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  Release Build  (dvs-builder@U22-I3-H04)\n"
            "GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)\n" % driver
        ),
        "/proc/driver/nvidia/params": "EnableMSI: 1\nEnableGpuFirmware: 18\n",
        "/sys/module/nvidia/version": driver + "\n",
        "/lib/modules/%s/modules.dep" % kernel: "updates/dkms/nvidia.ko.zst: kernel/drivers/char/drm.ko.zst\n",
        "/lib/firmware/nvidia/%s/gsp_ga10x.bin" % driver: "",
        dkms + "source/dkms.conf": 'PACKAGE_NAME="nvidia"\n',
        dkms + "%s/x86_64/module/nvidia.ko" % kernel: "",
        "/var/lib/dpkg/status": "",
        "/run/nvidia-persistenced/socket": "",
        "/usr/share/nvidia/nvswitch/fabricmanager.cfg": "LOG_LEVEL=4\nFABRIC_MODE=0\n",
        "/usr/bin/setpci": "",
        "/dev/ipmi0": "",
        "/usr/local/cuda-13.1/version.json": json.dumps({"cuda": {"version": "13.1.0"}}),
        torch + "torch/version.py": "__version__ = '2.12.0+cu130'\ncuda: Optional[str] = '13.0'\n",
        torch + "nvidia/cudnn/lib/libcudnn.so.9": "",
        torch + "nvidia/cudnn/include/cudnn_version.h":
            "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 20\n#define CUDNN_PATCHLEVEL 0\n",
        efivars + "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c": _OFF,
        efivars + "SetupMode-8be4df61-93ca-11d2-aa0d-00e098032b8c": _OFF,
        "/sys/kernel/security/lockdown": "[none] integrity confidentiality\n",
        "/sys/class/iommu/dmar0/device/uevent": "",
        "/sys/devices/system/cpu/smt/active": "1\n",
        "/sys/devices/system/cpu/smt/control": "on\n",
        "/sys/devices/system/cpu/cpuidle/current_driver": "intel_idle\n",
        dmi + "sys_vendor": "Supermicro\n",
        dmi + "product_name": "SYS-821GE-TNHR\n",
        dmi + "bios_vendor": "American Megatrends International, LLC.\n",
        dmi + "bios_version": "2.1\n",
        dmi + "bios_date": "03/12/2024\n",
    }  # fmt: skip


def links(driver: str, kernel: str) -> dict[str, str]:
    library = "/usr/lib/x86_64-linux-gnu/"
    return {
        library + "libcuda.so.1": "libcuda.so." + driver,
        library + "libnvidia-ml.so.1": "libnvidia-ml.so." + driver,
        library + "libnvidia-nscq.so.2": "libnvidia-nscq.so.2.0",
        library + "libnvidia-nscq.so.2.0": "libnvidia-nscq.so." + driver,
        library + "libcudnn.so.9": "libcudnn.so.9.17.0",
        library + "libnccl.so.2": "libnccl.so.2.29.2",
        "/usr/local/cuda": "/usr/local/cuda-13.1",
        "/var/lib/dkms/nvidia/kernel-%s-x86_64" % kernel: "%s/%s/x86_64" % (driver, kernel),
    }
