# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a playbook of this collection refuses on the controller, before any host is touched.

All of it is about the command line and the inventory as a whole; what is about the variables of one host is refused by
the tasks themselves (controller_door).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.inventory.manager import InventoryManager

from ansible_collections.gpufleet.host.plugins.module_utils._areas.all import AREAS
from ansible_collections.gpufleet.host.plugins.module_utils._engine.want_slips import did_you_mean

ROOT = Path(__file__).resolve().parents[2]
COLLECTION = "gpufleet.host."
# https://docs.ansible.com/ansible/latest/playbook_guide/playbooks_tags.html: names with a meaning of their own.
TAGS_OF_ANSIBLE = ("all", "tagged", "untagged", "always", "never")
SHOWN_GROUPS = 12


def are_ours(playbooks: Iterable[Any]) -> bool:
    """Whether all playbooks of a command line are of this collection, by name or by file."""
    return all(_is_ours(str(playbook)) for playbook in playbooks)


def _is_ours(playbook: str) -> bool:
    file = Path(playbook)
    if not file.exists():
        return playbook.startswith(COLLECTION)
    return file.resolve().parent == ROOT / "playbooks" or file.resolve() == ROOT / "site.yml"


def tags_of_areas() -> dict[str, str]:
    """Each tag that chooses an area, with the area: an area goes by its own and its role's name."""
    return {tag: area.name for area in AREAS.values() for tag in (area.role, area.name)}


def refuse_tags(run: Iterable[str], skip: Iterable[str], instead: str = "") -> None:
    """Raise ValueError for a tag that chooses nothing here.

    :param instead: what is used instead of tags, for a playbook that has none for areas.
    """
    for option, tags in (("--tags", run), ("--skip-tags", skip)):
        for tag in tags:
            if tag in TAGS_OF_ANSIBLE or (tag in tags_of_areas() and not instead):
                continue
            if instead:
                raise ValueError(
                    "%s %s: this playbook has no tags for areas; allowed: %s. Nothing was changed."
                    % (option, tag, instead)
                )
            raise ValueError(
                "%s %s: no area or role of gpufleet.host%s allowed: %s, and Ansible's own %s. Nothing was changed."
                % (option, tag, did_you_mean(tag, tags_of_areas()), _words_of_areas(), ", ".join(TAGS_OF_ANSIBLE))
            )


def _words_of_areas() -> str:
    return ", ".join(
        area.name if area.name == area.role else "%s or %s" % (area.role, area.name) for area in AREAS.values()
    )


def refuse_nobody(pattern: Any, limit: Any, groups: Mapping[str, Collection[str]], loader: Any) -> None:
    """Raise ValueError for a host pattern that means no host, alone or together with ``--limit``."""
    inventory = _inventory(groups, loader)
    meant = _matched(inventory, pattern)
    if not meant:
        names = sorted(set(groups) - {"all", "ungrouped"})
        raise ValueError(
            "gpufleet_hosts: %s matches no host of the inventory%s allowed: %s. Nothing was changed."
            % (_shown(pattern), did_you_mean(_shown(pattern), names), _groups(names) if names else _NO_INVENTORY)
        )
    inventory.subset(limit)
    if not _matched(inventory, pattern):
        raise ValueError(
            "--limit %s: names none of the hosts of %s, which are %d; allowed: hosts or groups of these. "
            "Nothing was changed." % (limit, _shown(pattern), len(meant))
        )


def _matched(inventory: InventoryManager, pattern: Any) -> list[Any]:
    try:
        return list(inventory.get_hosts(pattern))
    except AnsibleError:
        # What ansible.cfg may make of a pattern without a host ([inventory] host_pattern_mismatch = error).
        return []


_NO_INVENTORY = "hosts of an inventory, and this one is empty: name yours with -i"


def _shown(pattern: Any) -> str:
    return ":".join(str(part) for part in pattern) if isinstance(pattern, (list, tuple)) else str(pattern)


def _groups(names: list[str]) -> str:
    more = len(names) - SHOWN_GROUPS
    return "its groups %s%s" % (", ".join(names[:SHOWN_GROUPS]), " and %d more" % more if more > 0 else "")


def _inventory(groups: Mapping[str, Collection[str]], loader: Any) -> InventoryManager:
    """The inventory of the run once more, for Ansible itself to match patterns against."""
    inventory = InventoryManager(loader=loader, sources=None, parse=False)
    for group, hosts in groups.items():
        name = inventory.add_group(group)
        for host in hosts:
            inventory.add_host(host, name)
    return inventory
