# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Half the work of starting: Python compiles each file of a zip twice, and a module travels as a zip.

``zipimport`` compiles to answer ``get_filename`` while a module is found, and again for ``get_code`` when it is
loaded, one after the other.  For all areas that is a fifth of the CPU time of an audit.
"""

from __future__ import annotations

import functools
import zipimport


def compile_once() -> None:
    """Let the second compilation of a file take the result of the first; a Python that has it otherwise is left alone."""
    compiler = getattr(zipimport, "_compile_source", None)
    if callable(compiler) and not hasattr(compiler, "cache_info"):
        # The last two are enough: nothing is compiled between the two calls.
        setattr(zipimport, "_compile_source", functools.lru_cache(maxsize=2)(compiler))  # noqa: B010
