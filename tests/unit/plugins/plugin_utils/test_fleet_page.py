# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page as text: what it holds, what it escapes, and how large it grows.  tests/page opens it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_files, fleet_page
from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_report as fleet
from tests import fleet_sample as sample


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


def page(*documents: fleet.Document) -> str:
    return fleet_page.render(sample.run_of(list(documents)), list(documents))


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


@pytest.mark.parametrize("count", [1, fleet_page.LAZY_FROM])
def test_words_of_a_host_never_become_markup(count: int) -> None:
    odd = Page(page(*many(sample.hostile(), count)))
    assert "img" not in {tag for tag, _attrs in odd.tags}
    scripts = [attrs.get("type") for tag, attrs in odd.tags if tag == "script"]
    assert [kind for kind in scripts if kind != "application/json"] == [None]
    assert not [name for _tag, attrs in odd.tags for name in attrs if name.startswith("on") or name == "style"]
    assert not [attrs for tag, attrs in odd.tags if tag == "script" and attrs.get("src")]
    assert "\u202e" not in page(*many(sample.hostile(), count))


@given(st.text(), st.text())
def test_json_in_a_script_cannot_leave_it(key: str, value: str) -> None:
    text = str(fleet_page.json_for_script({key: value, "x": "</script><!--<script>"}))
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {key: value, "x": "</script><!--<script>"}


def test_the_policy_names_exactly_the_script_and_the_style_of_the_page() -> None:
    html = page(*sample.sample())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    for tag, kind in (("style", "style-src"), ("script", "script-src")):
        (body,) = re.findall("<%s>(.*?)</%s>" % (tag, tag), html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert "%s 'sha256-%s'" % (kind, digest) in policy[1]
    assert "default-src 'none'" in policy[1] and "unsafe" not in policy[1]


def test_nothing_is_fetched() -> None:
    for tag, attrs in Page(page(*sample.sample())).tags:
        for name in ("src", "href", "data", "poster", "srcset", "action"):
            target = attrs.get(name) or "#"
            assert target.startswith(("#", "data:,")) or (tag == "a" and re.fullmatch(r"[\w.-]+\.json", target)), target


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


def test_a_large_fleet_stays_small() -> None:
    html = page(*sample.fleet_of(500))
    assert len(html.encode()) < 15_000_000
    assert html.count('class="kept"') == 500


def test_what_is_beyond_the_budget_is_left_to_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_page, "DETAILS_BUDGET", 60_000)
    monkeypatch.setattr(fleet_page, "RAW_BUDGET", 20_000)
    html = page(*sample.sample())
    assert "This page would be too large" in html
    # The worst come first, so the details of what is in order are the ones that go.
    assert html.index("12Q") < html.index("This page would be too large")


def test_a_flood_of_steps_and_a_huge_file_are_cut() -> None:
    document = sample.document("gpu01")
    step = {**sample.sample()[1]["areas"]["block_queue"]["steps"][0], "after": "x" * 100_000 + "\n" + "line\n" * 50_000}
    document["areas"]["block_queue"].update(state="drifted", steps=[step] * 1000)
    document["areas"]["block_queue"]["after"] = {"key%d" % n: "y" * 5000 for n in range(1000)}
    details = fleet_page.host_view(document, 0, {})
    assert len(details["areas"][0]["steps"]) == fleet_page.MAX_ROWS
    assert details["areas"][0]["left_out"] == 800
    assert len(details["areas"][0]["steps"][0]["diff"]) <= fleet_page.MAX_DIFF_LINES + 1


def test_a_run_that_was_cut_off_says_so() -> None:
    documents = [sample.document("gpu01")]
    assert "no recorded end" in fleet_page.render(sample.run_of(documents, finished=None), documents)
    assert "no recorded end" not in page(*documents)


def test_no_host_at_all_is_a_page_too() -> None:
    assert "No host reported" in page()


def test_the_page_is_made_again_from_the_files(tmp_path: Path) -> None:
    documents = sample.sample()
    for document in documents:
        fleet_files.write_json(tmp_path / (fleet_files.safe_name(document["host"]) + ".json"), document)
    assert "8 of 10" in Page(fleet_page.render_folder(tmp_path)).text


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


@given(st.text(), st.text())
def test_folded_details_are_what_they_were(text: str, attribute: str) -> None:
    env = fleet_page._environment()
    html = env.from_string('<p class="{{ a }}"><b>{{ t }}</b> x<svg><use href="#i"/></svg></p>').render(
        t=text, a=attribute
    )
    (paragraph,) = fleet_page.fold(html)
    shown, titled = fleet.visible(text), fleet.visible(attribute)
    bold = ["b", {}] + ([shown] if shown.strip() else [])
    assert paragraph == ["p", {"class": titled}, bold, " x", ["svg", {}, ["use", {"href": "#i"}]]]
