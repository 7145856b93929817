# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page as text: what it holds, what it escapes, and how large it grows.  tests/page opens it."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import itertools
import json
import posixpath
import re
from collections.abc import Callable
from html import unescape as html_unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._areas.all import AREAS
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Finding, Report
from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_files, fleet_page
from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_report as fleet
from tests import fleet_sample as sample
from tests.page import hosts

SLOW = Finding("platform.link-slot", "warn", "0000:21:00.0", "x16", "x8", "half of its bandwidth", "move it", "PCIe")


class Page(HTMLParser):
    """The tags, attributes and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script":
            self.scripts.append(data)
        self.text += data


def pages(*documents: fleet.Document) -> dict[str, str]:
    return dict(fleet_page.pages(sample.run_of(list(documents)), list(documents)))


def page(*documents: fleet.Document) -> str:
    return pages(*documents)["report.html"]


def many(document: fleet.Document, count: int) -> list[fleet.Document]:
    return [{**document, "host": "%s %d" % (document["host"], number)} for number in range(count)]


def test_the_page_tells_the_whole_sample() -> None:
    text = Page(page(*sample.sample())).text
    for words in (
        "8 of 10",
        "rolled back",
        "No route to host",
        "LVM2_member, volume group vg_old",
        "allow it with xfs_storage_allow_risk: disruptive",
        "the firmware says numa_node = -1",
        "x16 card in a x8 slot",
        "mount -o remount,noatime /data",
        "Managed by gpufleet.host.io_scheduler",
    ):
        assert words in text, words


def test_worst_hosts_come_first() -> None:
    order = re.findall(r'<tr role="row" data-state="(\w+)"', page(*sample.sample()))
    assert order == [document["state"] for document in fleet.by_urgency(sample.sample())]


@pytest.mark.parametrize("count", [1, 3, 60])
def test_words_of_a_host_never_become_markup(count: int) -> None:
    made = pages(*many(sample.hostile(), count))
    assert len(made) == (61 if count == 60 else 1)
    for name, html in made.items():
        odd = Page(html)
        assert "img" not in {tag for tag, _attrs in odd.tags}
        scripts = [attrs.get("type") for tag, attrs in odd.tags if tag == "script"]
        own = [kind for kind in scripts if kind != "application/json"]
        assert own == ([None] if name == "report.html" else [])
        assert not [name for _tag, attrs in odd.tags for name in attrs if name.startswith("on") or name == "style"]
        assert not [attrs for tag, attrs in odd.tags if tag == "script" and attrs.get("src")]
        assert "\u202e" not in html


@given(st.text(), st.text())
def test_json_in_a_script_cannot_leave_it(key: str, value: str) -> None:
    text = str(fleet_page.json_for_script({key: value, "x": "</script><!--<script>"}))
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {key: value, "x": "</script><!--<script>"}


def test_the_policy_names_exactly_the_script_and_the_style_of_the_page() -> None:
    made = pages(*sample.fleet_of(200))
    one_host = next(html for name, html in made.items() if name.startswith("hosts/"))
    for html, has_script in ((page(*sample.sample()), True), (made["report.html"], True), (one_host, False)):
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
        assert policy is not None
        bodies = [("style", "style-src", re.findall("<style>(.*?)</style>", html, re.DOTALL))]
        bodies += [("script", "script-src", re.findall("<script>(.*?)</script>", html, re.DOTALL))]
        for tag, kind, found in bodies:
            assert len(found) == (tag == "style" or has_script)
            digests = ["'sha256-%s'" % base64.b64encode(hashlib.sha256(b.encode()).digest()).decode() for b in found]
            assert "%s %s;" % (kind, " ".join(digests) or "'none'") in policy[1]
        assert "default-src 'none'" in policy[1] and "unsafe" not in policy[1]


@pytest.mark.parametrize("documents", [sample.sample(), sample.fleet_of(200)], ids=["one page", "a page a host"])
def test_nothing_is_fetched_and_links_lead_to_what_is_there(documents: list[fleet.Document]) -> None:
    made = pages(*documents)
    files = {"%d.json" % number for number in range(len(documents))}
    for name, html in made.items():
        page = Page(html)
        ids = {attrs["id"] for _tag, attrs in page.tags if "id" in attrs}
        for tag, attrs in page.tags:
            for attribute in ("src", "href", "data", "poster", "srcset", "action"):
                target = attrs.get(attribute) or "#"
                if target.startswith("#") or target == "data:,":
                    assert target in ("#", "data:,") or target[1:] in ids or target.startswith(("#i-", "#h")), target
                    continue
                path = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(target)))
                assert tag == "a" and (path in made or path in files), target


def test_ids_are_unique_and_links_lead_somewhere() -> None:
    tags = Page(page(*sample.sample(), sample.hostile("<b>"), sample.hostile("<i>"))).tags
    ids = [attrs["id"] for _tag, attrs in tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    targets = {(attrs.get("href") or "")[1:] for _tag, attrs in tags if (attrs.get("href") or "").startswith("#")}
    assert targets <= set(ids)


def test_raw_json_is_the_document() -> None:
    document = sample.hostile()
    (raw,) = [script for script in Page(page(document)).scripts if script.startswith('{"format"')]
    assert json.loads(raw) == document


def test_the_hosts_of_a_small_fleet_stand_in_one_page_that_can_be_mailed() -> None:
    made = pages(*hosts.hgx_fleet(20))
    assert list(made) == ["report.html"]
    assert made["report.html"].count('class="body"') == 20


@pytest.mark.parametrize("make", [sample.fleet_of, hosts.hgx_fleet])
def test_a_page_stays_below_three_megabytes(make: Callable[[int], list[fleet.Document]]) -> None:
    """The largest fleet in one page, the smallest that is not, and a large one."""
    documents = fleet.by_urgency(make(200))
    details = (fleet_page._row(document, 100, {})["details"] for document in documents)
    raw = (fleet_page.json_for_script(document) for document in documents)
    sizes = itertools.accumulate(len(one) + len(other) for one, other in zip(details, raw, strict=True))
    fits = sum(1 for _size in itertools.takewhile(lambda size: size <= fleet_page.ONE_PAGE, sizes))
    for count, is_one in ((fits, True), (fits + 1, False), (200, False)):
        made = pages(*documents[:count])
        assert len(made) == (1 if is_one else count + 1)
        # The table grows with its hosts and nothing else: that of a thousand stays as far below.
        assert len(made["report.html"].encode()) < (3_000_000 if is_one else 600_000)


def test_each_host_of_a_large_fleet_has_the_page_that_it_would_have_alone() -> None:
    documents = sample.fleet_of(200)
    made = pages(*documents)
    assert list(made)[-1] == "report.html" and len(made) == 201
    alone = Page(page(next(d for d in documents if d["host"] == "gpu-033")))
    apart = Page(made["hosts/gpu-033.html"])
    for text in ("gpu-033", "Host report", "LVM2_member, volume group vg_old", "Topology"):
        assert text in apart.text and text in alone.text
    assert ("a", {"href": "../report.html"}) in apart.tags
    assert ("a", {"href": "../33.json"}) in apart.tags
    assert "What was found" in apart.text and "What ails most hosts" not in apart.text
    # One folder for all, and no name leads out of it.
    odd = pages(*many(sample.hostile("../../etc/" + sample.HOSTILE), 60))
    assert {name.count("/") for name in odd} == {0, 1} and not [name for name in odd if ".." in name]


def test_the_table_says_what_is_the_matter_with_each_host() -> None:
    html = page(*sample.sample())
    (row,) = re.findall('<tr role="row" data-state="blocked".*?</tr>', html, re.DOTALL)
    assert "a device with a signature is never formatted" in row
    warned = sample.document(
        "gpu-a08", platform=Report("compliant", findings=(SLOW, dataclasses.replace(SLOW, subject="x")))
    )
    row = re.findall('<tr role="row" data-state="compliant".*?</tr>', page(warned, *sample.sample()), re.DOTALL)[0]
    assert "gpu-a08" in row and "compliant<small><bdi>2 warnings" in row
    assert row.count("<small>2 warnings</small>") == 1


def test_the_columns_begin_with_the_gpus() -> None:
    (head,) = re.findall("<thead.*?</thead>", page(*sample.sample(), *hosts.hgx_fleet(2)), re.DOTALL)[:1]
    names = re.findall('scope="col">([^<]*)<', head)
    ours = ["platform", "kernel settings", "block queue", "xfs volumes", "numa slices", "mysql isolation"]
    # What no version of ours knows comes last.
    assert names[:-1] == ["Host", "State", *ours] and "img" in names[-1]
    known = [name.replace(" ", "_") for name in ours]
    assert known == list(AREAS) == list(fleet.AREA_ORDER[1:])


def test_what_ails_most_hosts_stands_above_the_table() -> None:
    html = page(*sample.fleet_of(300))
    assert html.index("What ails most hosts") < html.index('class="matrix"')
    (causes,) = re.findall('<section aria-labelledby="causes-h".*?</section>', html, re.DOTALL)
    rows = [" ".join(Page(row).text.split()) for row in re.findall("<li.*?</li>", causes, re.DOTALL)]
    assert len(rows) == fleet_page.MAX_CAUSES
    assert rows[0].startswith("holds changes back xfs volumes: has signature a device with a signature is never")
    assert rows[0].endswith("4 hosts: gpu-033, gpu-113, gpu-193, gpu-273")
    # Its button finds exactly these.
    key = html_unescape(re.findall('data-key="([^"]*)"', causes)[0]).lower()
    found = re.findall('data-find="([^"]*)"><th role="rowheader" scope="row"><a href="hosts/([^"]*).html"', html)
    assert [name for words, name in found if key in html_unescape(words)] == [
        "gpu-033",
        "gpu-113",
        "gpu-193",
        "gpu-273",
    ]
    assert "What ails most hosts" not in page(*sample.sample()[:3])


def test_an_order_is_not_counted_as_a_host() -> None:
    order = sample.document(
        "order PO-1", facts={"order": "PO-1"}, xfs_volumes=Report("blocked", findings=(sample.HAS_SIGNATURE,))
    )
    html = page(sample.document("gpu-a01"), sample.document("gpu-a02"), order)
    assert "All 2 hosts are as wanted." in Page(html).text
    assert html.count('<tr role="row" data-state') == 2
    (other,) = re.findall('<p class="other">.*?</p>', html)
    assert "order PO-1" in other and "never formatted" in other and html.count('class="body"') == 3


def test_a_flood_of_steps_and_a_huge_file_are_cut() -> None:
    document = sample.document("gpu01")
    step = {**sample.sample()[1]["areas"]["block_queue"]["steps"][0], "after": "x" * 100_000 + "\n" + "line\n" * 50_000}
    document["areas"]["block_queue"].update(state="drifted", steps=[step] * 1000)
    document["areas"]["block_queue"]["after"] = {"key%d" % n: "y" * 5000 for n in range(1000)}
    area = fleet_page.area_view("block queue", document["areas"]["block_queue"], {})
    assert len(area["steps"]) == fleet_page.MAX_ROWS
    assert area["left_out"] == 800
    assert len(area["steps"][0]["diff"]) <= fleet_page.MAX_DIFF_LINES + 1


def test_a_run_that_was_cut_off_says_so() -> None:
    documents = [sample.document("gpu01")]
    assert (
        "no recorded end" in dict(fleet_page.pages(sample.run_of(documents, finished=None), documents))["report.html"]
    )
    assert "no recorded end" not in page(*documents)


def test_no_host_at_all_is_a_page_too() -> None:
    assert "No host reported" in page()


def test_the_page_is_made_again_from_the_files(tmp_path: Path) -> None:
    documents = sample.sample()
    for document in documents:
        fleet_files.write_json(tmp_path / (fleet_files.safe_name(document["host"]) + ".json"), document)
    assert "8 of 10" in Page(dict(fleet_page.pages_of_folder(tmp_path))["report.html"]).text


# --- values and differences


@pytest.mark.parametrize(
    "data, html",
    [
        (None, '<span class="nil">nothing</span>'),
        ("", '<span class="nil">empty</span>'),
        (0, "<code><bdi>0</bdi></code>"),
        (False, "<code><bdi>false</bdi></code>"),
        (["a", 1], "<code><bdi>a, 1</bdi></code>"),
        ({"unknown": "hung <b>"}, '<span class="unk">unknown</span> <bdi>hung &lt;b&gt;</bdi>'),
        ("unknown", "<code><bdi>unknown</bdi></code>"),
    ],
)
def test_values_in_html(data: Any, html: str) -> None:
    assert str(fleet_page.value(data)) == html


def test_settings_are_compared_by_name_and_not_by_place() -> None:
    old = {"volumes": [{"name": "a", "x": 1}, {"name": "b", "x": 2}], "n": {"k": None}}
    new = {"volumes": [{"name": "b", "x": 3}, {"name": "a", "x": 1}], "n": {"k": {"unknown": "gone"}}}
    changed, same = fleet_page.compare(old, new)
    assert changed == [("volumes[b].x", 2, 3), ("n.k", None, {"unknown": "gone"})]
    assert ("volumes[a].x", 1) in same


def test_a_file_is_shown_by_the_lines_that_differ() -> None:
    assert fleet_page.file_diff("a\nb\n", "a\nc\n") == [(" ", "a"), ("-", "b"), ("+", "c")]
    assert fleet_page.file_diff(None, "a\n") == [("+", "a")]
    assert fleet_page.file_diff("same\n", "same\n") == []
