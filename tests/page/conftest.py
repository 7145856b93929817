# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real browser for the report page, and pages that notice what they should not do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
LINK = ROOT / ".cache/collections/ansible_collections/gpufleet/host"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# Quiet: no first-run pages, no updates, nothing on the network.
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

if not LINK.exists():
    LINK.parent.mkdir(parents=True, exist_ok=True)
    LINK.symlink_to(ROOT)

Opener = Callable[..., Page]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = os.environ.get("CHROMIUM") or next((p for p in map(shutil.which, BROWSERS) if p), None)
    assert path, "no Chromium found: apt-get install chromium, or name it in CHROMIUM"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Opener]:
    """Open a page; at the end of the test it must have complained of nothing and fetched nothing."""
    trouble: list[str] = []
    contexts = []

    def note(page: Page) -> None:
        page.on("console", lambda message: trouble.append("console: " + message.text))
        page.on("pageerror", lambda error: trouble.append("error: %s" % error))
        page.on("dialog", lambda dialog: (trouble.append("dialog: " + dialog.message), dialog.dismiss()))
        page.on(
            "request",
            lambda request: trouble.append("request: " + request.url) if not is_own(request.url) else None,
        )

    path = tmp_path / "report.html"

    def is_own(url: str) -> bool:
        """Only another page of the run, which somebody asked for."""
        return url.startswith("data:,") or (
            url.startswith(tmp_path.as_uri() + "/") and url.split("#")[0].endswith(".html")
        )

    def open_it(html: str | dict[str, str], width: int = 1280, height: int = 900, **options: Any) -> Page:
        for name, text in ({"report.html": html} if isinstance(html, str) else html).items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        # A name that runs as script would call it.
        context.add_init_script("window.flags = []; window.flag = (what) => window.flags.push(what);")
        page = context.new_page()
        note(page)
        page.goto(path.as_uri())
        return page

    yield open_it
    flags = [page.evaluate("window.flags || []") for context in contexts for page in context.pages]
    for context in contexts:
        context.close()
    assert trouble == []
    assert flags == [[]] * len(flags)
