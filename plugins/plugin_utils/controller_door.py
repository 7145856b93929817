# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection's modules do on the controller: refuse wants that cannot be, before any host is touched.

The action plugins of these modules are this class under the name of the module.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.plugins.loader import connection_loader

from ansible_collections.gpufleet.host.plugins.module_utils._areas.all import AREAS
from ansible_collections.gpufleet.host.plugins.module_utils._areas.tuning import AREAS as TUNING
from ansible_collections.gpufleet.host.plugins.module_utils._engine.door import COMMON_SPEC, bad_want_message
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import RISKS, STATES, BadWant, readable
from ansible_collections.gpufleet.host.plugins.module_utils._engine.want_slips import did_you_mean
from ansible_collections.gpufleet.host.plugins.module_utils._engine.whole import asked, valid_want
from ansible_collections.gpufleet.host.plugins.plugin_utils import cut_off
from ansible_collections.gpufleet.host.plugins.plugin_utils.before_hosts import tags_of_areas

ROOT = Path(__file__).resolve().parents[2]
ROLES = ROOT / "roles"
# Variables of others may begin as ours do (kernel_version), so only what looks like a slip is refused.
CLOSENESS = 0.85
# The variables of the playbooks all begin so; what is close there is judged by the rest, which is a word or two.
OF_PLAYBOOKS = "gpufleet_"
CLOSENESS_OF_A_WORD = 0.7
AUDITS = ("node_audit", "node_audit_tuning")
# Tags of Ansible's own that mean each task that has tags, as all of ours have.
EVERYTHING = {"all", "tagged"}
BAD_STATES = tuple(state for state in STATES if state != "compliant")
NOTHING_LEFT = "no area is left by the tags and by gpufleet_skip_areas"
# What gpufleet_profile may say; each role has its values in vars/main.yml.
PROFILES = ("training",)


class ActionModule(ActionBase):
    _is_cut_off = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        name = self._task.action.rsplit(".", 1)[-1]
        args = dict(self._task.args)
        if name != "node_capture":
            # The journal on the host calls the run what the artifacts call it, so that people can name it to revert.
            args["run"] = args.get("run") or os.environ.get("GPUFLEET_JOURNAL_RUN", "")
        if name in AREAS:
            args = asked(args)
        try:
            refuse_slips(variables)
            refuse_profile(self._given("gpufleet_profile", variables))
            args.update(self._checked(name, args, variables))
            limit_s = cut_off.seconds_for(name, self._task.check_mode, self._given(cut_off.VARIABLE, variables))
        except ValueError as error:
            return dict(result, failed=True, msg=str(error))
        if name in AUDITS and args["areas"] == []:
            # The tags of the run are for other plays: nothing was asked of this one, so no host is touched for it.
            return dict(result, skipped=True, state="compliant", to_apply=[], summary="", msg=NOTHING_LEFT)
        if args.get("capture"):
            args["capture"] = where_people_are(str(args["capture"]))
            # A capture lies here, whatever the inventory says of the host that stands for it, and is read without privileges.
            self._connection = connection_loader.get("ansible.builtin.local", self._play_context)
            task_vars = {**variables, "ansible_python_interpreter": sys.executable}
        module = smallest_form(name, args.get("areas") or [], self._task.action)
        result.update(said_of(self._answer(module, name, args, task_vars, limit_s)))
        if "report" in result and not args.get("capture"):
            # The inventory's name is what people know a host by; its own name is among the facts.
            result["report"]["host"] = variables.get("inventory_hostname", result["report"]["host"])
        is_of_areas = "report" in result and bool(result["report"]["areas"]) and not self._is_cut_off
        if is_of_areas and variables.get("__gpufleet_defer_failures"):
            # playbooks/site.yml ends each host with an audit that fails; until then the other areas do their work. The
            # report tells each finding once, so the areas on the way to it do not.
            result.update(failed=False, warnings=[])
        return result

    def _answer(
        self, module: str, name: str, args: dict[str, Any], task_vars: dict[str, Any] | None, limit_s: float
    ) -> dict[str, Any]:
        """What the module gave back; where it gave nothing, what is to be said of that."""
        # A timeout of the task's own goes before ours, and both take the one alarm that a process has.
        limit_s = 0 if self._task.timeout else limit_s
        is_sent = True
        try:
            with cut_off.deadline(limit_s):
                found: dict[str, Any] = self._execute_module(module_name=module, module_args=args, task_vars=task_vars)
            if not cut_off.is_cut_off(found):
                return found
            cause = cut_off.cause_of(found)
        except cut_off.Overdue:
            # A host that does not answer is asked for nothing more, as for the removal of a folder.
            self._cleanup_remote_tmp = False
            cause = cut_off.overdue(limit_s)
        except AnsibleConnectionFailure as error:
            if "temporary directory" not in str(error):
                raise
            cause, is_sent = cut_off.cause_of({"msg": str(error)}), False
        self._is_cut_off = True
        return cut_off.answer(name, self._task.check_mode, args.get("run", ""), cause, is_sent)

    def _given(self, name: str, variables: Mapping[str, Any]) -> Any:
        return self._templar.template(variables[name]) if name in variables else None

    def _checked(self, name: str, args: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
        """What is to be added to a task's options, or ValueError for what cannot be."""
        if name == "node_revert":
            refuse_risk("gpufleet_allow_risk", args.get("allow_risk"))
            return {"area": area_of(args["area"])} if args.get("area") else {}
        if name not in (*AUDITS, "node_capture"):
            refuse_risk("%s_allow_risk" % AREAS[name].role, args.get("allow_risk"))
            refuse_impossible(name, want_of(args))
            return {}
        if "gpufleet_fail_states" in variables:
            refuse_states(self._templar.template(variables["gpufleet_fail_states"]))
        found = self._of_roles(name, args, variables)
        given = {**args, **found}
        for area, want in given["wants"].items() if isinstance(given["wants"], Mapping) else ():
            refuse_impossible(area, want)
        risks = given.get("allow_risk")
        for area, risk in risks.items() if isinstance(risks, Mapping) else ():
            refuse_risk("%s_allow_risk" % (AREAS[area].role if area in AREAS else area), risk)
        return found

    def _of_roles(self, name: str, args: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
        """What a task about the whole host leaves out: the areas by tags and inventory, wants and risks by the roles' variables.

        Only what is looked at is templated: with the wants of all areas that is most of what a host costs here.
        """
        found: dict[str, Any] = {}
        is_audit = name in AUDITS
        given = args.get("wants")
        names = (
            list(given) if isinstance(given, Mapping) else [name for name in AREAS if want_variable(name) in variables]
        )
        if is_audit and args.get("areas") is None:
            skipped = skipped_areas(self._given("gpufleet_skip_areas", variables))
            found["areas"] = chosen_areas(
                [name for name in names if name not in skipped],
                variables.get("ansible_run_tags", ["all"]),
                variables.get("ansible_skip_tags", []),
                self._task.tags,
            )
        if given is not None:
            return found
        if not names:
            raise ValueError("wants: not given, and no role of gpufleet.host shows its variables here. Give wants, or "
                             "import a role with tasks_from: wants. Nothing was changed.")  # fmt: skip
        if is_audit:
            names = [name for name in names if name in {**args, **found}["areas"]]
            risks = {name: "%s_allow_risk" % AREAS[name].role for name in names}
            found["allow_risk"] = asked({name: self._templar.template(variables[risks[name]]) for name in names})
        omitted = variables.get("omit")
        wants = {name: self._templar.template(variables[want_variable(name)]) for name in names}
        found["wants"] = {name: asked(without(want, omitted)) for name, want in wants.items()}
        return found


def said_of(answer: dict[str, Any]) -> dict[str, Any]:
    """What a host answered, without what would drive a terminal: it is the host that says which code of ours it ran."""
    try:
        return dict(readable(answer))
    except RecursionError:
        return {"failed": True, "msg": "the host's answer is nested too deeply to be one of this collection's modules"}


def want_variable(area: str) -> str:
    """The variable in which the role of an area maps its own variables to a want (vars/main.yml of each role)."""
    return "__%s_want" % AREAS[area].role


def without(want: Mapping[str, Any], omitted: Any) -> dict[str, Any]:
    """A want without what is to be left out: ansible-core before 2.19 writes a placeholder there."""
    return {name: value for name, value in want.items() if omitted is None or value != omitted}


def where_people_are(capture: str) -> str:
    """A relative path from the working directory: a module of a local connection does not start there."""
    path = Path(capture).expanduser()
    return str(path.absolute()) if path.exists() else capture


def smallest_form(name: str, areas: Iterable[str], action: str) -> str:
    """The module that is sent: the audit comes in two sizes, since a host pays for what it is sent."""
    return "gpufleet.host.node_audit_tuning" if name == "node_audit" and not set(areas) - set(TUNING) else action


def want_of(args: Mapping[str, Any]) -> dict[str, Any]:
    """The want among the arguments of an area's module."""
    return {name: value for name, value in args.items() if name not in COMMON_SPEC and not name.startswith("_ansible")}


def refuse_impossible(area: str, want: Any) -> None:
    """Raise ValueError for a want that no host could satisfy, with variable, value and what is allowed."""
    if area not in AREAS:
        raise ValueError("wants: %r is not possible; allowed: %s. Nothing was changed." % (area, ", ".join(AREAS)))
    if not isinstance(want, Mapping):
        raise ValueError("wants.%s: %r is not possible; allowed: a dictionary. Nothing was changed." % (area, want))
    try:
        valid_want(AREAS[area], want)
    except BadWant as error:
        raise ValueError(bad_want_message(AREAS[area], error)) from error


def refuse_risk(variable: str, given: Any) -> None:
    """Raise ValueError for a risk that there is not; what is not given or null is the default, safe."""
    if given is not None and given not in RISKS:
        raise ValueError(
            "%s: %r is not possible%s allowed: %s. Nothing was changed."
            % (variable, given, did_you_mean(str(given), RISKS), ", ".join(RISKS))
        )


def refuse_states(given: Any) -> None:
    """Raise ValueError for states of a host by which no run can end."""
    # A text would be searched for parts of words.
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(
            "gpufleet_fail_states: given %r; allowed: a list such as [drifted, failed], on the command line "
            "-e '{\"gpufleet_fail_states\": [drifted, failed]}'. Nothing was changed." % (given,)
        )
    for state in given:
        if state not in BAD_STATES:
            raise ValueError(
                "gpufleet_fail_states: %r is not possible%s allowed: %s. Nothing was changed."
                % (state, did_you_mean(str(state), BAD_STATES), ", ".join(BAD_STATES))
            )


def area_of(given: Any) -> str:
    """The area that a playbook was asked for, by its own name or its role's."""
    areas = tags_of_areas()
    if str(given) not in areas:
        raise ValueError(
            "gpufleet_revert_area: %r is not possible%s allowed: %s. Nothing was changed."
            % (given, did_you_mean(str(given), areas), ", ".join(AREAS))
        )
    return areas[str(given)]


def skipped_areas(given: Any) -> set[str]:
    """The areas that the inventory leaves out, by their own or their roles' names; ValueError for what is none."""
    words = given.split(",") if isinstance(given, str) else given
    if words is not None and not isinstance(words, (list, tuple)):
        raise ValueError(
            "gpufleet_skip_areas: given %r; allowed: a list such as [numa_slices]. Nothing was changed." % (given,)
        )
    areas = tags_of_areas()
    named = [str(word).strip() for word in words or () if str(word).strip()]
    for word in named:
        if word not in areas:
            raise ValueError(
                "gpufleet_skip_areas: %r is not possible%s allowed: %s. Nothing was changed."
                % (word, did_you_mean(word, areas), ", ".join(areas))
            )
    return {areas[word] for word in named}


def refuse_slips(variables: Mapping[Any, Any]) -> None:
    """Raise ValueError for a variable that is a misspelt variable of one of our roles or playbooks."""
    known = role_variables()
    starts = {name[:3] for name in known}
    for name in variables:
        if not isinstance(name, str):
            continue
        if name.startswith(OF_PLAYBOOKS):
            _refuse_slip(name, playbook_variables(), "docs/operations.md", len(OF_PLAYBOOKS), CLOSENESS_OF_A_WORD)
        elif name[:3] in starts:
            _refuse_slip(name, known, "the README of each role", 0, CLOSENESS)


def _refuse_slip(name: str, known: Sequence[str], listed_in: str, after: int, closeness: float) -> None:
    """
    :param after: how many characters of the names are the same in all, and tell nothing.
    """
    if name in known:
        return
    meant = difflib.get_close_matches(name[after:], [word[after:] for word in known], n=1, cutoff=closeness)
    if meant:
        raise ValueError(
            "%s: gpufleet.host has no such variable; did you mean %s%s? allowed: those of %s. Nothing was changed."
            % (name, name[:after], meant[0], listed_in)
        )


@cache
def playbook_variables() -> tuple[str, ...]:
    """All public variables of the collection's playbooks, by their use."""
    folders = (ROOT / "playbooks", ROLES, ROOT / "plugins/plugin_utils")
    texts = [
        file.read_text(encoding="utf-8")
        for folder in folders
        for ending in ("*.yml", "*.py")
        for file in sorted(folder.rglob(ending))
    ]
    return tuple(sorted({name for text in texts for name in re.findall(r"\bgpufleet_[a-z]+(?:_[a-z]+)*", text)}))


def refuse_profile(name: Any) -> None:
    """Raise ValueError for a profile that there is not; without one nothing is managed that is not set."""
    if name is not None and name not in ("", *PROFILES):
        raise ValueError(
            "gpufleet_profile: %r is not possible%s allowed: %s. Nothing was changed."
            % (name, did_you_mean(str(name), PROFILES), ", ".join(PROFILES))
        )


@cache
def role_variables() -> tuple[str, ...]:
    """All public variables of the collection's roles, by their argument specs: few of them have a default."""
    names: set[str] = set()
    for file in sorted(ROLES.glob("*/meta/argument_specs.yml")):
        names.update(re.findall(r"^ {6}([a-z][a-z0-9_]*):", file.read_text(encoding="utf-8"), re.MULTILINE))
    return tuple(sorted(names))


def chosen_areas(
    names: Iterable[str], tags: Iterable[str], skip_tags: Iterable[str], of_task: Iterable[str] = ()
) -> list[str]:
    """The areas that ``--tags`` and ``--skip-tags`` leave; an area goes by its own and its role's name.

    Tags that name no area choose all when they are on the task, such as by an own playbook that imports one of ours.
    When they are on others only, they choose none: a task that is tagged always is asked for by everything.
    """
    run, skip = set(tags), set(skip_tags)
    if skip & EVERYTHING:
        return []
    goes_by = {name: {name, AREAS[name].role} for name in names}
    chosen = {name for name, words in goes_by.items() if words & run}
    if not chosen and run & (EVERYTHING | (set(of_task) - {"always"})):
        chosen = set(goes_by)
    return [name for name, words in goes_by.items() if name in chosen and not words & skip]
