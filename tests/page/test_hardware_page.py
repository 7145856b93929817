# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts with hardware in a real browser: at a desk, on a phone, on paper, in the dark, and for a screen reader.

Each host leaves a picture below .cache/screenshots, for people to look at.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_page
from tests import fleet_sample as sample
from tests.page import hosts
from tests.page.test_report_page import CONTRAST, ENOUGH, ENOUGH_LARGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    Opener = Callable[..., Page]

SHOTS = Path(__file__).resolve().parents[2] / ".cache/screenshots"
# A4 with the margins that browsers print, in CSS pixels.
PAPER = 718
every_host = pytest.mark.parametrize("make", hosts.ALL, ids=lambda make: make.__name__)

# What of the drawing runs out of what it stands in; a table may, which scrolls.
SPILLS = """() => [...document.querySelectorAll(".topo p, .topo li, .topo section, .topo svg, .topo td, .card p, .card dd")]
  .filter((e) => e.checkVisibility() && !e.closest(".vh, .wide"))
  .filter((e) => {
    const box = e.parentElement.closest("div, section, li, article").getBoundingClientRect();
    const own = e.getBoundingClientRect();
    return own.right > box.right + 1 || own.left < box.left - 20;
  }).map((e) => e.outerHTML.slice(0, 160))"""

# The sizes of all letters in it as they come out on the screen.
SIZES = """() => [...document.querySelectorAll(".topo *")].filter((e) => e.checkVisibility() && !e.closest(".vh"))
  .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.nodeValue.trim()))
  .map((e) => {
    const svg = e.closest("svg");
    const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
    return parseFloat(getComputedStyle(e).fontSize) * scale;
  })"""


def page_of(*documents: Any) -> dict[str, str]:
    return dict(fleet_page.pages(sample.run_of(list(documents)), list(documents)))


def opened(open_page: Opener, *documents: Any, **options: Any) -> Page:
    page = open_page(page_of(*documents), **options)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    return page


def picture_of(page: Page, make: Any, name: str) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    assert len(page.screenshot(path=SHOTS / f"{make.__name__}-{name}.png", full_page=True)) > 20_000


def device(page: Page, address: str) -> Any:
    return page.locator(".dev", has=page.locator(".dplace", has_text=address))


@every_host
@pytest.mark.parametrize(
    "name, options, widths",
    [
        ("desk", {"width": 1280}, (1280, 768)),
        ("dark", {"width": 1280, "color_scheme": "dark"}, (1280,)),
        ("phone", {"width": 390, "device_scale_factor": 2}, (390, 320)),
    ],
)
def test_each_host_can_be_read_on_each_screen(
    open_page: Opener, make: Any, name: str, options: dict[str, Any], widths: tuple[int, ...]
) -> None:
    page = open_page(page_of(make()), **options)
    picture_of(page, make, name)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    found = page.evaluate(CONTRAST)
    assert len(found) > 50
    assert [row for row in found if row["ratio"] < (ENOUGH_LARGE if row["large"] else ENOUGH)] == []
    for width in widths:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(SPILLS) == []
        assert min(page.evaluate(SIZES)) >= (9 if width == 320 else 10)


@every_host
def test_each_host_can_be_read_on_paper(open_page: Opener, make: Any) -> None:
    page = open_page(page_of(make()), width=PAPER)
    page.emulate_media(media="print")
    expect(page.locator(".topo")).to_be_visible()
    assert page.evaluate(SPILLS) == []
    picture_of(page, make, "paper")
    # Without background colours, as printers do by default.
    pages = len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4", print_background=False)))
    assert 1 <= pages <= 8


def test_each_device_tells_its_verdict_in_a_word_and_a_line(open_page: Opener) -> None:
    page = opened(open_page, hosts.hgx())
    words = page.locator(".dev .dverdict").all_inner_texts()
    assert len(words) == 27 and {word.strip() for word in words} == {"ok", "warning", "fault"}
    # The frame tells the worst of all, the wire that of the link.
    frames = [device(page, "0000:%s:00.0" % bus).evaluate("(e) => getComputedStyle(e).borderTopColor")
              for bus in ("4c", "db", "bb", "18")]  # fmt: skip
    assert frames[0] == frames[1] == frames[2] != frames[3]
    wire = "(e) => { const s = getComputedStyle(e, '::before'); return [s.borderTopStyle, s.borderTopColor]; }"
    bad, good = (device(page, address).evaluate(wire) for address in ("0000:bb:00.0", "0000:19:00.0"))
    assert bad[1] == page.evaluate("getComputedStyle(document.querySelector('.dev.s-failed .dverdict')).color")
    assert bad[1] != good[1] and bad[0] == good[0] == "solid"
    unknown = device(opened(open_page, hosts.lone_smi()), "0000:86:00.0")
    assert unknown.evaluate(wire)[0] == "dashed" and "unknown" in unknown.inner_text()


def test_gpu_nic_and_drive_are_below_their_switch(open_page: Opener) -> None:
    page = opened(open_page, hosts.hgx())
    switch = page.locator(".switch", has_text="0000:49:00.0")
    words = switch.inner_text()
    for text in ("GPU 2", "80 GiB", "H100 80GB HBM3", "NVLink 16 of 18 · inactive", "mlx5_2", "400 Gb/s", "nvme2n1"):
        assert text in words, text
    assert page.locator(".socket", has_text="Socket 0").locator(".switch").count() == 4


def test_a_wide_screen_has_the_switches_of_a_node_side_by_side(open_page: Opener) -> None:
    page = opened(open_page, hosts.hgx())
    tops = page.locator(".node").first.locator(".switch").evaluate_all("s => s.map(e => e.getBoundingClientRect().top)")
    assert len(tops) == 4 and len(set(tops)) == 1


def test_the_drawing_is_told_to_a_screen_reader(open_page: Opener) -> None:
    tree = opened(open_page, hosts.hgx()).locator(".topo").aria_snapshot()
    assert 'img "8 GPUs on 4 NVSwitches: NV18 and NV16 between them. GPU 0: 18 of 18' in tree
    assert 'rowheader "GPU 2 4c:00"' in tree and 'columnheader "GPU 7"' in tree and 'cell "NV16"' in tree
    assert 'heading "Socket 0' in tree and 'heading "NUMA node 1' in tree
    assert "GPU 2 fault" in tree and "NIC mlx5_0 ok" in tree
    tree = opened(open_page, hosts.workstation()).locator(".topo").aria_snapshot()
    assert "GPU 0 to GPU 1: NV4" in tree


def test_alike_findings_are_one_row_with_the_worst_on_top(open_page: Opener) -> None:
    page = opened(open_page, hosts.hgx())
    area = page.locator("section.area", has=page.get_by_role("heading", name="platform"))
    assert area.locator(".counts").inner_text().split("\n")[0].startswith("3 faults")
    titles = area.locator(".findings").first.locator("h5 > bdi").all_inner_texts()
    assert len(titles) == 10 and titles[:4] == ["link width", "NVLink inactive", "row remap pending", "persistence"]
    row = area.locator(".card", has_text="persistence").first
    assert row.locator(".subjects li").count() == 8 and "8 GPUs" in row.inner_text()
    assert "GPU 5" in area.locator(".card").first.inner_text()


def test_many_findings_stand_in_columns_on_a_wide_screen_only(open_page: Opener) -> None:
    for width, columns in ((1280, 3), (390, 1)):
        page = opened(open_page, hosts.hgx(), width=width)
        lefts = (
            page.locator(".dense .card")
            .first.locator(".part")
            .evaluate_all("parts => parts.map(e => e.getBoundingClientRect().left)")
        )
        assert len({round(left) for left in lefts}) == columns


def test_a_key_leads_to_the_drawing(open_page: Opener) -> None:
    page = open_page(page_of(hosts.hgx()))
    page.get_by_role("navigation", name="Parts of hgx-01").get_by_role("link", name="topology").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('.topo').getBoundingClientRect().top < 200")
    expect(page.locator("#host-hgx-01 > .body")).to_be_visible()


def test_a_lone_nvidia_smi_says_what_it_cannot_tell(open_page: Opener) -> None:
    page = opened(open_page, hosts.lone_smi())
    words = page.locator(".topo").inner_text()
    assert "was not captured" in words and "what joins them was not seen" in words
    assert page.locator(".dev").count() == 8 and page.locator(".socket").count() == 1
    assert "Power Brake" in page.locator(".card").first.inner_text()


def test_a_host_without_gpus_has_no_fabric(open_page: Opener) -> None:
    page = opened(open_page, hosts.no_gpu())
    assert page.locator(".fabricbox").count() == 0
    assert page.locator(".facts div", has_text="GPUs").inner_text().endswith("none")
