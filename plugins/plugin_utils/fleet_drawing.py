# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The parts of a host's drawing that are SVG: CPUs, memory, lanes, and how GPUs are joined.

All words in them are escaped here; all colours come from the page's style sheet.
"""

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

from markupsafe import Markup, escape

from . import fleet_fabric as fabric
from .fleet_fabric import Fabric
from .fleet_hardware import Device
from .fleet_links import ORDER
from .fleet_report import visible

# CPUs: squares in rows, so many a row.
CELL, GAP, PER_ROW = 9, 2, 32
PITCH = CELL + GAP
# As the dashes of .l-used and .l-free in the style sheet.
LANE, LANE_GAP = 5.75, 2.25
BAR = 96
# GPUs and what joins them.
WIDTH, BOX_W, BOX_H = 300, 90, 42
SWITCH_H, WIRE_H, BOX_GAP = 28, 24, 8
CORNERS = {
    2: ((0, 8), (1, 8)),
    3: ((0, 0), (1, 0), (0.5, 132)),
    4: ((0, 0), (1, 0), (0, 132), (1, 132)),
}


def cells(count: int, kind: str, colour: int = 0) -> Markup:
    """CPUs in rows: filled in a slice and hollow otherwise, so that they differ without any colour."""
    rows = [(row, min(PER_ROW, count - row * PER_ROW)) for row in range((count + PER_ROW - 1) // PER_ROW)]
    if kind == "slice":
        css = "c-slice%d" % (colour % 6)
        path = "".join("M0 %gh%d" % (row * PITCH + CELL / 2, many * PITCH - GAP) for row, many in rows)
    else:
        css = {"system": "c-system", "unknown": "c-unknown"}.get(kind, "c-free")
        square = "h8v8h-8z"
        path = "".join("M0.5 %g%s" % (row * PITCH + 0.5, ("m%d 0" % PITCH).join([square] * many)) for row, many in rows)
    width, height = min(count, PER_ROW) * PITCH - GAP, len(rows) * PITCH - GAP
    return Markup(
        '<svg class="cells" aria-hidden="true" viewBox="0 0 %d %d" width="%d" height="%d"><path class="%s" d="%s"/></svg>'
        % (width, height, width, height, css, path)
    )


def share_bar(share: Optional[float]) -> Markup:
    """A node's memory against that of the node with the most; dashed where it is not known."""
    css = "m-rail" if share is not None else "m-rail m-unknown"
    fill = ""
    if share:
        fill = '<rect class="m-fill" width="%g" height="6" rx="3"/>' % round(BAR * min(share, 1.0), 1)
    return Markup(
        '<svg class="mem" aria-hidden="true" width="%d" height="6"><rect class="%s" width="%d" height="6" rx="3"/>%s</svg>'
        % (BAR, css, BAR, fill)
    )


def lanes(used: int, most: int) -> Markup:
    """Lanes as ticks: tall those in use, low those that card or slot would have besides."""
    if not most:
        return Markup("")
    parts = []
    if used:
        parts.append('<path class="l-used" d="M0 4h%g"/>' % (used * LANE - LANE_GAP))
    if most > used:
        parts.append('<path class="l-free" d="M%g 4h%g"/>' % (used * LANE, (most - used) * LANE - LANE_GAP))
    width = most * LANE - LANE_GAP
    return Markup(
        '<svg class="lanes" aria-hidden="true" viewBox="0 0 %g 8" width="%g" height="8">%s</svg>'
        % (width, width, "".join(parts))
    )


# --- GPUs


def joined(found: Fabric) -> Markup:
    """GPUs on their switches, or with lines between them; nothing where words are enough."""
    if found.kind == "switch":
        return _on_switches(found)
    return _mesh(found) if found.kind == "mesh" else Markup("")


def _on_switches(found: Fabric) -> Markup:
    half = (len(found.gpus) + 1) // 2
    width = (WIDTH - BOX_GAP * (half - 1)) / half
    middle = BOX_H + WIRE_H
    parts = []
    for place, gpu in enumerate(found.gpus):
        is_below, x = place >= half, (place % half) * (width + BOX_GAP)
        y = middle + SWITCH_H + WIRE_H if is_below else 0
        start = middle + SWITCH_H if is_below else BOX_H
        parts.append(_wire(gpu, x + width / 2, start, start + WIRE_H))
        first, second = (gpu.label, fabric.wire_words(gpu)) if half <= 4 else _narrow(gpu)
        parts.append(_box(gpu, x, y, width, first, second))
    words = "%d NVSwitch%s" % (found.switches or 0, "" if found.switches == 1 else "es")
    parts.append('<rect class="fsw" x="0.75" y="%d" width="%g" height="%d" rx="6"/>' % (middle, WIDTH - 1.5, SWITCH_H))
    parts.append(_write(WIDTH / 2, middle + 18, words, "t-name"))
    height = middle + SWITCH_H + ((WIRE_H + BOX_H) if len(found.gpus) > half else 0)
    return _svg(found, height, parts)


def _narrow(gpu: Device) -> Tuple[str, str]:
    active = gpu.nvlink[0]
    return gpu.label.replace("GPU ", ""), "?" if active is None else "%d" % active


def _wire(gpu: Device, x: float, y: float, end: float) -> str:
    css = "fwire s-%s" % gpu.nvlink_verdict.state
    if not gpu.nvlink[0]:
        css += " w-unknown"
    return '<path class="%s" stroke-width="%g" d="M%g %gV%g"/>' % (css, _thick(gpu.nvlink[0] or 0), x, y, end)


def _thick(links: int) -> float:
    return 2 + min(links, 18) / 4


def _box(gpu: Device, x: float, y: float, width: float, first: str, second: str) -> str:
    state = gpu.nvlink_verdict.state
    is_odd = state in ("drifted", "failed")
    parts = [
        '<rect class="fbox%s" x="%g" y="%g" width="%g" height="%g" rx="6"/>'
        % (" fodd s-" + state if is_odd else "", x + 0.75, y + 0.75, width - 1.5, BOX_H - 1.5),
        # Beside the sign, where there is one.
        _write(x + width / 2 - (7 if is_odd else 0), y + 18, first, "t-name"),
        _write(x + width / 2, y + 32, second, "t-mono"),
    ]
    if is_odd:
        parts.append(
            '<use class="ico s-%s" href="#i-%s" x="%g" y="%g" width="12" height="12"/>'
            % (state, state, x + width - 16, y + 7)
        )
    return "".join(parts)


def _mesh(found: Fabric) -> Markup:
    places = [(x * (WIDTH - BOX_W), y) for x, y in CORNERS[len(found.gpus)]]
    lines: List[str] = []
    labels: List[str] = []
    for a, first in enumerate(places):
        for b, second in enumerate(places[a + 1 :], a + 1):
            _line(found, (a, b), first, second, lines, labels)
    boxes = [
        _box(gpu, x, y, BOX_W, gpu.label, fabric.short(gpu.address))
        for gpu, (x, y) in zip(found.gpus, places, strict=True)
    ]
    return _svg(found, int(max(y for _x, y in places)) + BOX_H + 8, [*lines, *labels, *boxes])


def _line(
    found: Fabric,
    pair: Tuple[int, int],
    first: Tuple[float, float],
    second: Tuple[float, float],
    lines: List[str],
    labels: List[str],
) -> None:
    """A line between two GPUs and its label, off the middle where lines cross."""
    kind = found.between(*pair)
    ends = [(x + BOX_W / 2, y + BOX_H / 2) for x, y in (first, second)]
    css, thick = "fline " + fabric.css(kind), 1.5
    if fabric.links_of(kind):
        states = [found.gpus[place].nvlink_verdict.state for place in pair]
        css, thick = css + " s-" + max(states, key=ORDER.index), _thick(fabric.links_of(kind))
    coordinates = (*ends[0], *ends[1])
    lines.append('<path class="%s" stroke-width="%g" d="M%g %gL%g %g"/>' % (css, thick, *coordinates))
    is_diagonal = ends[0][0] != ends[1][0] and ends[0][1] != ends[1][1] and len(found.gpus) == 4
    at = 0.36 if is_diagonal else 0.5
    x, y = (ends[0][i] + (ends[1][i] - ends[0][i]) * at for i in (0, 1))
    words = kind or "?"
    width = 8 * len(words) + 10
    labels.append('<rect class="flabel" x="%g" y="%g" width="%d" height="18" rx="9"/>' % (x - width / 2, y - 9, width))
    labels.append(_write(x, y + 4, words, "t-name"))


def _svg(found: Fabric, height: int, parts: Sequence[str]) -> Markup:
    return Markup(
        '<svg class="fabric" role="img" aria-label="%s" viewBox="0 0 %d %d" width="%d" height="%d">%s</svg>'
        % (escape(visible(found.spoken)), WIDTH, height, WIDTH, height, "".join(parts))
    )


def _write(x: float, y: float, words: str, css: str) -> str:
    return '<text x="%g" y="%g" class="%s">%s</text>' % (x, y, css, escape(visible(words)))
