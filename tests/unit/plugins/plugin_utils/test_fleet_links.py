# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links: their words, and the verdict that findings give; the drawing judges only where nobody did."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_links as links
from ansible_collections.gpufleet.host.plugins.plugin_utils.fleet_links import Mark
from tests import fleet_sample as sample

GPU = "0000:19:00.0"


def row(name: str, level: str = "fail", subject: str = GPU, expected: Any = "x16", observed: Any = "x8") -> Any:
    return {"id": name, "level": level, "subject": subject, "expected": expected, "observed": observed}


def judged(*findings: Any, area: str = "platform") -> links.Judgements:
    return links.judgements({area: {"findings": list(findings)}})


@pytest.mark.parametrize(
    "link, text",
    [
        (sample.link(), "x16 · 16 GT/s (Gen4)"),
        (sample.link(speed=2.5), "x16 · 2.5 GT/s (Gen1) of 16"),
        (sample.link(None, speed=None), "link unknown"),
        (sample.link(speed=None), "x16 · speed unknown"),
        (sample.link(None), "width unknown · 16 GT/s (Gen4)"),
        ({"width": "x16", "speed_gts": True}, "link unknown"),
    ],
)
def test_links_in_words(link: dict[str, Any], text: str) -> None:
    assert links.words(link) == text


@pytest.mark.parametrize(
    "kind, link, note",
    [
        ("gpu", sample.link(16, 16, 16), None),
        ("gpu", sample.link(8, 16, 16), Mark("drifted", "runs x8: card x16, slot x16")),
        ("gpu", sample.link(8, 16, 8), Mark("drifted", "x16 card in a x8 slot")),
        ("gpu", sample.link(8, 8, 16), Mark("info", "x8 card in a x16 slot")),
        ("nvme", sample.link(4, 4, 16), None),
        ("nvme", sample.link(2, 4, 4), Mark("drifted", "runs x2: card x4, slot x4")),
        ("gpu", {"width": 8, "max_width": 16}, Mark("drifted", "runs x8, the card has x16")),
        ("gpu", sample.link(None, 16, 16), None),
        ("gpu", {}, None),
    ],
)
def test_a_narrow_link_stands_out(kind: str, link: dict[str, Any], note: Mark | None) -> None:
    assert links.own_note(kind, link) == note


@pytest.mark.parametrize(
    "findings, state, notes",
    [
        ((), "compliant", []),
        ((row("platform.link-width"),), "failed", ["link width: x8, expected x16"]),
        ((row("platform.link-speed", "block"),), "failed", ["link speed: x8, expected x16"]),
        ((row("platform.link-width", "warn"),), "drifted", ["link width: x8, expected x16"]),
        ((row("platform.link-speed", "info", observed="idle"),), "compliant", ["link speed: idle"]),
        ((row("platform.link-speed", "warn", observed={"unknown": "no sysfs"}),), "unknown", ["link speed: no sysfs"]),
        (
            (row("platform.link-errors", "warn", observed="3 replays", expected="none"), row("platform.link-width")),
            "failed",
            ["link width: x8, expected x16", "link errors: 3 replays, expected none"],
        ),
        ((row("platform.link-width", subject="0000:1A:00.0"),), "compliant", []),
        ((row("platform.ecc-errors"),), "compliant", []),
    ],
)
def test_the_verdict_is_the_worst_finding_about_the_link(findings: Any, state: str, notes: list[str]) -> None:
    found = links.verdict("gpu", GPU, sample.link(), judged(*findings))
    assert (found.state, [note.words for note in found.notes]) == (state, notes)


@pytest.mark.parametrize("address", ["00000000:19:00.0", "0000:19:00.0", "00000000:19:00.0".upper()])
def test_a_finding_may_name_the_address_as_nvidia_smi_does(address: str) -> None:
    finding = row("platform.link-width", subject=address)
    assert links.verdict("gpu", GPU, sample.link(), judged(finding)).state == "failed"


@pytest.mark.parametrize("link", [{}, sample.link(None), sample.link(speed=None), {"width": True, "speed_gts": -1}])
def test_a_link_that_was_not_seen_is_unknown_and_not_ok(link: dict[str, Any]) -> None:
    for who in (judged(), links.Judgements()):
        found = links.verdict("gpu", GPU, link, who)
        assert (found.state, found.word) == ("unknown", "unknown")


def test_without_the_area_nothing_is_called_ok() -> None:
    assert links.verdict("gpu", GPU, sample.link(), judged(area="block_queue")).word == "not judged"
    assert links.verdict("gpu", GPU, sample.link(8), judged(area="block_queue")).state == "drifted"


def test_with_the_area_a_narrow_link_is_as_it_says() -> None:
    found = links.verdict("gpu", GPU, sample.link(8), judged())
    assert (found.state, found.notes) == ("compliant", (Mark("info", "runs x8: card x16, slot x16"),))


@pytest.mark.parametrize(
    "findings, active, state",
    [
        ((), 18, "compliant"),
        ((), None, "unknown"),
        ((row("platform.nvlink-inactive", expected=18, observed=16),), 16, "failed"),
        ((row("platform.nvlink-rate", "warn"),), 18, "drifted"),
        ((row("platform.link-width"),), 18, "compliant"),
    ],
)
def test_nvlinks_are_judged_apart_from_pcie(findings: Any, active: int | None, state: str) -> None:
    assert links.nvlink_verdict(GPU, active, judged(*findings)).state == state


def test_other_findings_mark_their_device_by_address_or_name() -> None:
    who = judged(
        row("platform.persistence", "warn"),
        row("platform.xid", "fail"),
        row("platform.xid", "fail"),
        row("platform.rdma-port-down", "warn", subject="mlx5_0"),
        row("platform.note", "info"),
        row("platform.link-width"),
    )
    assert links.other_marks([GPU], who) == (Mark("failed", "XID"), Mark("drifted", "persistence"))
    assert links.other_marks(["0000:18:00.0", "mlx5_0"], who) == (Mark("drifted", "RDMA port down"),)
    assert links.other_marks([""], who) == ()


def test_a_flood_of_findings_is_counted() -> None:
    marks = links.other_marks([GPU], judged(*(row("platform.odd-%d" % number) for number in range(9))))
    assert len(marks) == links.MAX_NOTES + 1 and marks[-1] == Mark("info", "and 5 more")


def test_what_the_kernel_does_not_tell_comes_from_nvidia_smi() -> None:
    told = {"width": 16, "max_width": 16, "gen": 5, "max_gen": 5}
    assert links.words(links.link_of({}, told)) == "x16 · 32 GT/s (Gen5)"
    assert links.words(links.link_of({"link": sample.link(8, speed=16.0)}, told)) == "x8 · 16 GT/s (Gen4)"
    assert links.words(links.link_of({"link": {"unknown": "no"}}, {"gen": None, "width": None})) == "link unknown"


@pytest.mark.parametrize(
    "name, words",
    [
        ("platform.link-width", "link width"),
        ("platform.nvlink-rate", "NVLink rate"),
        ("xfs.mkfs_geometry", "mkfs geometry"),
        ("", ""),
        ("odd", "odd"),
    ],
)
def test_names_of_findings_in_words(name: str, words: str) -> None:
    assert links.subject_matter(name) == words
