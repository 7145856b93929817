# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A lot against its order: tests/unit/cases/order/lot.yml."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gpufleet.host.plugins.module_utils._engine.capture import scrub_folder
from ansible_collections.gpufleet.host.plugins.plugin_utils.order import LotSerials
from ansible_collections.gpufleet.host.plugins.plugin_utils.order_lot import (
    LotResult,
    Rules,
    Seen,
    judge_lot,
    why_refused,
)
from ansible_collections.gpufleet.host.plugins.plugin_utils.order_serials import is_scrubbed
from tests import order_sample as sample

CASES = yaml.safe_load((Path(__file__).parents[2] / "cases/order/lot.yml").read_text(encoding="utf-8"))
EXAMPLE = sample.example()


def seen(case: dict[str, Any]) -> list[Seen]:
    rows: dict[int, Any] = {at: {} for at in range(8)}
    rows.update(case.get("seen", {}))
    found = []
    for at, about in rows.items():
        if about == "gone":
            continue
        number = about.get("number", at + 1)
        facts = sample.hardware(number)
        facts = sample.larger_drives(facts) if number == 8 else facts
        facts = sample.changed(facts, about["change"]) if "change" in about else about.get("facts", facts)
        name = about.get("name", "gpu-a%02d.example.com" % (at + 1))
        if "why" in about:
            found.append(Seen(name, None, about["why"]))
        else:
            found.append(
                Seen(
                    name,
                    sample.report(about.get("own_name", name), facts, [sample.NARROW] if "finding" in about else None),
                )
            )
    return found


def judged(case: dict[str, Any]) -> tuple[LotResult, Rules]:
    rules = Rules(
        **{key: tuple(value) if isinstance(value, list) else value for key, value in case.get("rules", {}).items()}
    )
    order = EXAMPLE
    if "serials" in case:
        order = replace(order, serials=LotSerials(**{key: tuple(value) for key, value in case["serials"].items()}))
    return judge_lot(order, seen(case), rules), rules


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_lot_is_judged(case: dict[str, Any]) -> None:
    lot, rules = judged(case)
    assert lot.is_accepted == case.get("accepted", False)
    refused = {host.seen.name: why_refused(host, rules, 20) for host in lot.hosts if not host.is_accepted}
    assert refused == case.get("hosts", {})
    lines = {line.item: line for line in lot.lines if not rules.accepts(line)}
    assert {item: line.verdict for item, line in lines.items()} == {
        item: about["verdict"] for item, about in case.get("lines", {}).items()
    }
    for item, about in case.get("lines", {}).items():
        assert {key: getattr(lines[item], key) for key in about} == about


def test_hosts_come_in_the_order_in_which_people_count() -> None:
    names = ["gpu10", "gpu9", "gpu1"]
    lot = judge_lot(EXAMPLE, [Seen(name, None, "no") for name in names], Rules())
    assert [host.name for host in lot.hosts] == ["gpu1", "gpu9", "gpu10"]


def test_how_a_host_is_known_is_said() -> None:
    lot, _rules = judged({"seen": {0: {"name": "box-3", "own_name": "gpu-a01"}, 1: {"name": "sn-1"}},
                          "rules": {"class_name": "hgx_h100"}})  # fmt: skip
    known = {host.seen.name: (host.name, host.known_by) for host in lot.hosts}
    assert known["box-3"] == ("gpu-a01.example.com", "name gpu-a01")
    assert known["sn-1"] == ("sn-1", "acceptance_class")
    assert known["gpu-a08.example.com"] == ("gpu-a08.example.com", "serial number A521893X4100808")


def test_four_gpus_of_one_board_share_a_number() -> None:
    change = {
        "gpus[%d].%s" % (at, key): value for at in range(4) for key, value in (("serial", "1"), ("name", "NVIDIA A16"))
    }
    lot, _rules = judged({"seen": {0: {"change": change}}})
    assert not [line for line in lot.lines if line.kind == "serials"]


def test_made_up_numbers_are_those_of_a_scrubbed_capture(tmp_path: Path) -> None:
    place = tmp_path / "files/sys/class/dmi/id"
    place.mkdir(parents=True)
    (tmp_path / "commands").mkdir()
    (tmp_path / "capture.json").write_text('{"format": 1, "hostname": "gpu01", "taken": ""}', encoding="utf-8")
    (place / "product_serial").write_text("A521893X4100801\n", encoding="utf-8")
    scrub_folder(str(tmp_path), "salt")
    made_up = (place / "product_serial").read_text(encoding="utf-8").strip()
    assert made_up != "A521893X4100801" and is_scrubbed(made_up)
    assert not is_scrubbed("A521893X4100801")


def test_the_worst_host_comes_first_and_equal_ones_by_name() -> None:
    """Also those that only could not be seen; what is accepted is no reason to be among the first."""
    seen = sample.lot()
    wrong = sample.changed(sample.hardware(7), {"gpus[3].pci_id": "10de:20f3", "gpus[3].subsystem_id": ""})
    seen[6] = Seen("gpu-a07", sample.report("gpu-a07", wrong))
    seen[2] = Seen("gpu-a03", None, "No route to host")
    names = [host.name.split(".")[0] for host in judge_lot(sample.example(), seen, Rules()).hosts]
    assert names == ["gpu-a07", "gpu-a03", "gpu-a01", "gpu-a02", "gpu-a04", "gpu-a05", "gpu-a06", "gpu-a08"]
    accepted = judge_lot(sample.example(), seen, Rules(unseen_is="accept")).hosts
    assert [host.name.split(".")[0] for host in accepted][:3] == ["gpu-a07", "gpu-a01", "gpu-a02"]
