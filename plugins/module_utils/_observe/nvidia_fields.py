# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where each field of a GPU stands in the forms of nvidia-smi.

A form is brought to rows first: path and cell, the path in lower case with ``/`` between its levels (csv: the
name of the column).  Names changed over the versions, so a field has several places; those that are there count,
not the version of the driver.  The names are those of real outputs from R304 to R615 and of nvidia-smi's manual.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

from .nvidia_words import address, flag, mebibytes, mode, number, pci_id, real, version, word

XML, TEXT, CSV = 0, 1, 2

Reader = Callable[[str], Any]
# Places of a form are parted by "|"; the first that holds a value counts.
FIELDS: Dict[str, Tuple[Reader, str, str, str]] = {
    "address": (address, "pci/pci_bus_id|gpu", "pci/bus id|gpu", "pci.bus_id|gpu_bus_id"),
    "index": (number, "", "", "index"),
    "minor_number": (number, "minor_number", "minor number", ""),
    "name": (word, "product_name", "product name", "name|gpu_name"),
    "brand": (word, "product_brand", "product brand", ""),
    "architecture": (word, "product_architecture", "product architecture", ""),
    "uuid": (word, "uuid", "gpu uuid", "uuid|gpu_uuid"),
    "serial": (word, "serial", "serial number", "serial|gpu_serial"),
    "vbios": (word, "vbios_version", "vbios version", "vbios_version"),
    "part_number": (word, "gpu_part_number", "gpu part number", ""),
    "board_part_number": (word, "board_part_number", "board part number", ""),
    "module_id": (
        word,
        "platforminfo/module_id|gpu_module_id",
        "platform info/module id|module id",
        "platform.module_id|module_id",
    ),
    "pci_id": (pci_id, "pci/pci_device_id", "pci/device id", "pci.device_id"),
    "subsystem_id": (pci_id, "pci/pci_sub_system_id", "pci/sub system id", "pci.sub_device_id"),
    "compute_capability": (word, "", "", "compute_cap"),
    "gsp_firmware_version": (version, "gsp_firmware_version", "gsp firmware version", ""),
    "memory_total_mib": (
        mebibytes,
        "fb_memory_usage/total|memory_usage/total",
        "fb memory usage/total|memory usage/total",
        "memory.total",
    ),
    "memory_reserved_mib": (mebibytes, "fb_memory_usage/reserved", "fb memory usage/reserved", "memory.reserved"),
    "memory_used_mib": (
        mebibytes,
        "fb_memory_usage/used|memory_usage/used",
        "fb memory usage/used|memory usage/used",
        "memory.used",
    ),
    "bar1_total_mib": (mebibytes, "bar1_memory_usage/total", "bar1 memory usage/total", ""),
    "pcie_gen": (
        number,
        "pci/pci_gpu_link_info/pcie_gen/current_link_gen",
        "pci/gpu link info/pcie generation/current",
        "pcie.link.gen.current|pcie.link.gen.gpucurrent",
    ),
    "pcie_gen_max": (
        number,
        "pci/pci_gpu_link_info/pcie_gen/max_link_gen",
        "pci/gpu link info/pcie generation/max",
        "pcie.link.gen.max",
    ),
    "pcie_gen_device_max": (
        number,
        "pci/pci_gpu_link_info/pcie_gen/max_device_link_gen",
        "pci/gpu link info/pcie generation/device max",
        "pcie.link.gen.gpumax",
    ),
    "pcie_gen_host_max": (
        number,
        "pci/pci_gpu_link_info/pcie_gen/max_host_link_gen",
        "pci/gpu link info/pcie generation/host max",
        "pcie.link.gen.hostmax",
    ),
    "pcie_width": (
        number,
        "pci/pci_gpu_link_info/link_widths/current_link_width",
        "pci/gpu link info/link width/current",
        "pcie.link.width.current",
    ),
    "pcie_width_max": (
        number,
        "pci/pci_gpu_link_info/link_widths/max_link_width",
        "pci/gpu link info/link width/max",
        "pcie.link.width.max",
    ),
    "pcie_replays": (number, "pci/replay_counter", "pci/replays since reset|pci/replay counter", ""),
    "pcie_replay_rollovers": (number, "pci/replay_rollover_counter", "pci/replay number rollovers", ""),
    "pcie_tx_kb_s": (number, "pci/tx_util", "pci/tx throughput", ""),
    "pcie_rx_kb_s": (number, "pci/rx_util", "pci/rx throughput", ""),
    "persistence_mode": (mode, "persistence_mode", "persistence mode", "persistence_mode"),
    "addressing_mode": (word, "addressing_mode", "addressing mode", "addressing_mode"),
    "mig_mode": (mode, "mig_mode/current_mig", "mig mode/current", "mig.mode.current"),
    "mig_mode_pending": (mode, "mig_mode/pending_mig", "mig mode/pending", "mig.mode.pending"),
    "ecc_mode": (mode, "ecc_mode/current_ecc", "ecc mode/current", "ecc.mode.current"),
    "ecc_mode_pending": (mode, "ecc_mode/pending_ecc", "ecc mode/pending", "ecc.mode.pending"),
    "compute_mode": (word, "compute_mode", "compute mode", "compute_mode"),
    "display_active": (mode, "display_active", "display active", "display_active"),
    "driver_model": (word, "driver_model/current_dm", "driver model/current", "driver_model.current"),
    "c2c_mode": (mode, "c2c_mode", "gpu c2c mode", "c2c.mode"),
    "virtualization_mode": (
        word,
        "gpu_virtualization_mode/virtualization_mode",
        "gpu virtualization mode/virtualization mode",
        "",
    ),
    "host_vgpu_mode": (word, "gpu_virtualization_mode/host_vgpu_mode", "gpu virtualization mode/host vgpu mode", ""),
    "vgpu_license_product": (
        word,
        "vgpu_software_licensed_product/licensed_product_name|grid_licensed_product/licensed_product_name",
        "vgpu software licensed product/product name|grid licensed product/product name",
        "",
    ),
    "sram_threshold_exceeded": (
        flag,
        "ecc_errors/aggregate/sram_threshold_exceeded",
        "ecc errors/aggregate/sram threshold exceeded",
        "ecc.errors.uncorrected.aggregate.sram.thresholdexceeded",
    ),
    "channel_repair_pending": (flag, "ecc_errors/channel_repair_pending", "ecc errors/channel repair pending", ""),
    "tpc_repair_pending": (flag, "ecc_errors/tpc_repair_pending", "ecc errors/tpc repair pending", ""),
    "unrepairable_memory": (flag, "ecc_errors/unrepairable_memory", "ecc errors/unrepairable memory", ""),
    "remapped_correctable": (
        number,
        "remapped_rows/remapped_row_corr",
        "remapped rows/correctable error",
        "remapped_rows.correctable",
    ),
    "remapped_uncorrectable": (
        number,
        "remapped_rows/remapped_row_unc",
        "remapped rows/uncorrectable error",
        "remapped_rows.uncorrectable",
    ),
    "remapped_pending": (
        flag,
        "remapped_rows/remapped_row_pending",
        "remapped rows/pending",
        "remapped_rows.pending",
    ),
    "remapped_failure": (
        flag,
        "remapped_rows/remapped_row_failure",
        "remapped rows/remapping failure occurred",
        "remapped_rows.failure",
    ),
    "retired_single_bit": (
        number,
        "retired_pages/multiple_single_bit_retirement/retired_count",
        "retired pages/single bit ecc",
        "retired_pages.single_bit_ecc.count|retired_pages.sbe",
    ),
    "retired_double_bit": (
        number,
        "retired_pages/double_bit_retirement/retired_count",
        "retired pages/double bit ecc",
        "retired_pages.double_bit.count|retired_pages.dbe",
    ),
    "retired_pending": (
        flag,
        "retired_pages/pending_blacklist|retired_pages/pending_retirement",
        "retired pages/pending page blacklist|retired pages/pending|retired pages/pending page retirement",
        "retired_pages.pending",
    ),
    "recovery_action": (word, "gpu_recovery_action", "gpu recovery action", "gpu_recovery_action"),
    "reset_required": (
        flag,
        "gpu_reset_status/reset_required",
        "gpu reset status/reset required",
        "reset_status.reset_required",
    ),
    "drain_and_reset_recommended": (
        flag,
        "gpu_reset_status/drain_and_reset_recommended",
        "gpu reset status/drain and reset recommended",
        "reset_status.drain_and_reset_recommended",
    ),
    "temperature_c": (
        number,
        "temperature/gpu_temp",
        "temperature/gpu current temp|temperature/gpu",
        "temperature.gpu",
    ),
    "memory_temperature_c": (
        number,
        "temperature/memory_temp",
        "temperature/memory current temp",
        "temperature.memory",
    ),
    "shutdown_c": (number, "temperature/gpu_temp_max_threshold", "temperature/gpu shutdown temp", ""),
    "slowdown_c": (number, "temperature/gpu_temp_slow_threshold", "temperature/gpu slowdown temp", ""),
    "max_operating_c": (number, "temperature/gpu_temp_max_gpu_threshold", "temperature/gpu max operating temp", ""),
    "memory_max_operating_c": (
        number,
        "temperature/gpu_temp_max_mem_threshold",
        "temperature/memory max operating temp",
        "",
    ),
    "margin_c": (
        number,
        "temperature/gpu_temp_tlimit",
        "temperature/gpu t.limit temp|temperature/gpu current t.limit temp",
        "temperature.gpu.tlimit",
    ),
    "shutdown_margin_c": (
        number,
        "temperature/gpu_temp_max_tlimit_threshold",
        "temperature/gpu shutdown t.limit temp",
        "",
    ),
    "slowdown_margin_c": (
        number,
        "temperature/gpu_temp_slow_tlimit_threshold",
        "temperature/gpu slowdown t.limit temp",
        "",
    ),
    "max_operating_margin_c": (
        number,
        "temperature/gpu_temp_max_gpu_tlimit_threshold",
        "temperature/gpu max operating t.limit temp",
        "",
    ),
    "memory_max_operating_margin_c": (
        number,
        "temperature/gpu_temp_max_mem_tlimit_threshold",
        "temperature/memory max operating t.limit temp",
        "",
    ),
    "fan_percent": (number, "fan_speed", "fan speed", "fan.speed"),
    "power_draw_w": (
        real,
        "gpu_power_readings/power_draw|gpu_power_readings/instant_power_draw|gpu_power_readings/average_power_draw"
        "|power_readings/power_draw|power_readings/instant_power_draw|power_readings/average_power_draw",
        "gpu power readings/power draw|gpu power readings/instantaneous power draw"
        "|gpu power readings/average power draw|power readings/power draw|power readings/instantaneous power draw"
        "|power readings/average power draw",
        "power.draw|power.draw.instant|power.draw.average",
    ),
    "power_limit_w": (
        real,
        "gpu_power_readings/current_power_limit|gpu_power_readings/enforced_power_limit"
        "|power_readings/current_power_limit|power_readings/enforced_power_limit|power_readings/power_limit",
        "gpu power readings/current power limit|gpu power readings/enforced power limit"
        "|power readings/current power limit|power readings/enforced power limit|power readings/power limit",
        "enforced.power.limit|power.limit",
    ),
    "power_requested_limit_w": (
        real,
        "gpu_power_readings/requested_power_limit|gpu_power_readings/power_limit"
        "|power_readings/requested_power_limit|power_readings/power_limit",
        "gpu power readings/requested power limit|gpu power readings/power limit"
        "|power readings/requested power limit|power readings/power limit",
        "power.limit",
    ),
    "power_default_limit_w": (
        real,
        "gpu_power_readings/default_power_limit|power_readings/default_power_limit",
        "gpu power readings/default power limit|power readings/default power limit",
        "power.default_limit",
    ),
    "power_min_limit_w": (
        real,
        "gpu_power_readings/min_power_limit|power_readings/min_power_limit",
        "gpu power readings/min power limit|power readings/min power limit",
        "power.min_limit",
    ),
    "power_max_limit_w": (
        real,
        "gpu_power_readings/max_power_limit|power_readings/max_power_limit",
        "gpu power readings/max power limit|power readings/max power limit",
        "power.max_limit",
    ),
    "module_power_draw_w": (
        real,
        "module_power_readings/power_draw|module_power_readings/instant_power_draw"
        "|module_power_readings/average_power_draw",
        "module power readings/power draw|module power readings/instantaneous power draw"
        "|module power readings/average power draw",
        "module.power.draw.instant|module.power.draw.average",
    ),
    "module_power_limit_w": (
        real,
        "module_power_readings/current_power_limit",
        "module power readings/current power limit",
        "module.enforced.power.limit|module.power.limit",
    ),
    "pstate": (word, "performance_state", "performance state", "pstate"),
    "clock_graphics_mhz": (
        number,
        "clocks/graphics_clock",
        "clocks/graphics",
        "clocks.current.graphics|clocks.gr",
    ),
    "clock_sm_mhz": (number, "clocks/sm_clock", "clocks/sm", "clocks.current.sm|clocks.sm"),
    "clock_memory_mhz": (number, "clocks/mem_clock", "clocks/memory", "clocks.current.memory|clocks.mem"),
    "clock_graphics_max_mhz": (
        number,
        "max_clocks/graphics_clock",
        "max clocks/graphics",
        "clocks.max.graphics|clocks.max.gr",
    ),
    "clock_sm_max_mhz": (number, "max_clocks/sm_clock", "max clocks/sm", "clocks.max.sm"),
    "clock_memory_max_mhz": (number, "max_clocks/mem_clock", "max clocks/memory", "clocks.max.memory|clocks.max.mem"),
    "utilization_gpu_percent": (number, "utilization/gpu_util", "utilization/gpu", "utilization.gpu"),
    "utilization_memory_percent": (number, "utilization/memory_util", "utilization/memory", "utilization.memory"),
    "fabric_state": (word, "fabric/state", "fabric/state", "fabric.state"),
    "fabric_status": (word, "fabric/status", "fabric/status", "fabric.status"),
    "fabric_clique": (
        word,
        "fabric/cliqueid|fabric/clique_id",
        "fabric/cliqueid|fabric/clique id",
        "fabric.cliqueid|fabric.clique_id",
    ),
    "fabric_cluster_uuid": (
        word,
        "fabric/clusteruuid|fabric/cluster_uuid",
        "fabric/clusteruuid|fabric/cluster uuid",
        "fabric.clusteruuid|fabric.cluster_uuid",
    ),
}
PLACES: Tuple[Dict[str, Tuple[str, ...]], ...] = tuple(
    {name: tuple(place for place in places[form].split("|") if place) for name, (_read, *places) in FIELDS.items()}
    for form in (XML, TEXT, CSV)
)
# Counts of ECC errors; %s is volatile or aggregate.
ECC: Dict[str, Tuple[str, str, str]] = {
    "correctable": ("single_bit/total", "single bit/total", "corrected.%s.total"),
    "uncorrectable": ("double_bit/total", "double bit/total", "uncorrected.%s.total"),
    "sram correctable": ("sram_correctable", "sram correctable", "corrected.%s.sram"),
    "sram uncorrectable": ("sram_uncorrectable", "sram uncorrectable", "uncorrected.%s.sram"),
    "sram parity": ("sram_uncorrectable_parity", "sram uncorrectable parity", "uncorrected.%s.sram.parity"),
    "sram secded": ("sram_uncorrectable_secded", "sram uncorrectable sec-ded", "uncorrected.%s.sram.secded"),
    "dram correctable": ("dram_correctable", "dram correctable", "corrected.%s.dram"),
    "dram uncorrectable": ("dram_uncorrectable", "dram uncorrectable", "uncorrected.%s.dram"),
    "device correctable": ("single_bit/device_memory", "single bit/device memory", "corrected.%s.device_memory"),
    "device uncorrectable": ("double_bit/device_memory", "double bit/device memory", "uncorrected.%s.device_memory"),
}
ECC_BLOCKS = ("ecc_errors/%s/", "ecc errors/%s/", "ecc.errors.")
