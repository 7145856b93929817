# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The signs of the report page, drawn once: as SVG symbols, and as masks for cells of the table.

A table of a thousand hosts has some ten thousand signs: an SVG element for each took a browser seconds, a mask in the
style sheet takes no element at all.
"""

from __future__ import annotations

import functools
from urllib.parse import quote

from markupsafe import Markup

# Lines (st), filled shapes (fi), and what is cut out of these (cut): each state has a shape of its own.
ICONS = {
    "compliant": '<circle cx="8" cy="8" r="6.75" class="st"/><path class="st" d="M5 8.2 7.2 10.4 11 6"/>',
    "changed": '<circle cx="8" cy="8" r="7.5" class="fi"/><path class="cut" d="M4.8 8.2 7.1 10.5 11.2 5.8"/>',
    "pending_reboot": '<circle cx="8" cy="8" r="6.75" class="st"/><path class="st" d="M8 4.2V8.3l2.8 1.7"/>',
    "drifted": '<path class="st" d="M8 2 14.6 13.8H1.4Z"/><path class="st" d="M8 6.4v3.4M8 11.6v.2"/>',
    "unknown": '<circle cx="8" cy="8" r="6.75" class="st dash"/>'
    '<path class="st" d="M6 6.4C6 4.4 10 4.4 10 6.5 10 7.9 8 7.9 8 9.4M8 11.4v.2"/>',
    "blocked": '<path class="fi" d="M5 .8h6L15.2 5v6L11 15.2H5L.8 11V5Z"/><path class="cut" d="M4.4 8h7.2"/>',
    "rolled_back": '<path class="st" d="M4.6 2.6 1.8 5.4 4.6 8.2M2.2 5.4H10a4 4 0 0 1 0 8.2H5"/>',
    "failed": '<rect x=".8" y=".8" width="14.4" height="14.4" rx="2" class="fi"/>'
    '<path class="cut" d="M5 5l6 6M11 5l-6 6"/>',
    "info": '<circle cx="8" cy="8" r="6.75" class="st"/><path class="st" d="M8 7.4v4M8 4.6v.2"/>',
    "none": '<path class="st" d="M5 8h6"/>',
    "up": '<circle cx="8" cy="8" r="4.5" class="fi"/>',
    "down": '<circle cx="8" cy="8" r="4" class="st"/>',
}
# Of a mask, what is bright stays.
_MASK = (
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><style>"
    ".st{fill:none;stroke:#fff;stroke-width:1.5;stroke-linecap:round;stroke-linejoin:round}"
    ".dash{stroke-dasharray:2.6 2.4}.fi{fill:#fff}"
    ".cut{fill:none;stroke:#000;stroke-width:1.9;stroke-linecap:round;stroke-linejoin:round}"
    "</style>%s</svg>"
)


@functools.cache
def symbols() -> Markup:
    """For ``<use href="#i-STATE"/>``, once a page."""
    return Markup(
        "".join('<symbol id="i-%s" viewBox="0 0 16 16">%s</symbol>\n' % (name, body) for name, body in ICONS.items())
    )


@functools.cache
def masks() -> str:
    """A rule for each sign of the table's cells."""
    rule = '.matrix .s-%s { --sign: url("data:image/svg+xml,%s"); }\n'
    drawn = {name: _MASK % body.replace('"', "'") for name, body in ICONS.items()}
    return "".join(rule % (name, quote(mask, safe="/=:;.,{}' ")) for name, mask in drawn.items())
