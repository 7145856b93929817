# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which GPUs there are: seen on the bus and by nvidia-smi, of the model and memory that they are said to have."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional

from .._engine.values import Finding, Unknown
from .._tables import gpus as catalogue
from .._tables import rows
from .platform_common import PASSED_THROUGH, Card, cards, id_of, known, smi_gpus

Want = Mapping[str, Any]
Have = Mapping[str, Any]

_BUS = "sysfs: /sys/bus/pci/devices"
_MANUAL = "nvidia-smi manual"
_IDS = "pci.ids"


def judge(want: Want, have: Have) -> List[Finding]:
    found = cards(want, have)
    findings = _presence(want, have, found)
    for card in found:
        findings += _identity(want, card, have["smi"]) + _memory(card)
    return findings + _together(want, found)


def _presence(want: Want, have: Have, found: List[Card]) -> List[Finding]:
    """What the bus and nvidia-smi say of how many GPUs there are; where they differ, both are named."""
    smi = have["smi"]
    if isinstance(have["gpus"], Unknown) and isinstance(smi, Unknown):
        return [_unseen(smi)]
    ours = [card for card in found if card.device is None or card.device.driver not in PASSED_THROUGH]
    is_empty = not found and (isinstance(smi, Unknown) or not smi.lost)
    findings: List[Finding] = [_no_gpu()] if is_empty else []
    if want["gpu_count"] is not None and want["gpu_count"] != len(found):
        findings.append(_count(want["gpu_count"], found))
    if isinstance(smi, Unknown):
        return findings + ([_silent(smi)] if ours else [])
    if smi.is_complete is False:
        findings.append(_incomplete(smi))
    lost = {str(one.address): one.reason for one in smi.lost}
    for card in ours:
        # Of an output that was cut off, only a GPU that it complains about is known to be missing.
        if card.gpu is None and (smi.is_complete is not False or card.address in lost):
            findings.append(_missing(card, lost.get(card.address, "")))
        if card.device is None and not isinstance(have["gpus"], Unknown):
            findings.append(_contradiction(card))
    here = {card.address for card in found}
    return findings + [_lost(one) for one in smi.lost if str(one.address) not in here]


def _identity(want: Want, card: Card, smi: Any) -> List[Finding]:
    name, real = card.name, card.model.name if card.model else ""
    findings: List[Finding] = []
    named = catalogue.by_name(name)
    if card.model and named and catalogue.plain_name(name) != catalogue.plain_name(real):
        findings.append(_other_model(card, name, "nvidia-smi calls it by a name that its PCI id does not have"))
    wanted = want["gpu_model"]
    if wanted and (real or name) and catalogue.plain_name(wanted) != catalogue.plain_name(real or name):
        findings.append(_other_model(card, wanted, "the fleet wants another model here", real or name))
    if not card.model and (name or id_of(card.device, card.gpu)):
        findings.append(_unknown_model(card, name))
    elif not card.model and card.gpu is not None:
        # In a table of some columns, nobody asked for the name.
        is_table = not isinstance(smi, Unknown) and smi.source == "csv"
        findings.append(_nameless(card, "info" if is_table else "warn"))
    if _is_consumer(card) and want["consumer_gpus"] != "allow":
        findings.append(_consumer(card.address, real or name, "fail" if want["consumer_gpus"] == "refuse" else "warn"))
    return findings


def _is_consumer(card: Card) -> bool:
    """By the catalogue; of a model that is not in it, by the name of the family."""
    return card.model.gpu_class == "consumer" if card.model else "geforce" in card.name.lower()


def _memory(card: Card) -> List[Finding]:
    model, gpu = card.model, card.gpu
    if model is None or gpu is None or not known(gpu.memory_total_mib) or gpu.memory_total_mib == 0:
        return []
    # A guest's share of a card, and its parts, are not the card.
    if catalogue.memory_fits(model, gpu.memory_total_mib) or _is_shared(gpu):
        return []
    level = "fail" if rows.is_verified(model, "memory_mib") else "info"
    return [
        Finding(
            "platform.gpu-memory", level, card.address, "%d MiB" % model.memory_mib, "%d MiB" % gpu.memory_total_mib,
            "a %s has another amount of memory: the card is another one, or a part of its memory is out of use" % model.name,
            "nvidia-smi -q -i %s -d MEMORY,ROW_REMAPPER; compare with what was ordered" % card.address, model.source,
        )
    ]  # fmt: skip


def _is_shared(gpu: Any) -> bool:
    mode = gpu.virtualization_mode
    return known(mode) and str(mode).lower() in ("vgpu", "vgpu guest", "host vgpu", "host vsga")


def _together(want: Want, found: List[Card]) -> List[Finding]:
    names = sorted({card.model.name if card.model else card.name for card in found} - {""})
    if len(names) < 2 or want["gpu_model"]:
        return []
    return [
        Finding(
            "platform.gpu-mixed", "warn", "host", "one model", ", ".join(names),
            "a job over all GPUs runs at the pace of the slowest, and libraries may not talk between models",
            "pick the GPUs of one model for a job (CUDA_VISIBLE_DEVICES), or move the cards", _IDS,
        )
    ]  # fmt: skip


def _no_gpu() -> Finding:
    return Finding(
        "platform.no-gpu", "info", "host", "a GPU", "none on the PCI bus or in nvidia-smi",
        "this host has no GPU, so nothing about GPUs is judged; if it should have one, the bus does not see it",
        "lspci -d 10de: ; look at the slot, the power cable and the BIOS; stand-ins are named in platform_gpu_match", _BUS,
    )  # fmt: skip


def _count(wanted: int, found: List[Card]) -> Finding:
    return Finding(
        "platform.gpu-count", "fail", "host", "%d GPUs" % wanted, "%d GPUs" % len(found),
        "a GPU that is not on the bus is not powered, not seated, or broken",
        "lspci -d 10de: ; dmesg | grep -iE 'nvrm|pcie'; ipmitool sel elist", _BUS,
    )  # fmt: skip


def _unseen(reason: Unknown) -> Finding:
    return Finding(
        "platform.gpus-unseen", "warn", "host", "to be seen", reason,
        "neither the PCI bus nor nvidia-smi can be read, so nothing can be said of the GPUs",
        "take a whole capture: playbooks/capture.yml", _BUS,
    )  # fmt: skip


def _silent(reason: Unknown) -> Finding:
    is_hung = reason.reason.startswith("hung")
    return Finding(
        "platform.nvidia-smi-hung" if is_hung else "platform.nvidia-smi-unseen", "fail" if is_hung else "warn", "host",
        "an answer", reason,
        "there are GPUs on the bus and nvidia-smi says nothing of them, so their health is unknown",
        "ps -eo pid,stat,wchan,args | grep nvidia; dmesg | grep -iE 'nvrm|xid'" if is_hung
        else "nvidia-smi; lsmod | grep nvidia; dmesg | grep -i nvrm", _MANUAL,
    )  # fmt: skip


def _incomplete(smi: Any) -> Finding:
    told = "%d GPUs, %s attached%s" % (
        len(smi.gpus), smi.attached_gpus, "; " + smi.complaints[0] if smi.complaints else "",
    )  # fmt: skip
    return Finding(
        "platform.gpu-list-incomplete", "warn", "host", "all attached GPUs", Unknown(told),
        "the output of nvidia-smi is cut off, so the GPUs that are not in it are unknown",
        "nvidia-smi -q -x | tail; run the audit again", _MANUAL,
    )  # fmt: skip


def _missing(card: Card, reason: str) -> Finding:
    return Finding(
        "platform.gpu-missing", "fail", card.address, "in nvidia-smi", reason or "on the PCI bus only",
        "the bus has this GPU and the driver does not offer it: jobs run with one GPU less, or do not start",
        "dmesg | grep -iE 'xid|nvrm|fallen off'; reseat or power-cycle it; lspci -s %s -vv" % card.address, _BUS,
    )  # fmt: skip


def _lost(one: Any) -> Finding:
    return Finding(
        "platform.gpu-missing", "fail", str(one.address) if known(one.address) else "host", "in nvidia-smi", one.reason,
        "nvidia-smi knows this GPU and gets no answer from it",
        "dmesg | grep -iE 'xid|nvrm|fallen off'; reseat or power-cycle it", _MANUAL,
    )  # fmt: skip


def _contradiction(card: Card) -> Finding:
    return Finding(
        "platform.sources-contradict", "warn", card.address, "the same GPUs on the bus and in nvidia-smi",
        "in nvidia-smi only", "two sources contradict each other, so neither is believed here",
        "lspci -s %s; nvidia-smi -L; platform_gpu_match may leave it out" % card.address, _BUS,
    )  # fmt: skip


def _other_model(card: Card, expected: str, why: str, real: Optional[str] = None) -> Finding:
    return Finding(
        "platform.gpu-model", "fail", card.address, expected,
        "%s (PCI id %s)" % (real or (card.model.name if card.model else ""), id_of(card.device, card.gpu) or "unknown"),
        why, "lspci -nn -s %s; compare with what was ordered: playbooks/accept.yml" % card.address, _IDS,
    )  # fmt: skip


def _unknown_model(card: Card, name: str) -> Finding:
    return Finding(
        "platform.gpu-unknown-model", "info", card.address, "a model of the catalogue",
        "%s (PCI id %s)" % (name or "no name", id_of(card.device, card.gpu) or "unknown"),
        "what this model should have (memory, links, temperatures) is unknown, so only what the card says itself is judged",
        "add a row to platform_tables.gpus", "docs/tables.md",
    )  # fmt: skip


def _nameless(card: Card, level: str) -> Finding:
    return Finding(
        "platform.gpu-nameless", level, card.address, "a name or a PCI id", Unknown("neither was told"),
        "a GPU of which nobody says what it is can be judged by what it complains of, and never be called right",
        "nvidia-smi -q -i %s; take a whole capture: playbooks/capture.yml" % card.address, _MANUAL,
    )  # fmt: skip


def _consumer(address: str, name: str, level: str) -> Finding:
    return Finding(
        "platform.gpu-consumer", level, address, "a data-centre or workstation card", name,
        "a consumer card has no ECC for its memory, no support for long full load, and its driver licence excludes data centres",
        "replace it, or accept it: platform_consumer_gpus: allow", "policy (R07 of the guide); NVIDIA GeForce driver licence",
    )  # fmt: skip


def count_of(have: Have) -> int:
    """How many GPUs there are: on the bus, or where that cannot be seen in nvidia-smi."""
    return len(smi_gpus(have)) if isinstance(have["gpus"], Unknown) else len(have["gpus"])
