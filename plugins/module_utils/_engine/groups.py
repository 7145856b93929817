# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which steps stay or go together when one of them fails: what does not hang on it need not be undone.

Two steps belong together when one requires the other, when they act on the same thing, or when they are of the same
part (``Step.part``).  A step that names no part belongs to all of its area: a file that several things share, and the
reload that makes it known.

A value that the host took and that shows another one later is less than a refusal: the file that keeps it is as wanted, and the
other values are.  It takes along what it requires and what requires it, and no more.
"""

from __future__ import annotations

from typing import Callable, Sequence, Set

from .values import Step

Tie = Callable[[Step, Step], bool]


def belong_together(one: Step, other: Step) -> bool:
    """Whether two steps stay or go together when one was refused."""
    return _need(one, other) or not one.part or not other.part or one.part == other.part


def fail_with(steps: Sequence[Step], refused: Sequence[Step], set_back: Sequence[Step] = ()) -> Set[str]:
    """The ids of the steps that go with those that were refused, and with values that were taken and set back.

    :param steps: those that were to be done.
    """
    return _reach(steps, refused, belong_together) | _reach(steps, set_back, _need)


def _need(one: Step, other: Step) -> bool:
    return one.id in other.requires or other.id in one.requires or one.target == other.target


def _reach(steps: Sequence[Step], start: Sequence[Step], tie: Tie) -> Set[str]:
    """All steps that are tied to these, over any number of others."""
    found = {step.id for step in start}
    edge = list(start)
    while edge:
        new = [step for step in steps if step.id not in found and any(tie(step, other) for other in edge)]
        found.update(step.id for step in new)
        edge = new
    return found
