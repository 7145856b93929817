# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pages of an acceptance in a real browser: on a phone, in the dark, on paper, with hostile names.

Every test also fails when a page logs, fetches, or runs anything of a host or an order (see conftest.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from ansible_collections.gpufleet.host.plugins.plugin_utils import order_page
from ansible_collections.gpufleet.host.plugins.plugin_utils.order import Order, read_order
from ansible_collections.gpufleet.host.plugins.plugin_utils.order_lot import Rules, Seen, judge_lot
from tests import fleet_sample
from tests import order_sample as sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    Opener = Callable[..., Page]

# WCAG 2.2, 1.4.3: contrast of text, and of large or bold text.
ENOUGH, ENOUGH_LARGE = 4.5, 3.0
CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = (text) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    const d = canvas.getImageData(0, 0, 1, 1).data; return [d[0], d[1], d[2], d[3] / 255];
  };
  const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const light = (c) => [0.2126, 0.7152, 0.0722].reduce((sum, f, i) => {
    const s = c[i] / 255; return sum + f * (s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4);
  }, 0);
  const ground = (e) => {
    const layers = [];
    for (let at = e; at; at = at.parentElement) {
      layers.push(rgba(getComputedStyle(at).backgroundColor));
      if (layers[layers.length - 1][3] === 1) break;
    }
    return layers.reduceRight((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.nodeValue.trim() || e.closest(".vh, .sprite") || !e.checkVisibility()) continue;
    const style = getComputedStyle(e), back = ground(e), front = over(rgba(style.color), back);
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x), size = parseFloat(style.fontSize);
    found.push({ratio: (a + 0.05) / (b + 0.05), large: size >= 24 || (size >= 18.66 && style.fontWeight >= 700),
                text: walker.currentNode.nodeValue.trim().slice(0, 40)});
  }
  return found;
}"""
LONG = "SYS-" + "821GE-TNHR-" * 18
MARKUP = fleet_sample.MARKUP


def faulty() -> dict[str, Any]:
    """A host with something of each verdict."""
    change = {
        "gpus[3].pci_id": "10de:20f3",
        "gpus[3].subsystem_id": "",
        "gpus[3].name": "NVIDIA A800-SXM4-80GB",
        "gpus[3].memory_mib": 81920,
        "gpus[3].nvlink_active": 8,
        "gpus[4].memory_mib": 77800,
        "gpus[6].width": 8,
        "nics[12]": {"address": "0000:70:00.0", "pci_id": "14e4:1750"},
        "psus": None,
    }
    facts: dict[str, Any] = sample.changed(sample.hardware(3), change)
    return facts


def pages(seen: list[Seen], rules: Rules | None = None, order: Order | None = None) -> dict[str, str]:
    lot = judge_lot(order or sample.example(), seen, rules or Rules())
    return order_page.render(lot, rules or Rules(), {"Order": "orders/h100.yml", "SHA-256 of the order": "ab" * 32})


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    seen = sample.lot()
    findings = [sample.NARROW, dict(sample.NARROW, id="platform.power-limit", level="warn", why="below its default")]
    seen[2] = Seen("gpu-a03", sample.report("gpu-a03", faulty(), findings), "", "captures/gpu-a03.tar.gz", "cd" * 32)
    seen[4] = Seen("gpu-a05", None, "No route to host")
    seen[5] = Seen("storage01", sample.report("storage01", sample.hardware(6)))
    return pages(seen)


HOST, LOT = "gpu-a03.example.com.html", "lot.html"


def test_a_host_page_says_what_is_not_as_ordered_and_who_says_so(open_page: Opener, made: dict[str, str]) -> None:
    page = open_page(made[HOST])
    assert page.get_by_role("heading", level=1).inner_text() == "gpu-a03.example.com"
    assert page.locator(".lead strong").inner_text() == "Not as ordered."
    reasons = page.locator(".reasons").inner_text()
    assert "PCI id says A800-SXM4-80GB: 8 of 12 links, memory equal" in reasons
    assert "and 2 more lines like it" in reasons and "they could not be seen" in reasons
    row = page.get_by_role("row", name="GPUs: model")
    assert "PCI id 10de:20f3" in row.inner_text() and "7 × H100 80GB HBM3, 1 × A800-SXM4-80GB" in row.inner_text()
    assert "different" in row.inner_text()
    assert page.get_by_text("1650923003003").is_visible()
    assert "below its default" in page.locator(".notes").inner_text()
    about = page.locator("section[aria-labelledby=about]").inner_text()
    assert "captures/gpu-a03.tar.gz" in about and "cd" * 32 in about and "2026-01-31 12:00 UTC" in about


def test_a_host_as_ordered_has_nothing_to_tell(open_page: Opener, made: dict[str, str]) -> None:
    page = open_page(made["gpu-a01.example.com.html"])
    assert page.locator(".lead strong").inner_text() == "As ordered."
    assert page.locator(".reasons").count() == 0
    assert set(page.locator(".lines .verdict").all_inner_texts()) == {"as ordered"}


def test_the_lot_page_has_each_host_and_what_the_lot_lacks(open_page: Opener, made: dict[str, str]) -> None:
    page = open_page(made[LOT])
    assert page.get_by_role("heading", level=1).inner_text() == "Order PO-2026-0117"
    rows = page.locator("section[aria-labelledby=hosts] tbody tr")
    assert rows.count() == 8
    words = {row.split("\n")[0].split("\t")[0]: row for row in rows.all_inner_texts()}
    assert (
        "Not seen to be as ordered" in words["gpu-a05.example.com"]
        and "No route to host" in words["gpu-a05.example.com"]
    )
    assert "As ordered" in words["gpu-a01.example.com"]
    links = page.get_by_role("link", name="gpu-a03.example.com").all()
    assert {link.get_attribute("href") for link in links} == {"gpu-a03.example.com.html"}
    assert "not seen: gpu-a06.example.com" in page.locator(".reasons").inner_text()
    assert "seen, but not ordered: storage01" in page.locator(".reasons").inner_text()


def test_the_lot_page_names_the_worst_host_first(open_page: Opener, made: dict[str, str]) -> None:
    page = open_page(made[LOT])
    lead = page.locator(".lead").inner_text().strip()
    assert lead.startswith("Not as ordered. Worst: gpu-a03.example.com (GPUs: model). 5 of 8 hosts looked at")
    names = page.locator("section[aria-labelledby=hosts] tbody th").all_inner_texts()
    assert names[:3] == ["gpu-a03.example.com", "gpu-a05.example.com", "storage01"]
    assert names[3:] == ["gpu-a0%d.example.com" % number for number in (1, 2, 4, 7, 8)]
    first = " ".join(page.locator(".reasons li").first.inner_text().split())
    assert "gpu-a03.example.com and 6 more of this host" in first and "PCI id says A800-SXM4-80GB" in first


def test_what_was_accepted_by_choice_says_so(open_page: Opener) -> None:
    seen = [Seen("gpu-a01", sample.report("gpu-a01", dict(sample.hardware(), psus=None)))]
    made = pages(seen, Rules(unknown_is="accept", unseen_is="accept"))
    page = open_page(made["gpu-a01.example.com.html"])
    assert page.locator(".lead strong").inner_text() == "Accepted with exceptions."
    assert page.get_by_text("accepted by choice", exact=True).count() == 3
    assert "what could not be seen, hosts not looked at" in page.locator(".facts").last.inner_text()


@pytest.mark.parametrize("name", [HOST, LOT])
@pytest.mark.parametrize("width", [320, 360, 768])
def test_nothing_runs_out_of_a_narrow_screen(open_page: Opener, made: dict[str, str], name: str, width: int) -> None:
    page = open_page(made[name], width=width, height=740)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", [HOST, LOT])
def test_tables_are_tables_for_a_screen_reader_also_on_a_phone(
    open_page: Opener, made: dict[str, str], name: str
) -> None:
    for width in (1280, 360):
        tree = open_page(made[name], width=width).locator("main").aria_snapshot()
        assert 'columnheader "Verdict"' in tree and "rowheader" in tree and "cell" in tree, tree


@pytest.mark.parametrize("name", [HOST, LOT])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_is_enough(open_page: Opener, made: dict[str, str], name: str, scheme: Any) -> None:
    page = open_page(made[name], color_scheme=scheme)
    found = page.evaluate(CONTRAST)
    assert len(found) > 50
    assert [row for row in found if row["ratio"] < (ENOUGH_LARGE if row["large"] else ENOUGH)] == []
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(16, 19, 22)"
    assert dark == (scheme == "dark")


def test_verdicts_are_told_apart_without_colour(open_page: Opener, made: dict[str, str]) -> None:
    page = open_page(made[HOST])
    verdicts = page.locator(".lines .verdict")
    icons = verdicts.locator("use").evaluate_all("u => u.map(x => x.getAttribute('href'))")
    pairs = set(zip(verdicts.all_inner_texts(), icons, strict=True))
    assert len(pairs) == len({words for words, _icon in pairs}) == len({icon for _words, icon in pairs}) == 5


@pytest.mark.parametrize("name", [HOST, LOT])
def test_paper_holds_it_all(open_page: Opener, made: dict[str, str], name: str) -> None:
    # As wide as A4 between its margins, at 96 dots an inch.
    page = open_page(made[name], width=702, height=1000)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 702, "height": 1000})
    expect(page.get_by_text("For the buyer")).to_be_visible()
    assert page.locator(".lines thead").first.evaluate("e => getComputedStyle(e).display") == "table-header-group"
    assert page.locator(".lines thead").first.evaluate("e => e.getBoundingClientRect().width") > 500
    outside = page.evaluate(
        """() => [...document.querySelectorAll('main td, main th, main p, main dd, main h2')]
        .filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1).map((e) => e.outerHTML.slice(0, 120))"""
    )
    assert outside == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 702
    assert len(page.pdf(format="A4")) > 10_000


def test_a_hostile_host_and_a_hostile_order_are_only_text(open_page: Opener) -> None:
    facts = sample.changed(
        sample.hardware(),
        {
            "gpus[*].name": MARKUP,
            "gpus[*].serial": sample.HOSTILE,
            "nvme[*].model": sample.HOSTILE,
            "dimms[*].part": MARKUP,
            "system.product": MARKUP,
            "bios.version": MARKUP,
        },
    )
    finding = dict(sample.NARROW, subject=MARKUP, why=sample.HOSTILE, fix=MARKUP)
    seen = [
        Seen(sample.HOSTILE, sample.report(sample.HOSTILE, facts, [finding, dict(finding, level="warn")]), "", MARKUP)
    ]
    order = read_order(
        'order: "%s"\nclasses: {c: {gpus: [{count: 8, model: "%s"}]}}' % (sample.HOSTILE, sample.HOSTILE), "x"
    )
    order = replace(order, vendor=MARKUP, note=sample.HOSTILE)
    for text in pages(seen, Rules(class_name="c"), order).values():
        page = open_page(text)
        assert page.locator("main img, main script, body script, main [onload], main [onerror]").count() == 0
        assert sample.HOSTILE in page.get_by_role("heading", level=1).inner_text()
        # Characters that would turn the text around are written out.
        assert "\u202e" not in page.locator("body").inner_text()


def test_long_names_stay_where_they_are(open_page: Opener) -> None:
    change = {"gpus[0].name": LONG, "system.product": LONG, "nvme[0].model": LONG, "nics[0].firmware": LONG}
    name = "gpu-" + "a" * 150
    seen = [Seen(name, sample.report(name, sample.changed(sample.hardware(), change)), "", "/captures/" + LONG)]
    for text in pages(seen, Rules(class_name="hgx_h100")).values():
        for width in (320, 1280):
            assert open_page(text, width=width).evaluate("document.documentElement.scrollWidth") <= width


def test_pages_run_nothing_and_fetch_nothing(made: dict[str, str]) -> None:
    for text in made.values():
        assert "<script" not in text and "http" not in text.split("<style>")[0].replace("http-equiv", "")
        assert "default-src 'none'" in text
