# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages of a run over a thousand hosts: how large, how long to make, and how long a browser takes over them.

A thousand made-up hosts with eight GPUs each, one in ten of them with thirty findings. Nothing is installed and nothing of
the machine is changed, so this part runs by itself, too: make bench ARGS=--pages
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from lab.base import LabError, say
from tools.parts import COLLECTIONS, ROOT

HOSTS = 1000
REPEATS = 3
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# Quiet: no first-run pages, no updates, nothing on the network; root has no sandbox.
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
]
# What a key stroke takes until all is laid out again: words that fit none, one, a tenth, all, and the way back.
FILTER = """() => ["zebra", "hgx-123", "blocked", "hgx", ""].map((text) => {
  const find = document.getElementById("find"), start = performance.now();
  find.value = text; find.dispatchEvent(new Event("input")); document.body.offsetHeight;
  return (performance.now() - start) / 1000;
})"""


def measure(hosts: int = HOSTS) -> dict[str, Any]:
    """Megabytes of the fleet's page, CPU seconds for all pages, seconds to open that one and for a key stroke."""
    browser = _browser()
    say(f"the pages of {hosts} made-up hosts")
    with tempfile.TemporaryDirectory(prefix="gpufleet-pages-") as folder:
        page, render_s = _render(hosts, Path(folder))
        opened, strokes = _open(browser, page)
        return {
            "hosts": hosts,
            "mb": page.stat().st_size / 1e6,
            "render_s": render_s,
            "open_s": opened,
            "filter_s": strokes,
        }


def _render(hosts: int, folder: Path) -> tuple[Path, float]:
    link = COLLECTIONS / "ansible_collections/gpufleet/host"
    if not link.exists():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(ROOT)
    sys.path.insert(0, str(COLLECTIONS))
    from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_files, fleet_page
    from tests import fleet_sample
    from tests.page.hosts import hgx_fleet

    documents = hgx_fleet(hosts)
    run = fleet_sample.run_of(documents)
    # Of the processor and not of the wall: a busy disk or a neighbour is not what is measured.
    started = time.process_time()
    page = fleet_files.write_pages(folder, fleet_page.pages(run, documents))
    return page, time.process_time() - started


def _browser() -> str:
    path = os.environ.get("CHROMIUM") or next((found for found in map(shutil.which, BROWSERS) if found), None)
    if not path:
        raise LabError("no Chromium found", hint="apt-get install chromium, or name it in CHROMIUM")
    return path


def _open(browser: str, page: Path) -> tuple[list[float], list[float]]:
    """Seconds of each opening, and the slowest key stroke of each."""
    from playwright.sync_api import sync_playwright

    opened, strokes = [], []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=ARGS)
        for _repeat in range(REPEATS):
            tab = chromium.new_page(viewport={"width": 1440, "height": 900})
            started = time.monotonic()
            tab.goto(page.as_uri())
            # Not only loaded, but laid out.
            tab.evaluate("document.body.offsetHeight")
            opened.append(time.monotonic() - started)
            strokes.append(max(tab.evaluate(FILTER)))
            tab.close()
        chromium.close()
    say(f"  opened in {median(opened):.2f} s, a key stroke in the filter takes {median(strokes) * 1000:.0f} ms")
    return opened, strokes
