# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever a host says ends as plain YAML: valid, of the roles' variables only, and without Jinja that would be rendered."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.plugin_utils import adopted

JINJA = st.sampled_from(
    ["{{ x }}", "{% x %}", "{# x", "a", "\n", '"', "'", "!unsafe ", "\x1b", "\u202e", "# ", "{", "{}"]
)
TEXTS = st.lists(st.one_of(JINJA, st.text()), max_size=4).map("".join)
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(), st.none(), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
OPTIONS = st.sampled_from(["sysctls", "cmdline", "module_options", "transparent_huge_pages", "x", "{{ x }}"])


class Loader(yaml.SafeLoader):
    """As Ansible's: what is unsafe is marked, so that the rest can be looked at."""


Loader.add_constructor("!unsafe", lambda self, node: "UNSAFE")


@given(before=st.dictionaries(OPTIONS, VALUES, max_size=4))
def test_anything(before: dict[str, Any]) -> None:
    text = adopted.inventory({"areas": {"kernel_settings": {"before": before}}})
    values = yaml.load(text, Loader)
    assert set(values) <= {"kernel_" + name for name in adopted.AREAS["kernel_settings"].spec}
    assert not adopted.JINJA.search(str(values).replace("{'", "'"))
    body = [line for line in text.split("\n") if not line.startswith("# ")]
    assert all(re.match(r"$|\{\}|kernel_\w+:| ", line) for line in body), "no line of the host's own"


@pytest.mark.parametrize("text", ["{{ x }}", "a {% x %}", "{# x #}"])
def test_jinja_is_kept_to_the_letter_and_marked(text: str) -> None:
    report = {"areas": {"kernel_settings": {"before": {"sysctls": {"kernel.core_pattern": text}}}}}
    assert '!unsafe "%s"' % text in adopted.inventory(report)
