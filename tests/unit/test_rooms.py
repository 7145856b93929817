# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proves the rooms of the collection: who may import what, that all areas are built alike, that specs agree.

It goes by what lies in the folders, so a new file is under the same rules from its first day.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from itertools import combinations
from pathlib import Path
from typing import Any, Iterator, Mapping

import every_area
import pytest
import yaml
from every_area import ROOT

from ansible_collections.gpufleet.host.plugins.module_utils._areas.all import AREAS
from ansible_collections.gpufleet.host.plugins.module_utils._engine.engine import run_area
from ansible_collections.gpufleet.host.plugins.module_utils._engine.journal import Journal
from ansible_collections.gpufleet.host.plugins.plugin_utils.controller_door import PROFILES
from tools import role_tables

PLUGINS = ROOT / "plugins"
UTILS = PLUGINS / "module_utils"
OUR_NAME = "ansible_collections.gpufleet.host.plugins.module_utils."

# The areas of the foundation with their roles. More may come; none of these may go.
FOUNDATION = {
    "kernel_settings": "kernel",
    "block_queue": "io_scheduler",
    "xfs_volumes": "xfs_storage",
    "numa_slices": "numa_slices",
    "mysql_isolation": "mysql_isolation",
}
PURE = {
    "__future__", "collections", "collections.abc", "dataclasses", "difflib", "enum", "functools", "itertools", "json",
    "math", "re", "typing",
    # Text to text as well: they touch nothing outside.
    "fnmatch", "hashlib", "shlex", "textwrap",
}  # fmt: skip
VALUES = {"_engine.values", "_engine.cpuset", "_engine.units", "_engine.versions"}
# What a room may import: of the standard library, and of our own rooms (a name ending in a dot stands for all below it).
ROOMS: Mapping[str, tuple[set[str], set[str]]] = {
    "_plan": (PURE, VALUES | {"_plan.", "_tables."}),
    "_tables": (PURE, VALUES | {"_tables."}),
    "_observe": (PURE | {"time", "textwrap"}, VALUES | {"_engine.host", "_observe.", "_tables."}),
    "_areas": (
        PURE | {"inspect"},
        VALUES | {"_engine.engine", "_engine.host", "_observe.", "_plan.", "_tables.", "_programs.", "_areas."},
    ),
    # A program lies on the host by itself: it has nothing but Python.
    "_programs": (set(sys.stdlib_module_names), set()),
    "_engine": (set(sys.stdlib_module_names), {"_engine."}),
}
# Words that reach out of a pure function, or hide an import from the scan that packs a module for the host.
FORBIDDEN_CALLS = {"__import__", "eval", "exec", "compile", "globals", "open", "input", "print", "breakpoint"}
HIDING_CALLS = {"__import__", "eval", "exec", "import_module"}
HIDING_IMPORTS = {"importlib", "pkgutil", "runpy", "imp"}
LONGEST_PLAN_FILE = 250
LONGEST_PLAN_FUNCTION = 40
LONGEST_DOOR = 12


def files(*patterns: str) -> list[Path]:
    return sorted(path for pattern in patterns for path in PLUGINS.glob(pattern))


def name_of(path: Path) -> str:
    return str(path.relative_to(PLUGINS))


def each(*patterns: str) -> Any:
    found = files(*patterns)
    assert found, patterns
    return pytest.mark.parametrize("path", found, ids=name_of)


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(tree: ast.AST, path: Path) -> Iterator[str]:
    """What a file imports: ``re``, or ``_engine.values`` for our own, however it is written."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from _from(node, path)


def _from(node: ast.ImportFrom, path: Path) -> Iterator[str]:
    module = node.module or ""
    if node.level:
        place = path.parent.relative_to(UTILS).parts
        module = ".".join([*place[: len(place) - node.level + 1], *([module] if module else [])])
        our_own = True
    else:
        our_own = module.startswith(OUR_NAME)
        module = module[len(OUR_NAME) :] if our_own else module
    # "from .._engine import values" imports the file values of the room _engine.
    is_room = our_own and (UTILS / module.replace(".", "/")).is_dir()
    yield from (["%s.%s" % (module, alias.name) for alias in node.names] if is_room else [module])


def is_allowed(name: str, library: set[str], rooms: set[str]) -> bool:
    if name.startswith("_") and not name.startswith("__"):
        return any(name == room or (room.endswith(".") and name.startswith(room)) for room in rooms)
    return name in library or name.split(".")[0] in library - PURE


def calls(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            yield function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


# Rooms


@each("module_utils/*/*.py")
def test_a_room_imports_only_what_it_may(path: Path) -> None:
    library, rooms = ROOMS[path.parent.name]
    foreign = [name for name in imports(parse(path), path) if not is_allowed(name, library, rooms)]
    if path.parent.name == "_engine":
        # Some of the engine speaks to Ansible's own part of a module.
        foreign = [name for name in foreign if not name.startswith("ansible.module_utils.")]
    assert foreign == []


@each("module_utils/_plan/*.py", "module_utils/_tables/*.py", "module_utils/_observe/*.py", "module_utils/_areas/*.py")
def test_pure_rooms_reach_for_nothing(path: Path) -> None:
    tree = parse(path)
    used = set(FORBIDDEN_CALLS) & {
        node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert used == set()
    assert not any(isinstance(node, (ast.Global, ast.Nonlocal)) for node in ast.walk(tree))


@each("module_utils/_plan/*.py", "module_utils/_observe/*.py")
def test_only_the_engine_has_hands(path: Path) -> None:
    assert not {"write", "set_value", "execute", "LiveHost"} & set(calls(parse(path)))


@each("module_utils/*/*.py", "modules/*.py")
def test_imports_can_be_seen_without_running(path: Path) -> None:
    """What is shipped to a host is found by a scan of the source."""
    tree = parse(path)
    assert not HIDING_CALLS & set(calls(tree))
    assert not HIDING_IMPORTS & {name.split(".")[0] for name in imports(tree, path)}
    inside = {
        name
        for outer in ast.walk(tree)
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef))
        for name in imports(outer, path)
    }
    # A rarely used part of the standard library may be imported late; ours may not.
    assert inside <= PURE


def test_packages_have_no_init_files() -> None:
    """What they import would be shipped with every module."""
    assert files("module_utils/**/__init__.py", "modules/**/__init__.py") == []


def test_every_room_is_known() -> None:
    assert {path.parent.name for path in files("module_utils/*/*.py")} == set(ROOMS)
    assert files("module_utils/*.py") == []


@each("**/*.py")
def test_every_file_names_its_licence(path: Path) -> None:
    assert "SPDX-License-Identifier: GPL-3.0-or-later" in path.read_text(encoding="utf-8")[:400]


# Sizes


@each("module_utils/_plan/*.py")
def test_a_plan_stays_readable(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    lengths = {
        # As many lines as it has statements: how a long call is broken into lines does not count.
        node.name: len(ast.unparse(node).splitlines())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
    }
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_PLAN_FUNCTION} == {}
    assert code_lines(text) <= LONGEST_PLAN_FILE


def code_lines(text: str) -> int:
    """Lines with code on them: not empty, no comment, no documentation."""
    quiet = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in quiet:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)) and ast.get_docstring(node):
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


@pytest.mark.parametrize("area", every_area.NAMES)
def test_the_module_of_an_area_is_docs_and_one_call(area: str) -> None:
    text = (PLUGINS / "modules" / (area + ".py")).read_text(encoding="utf-8")
    tree = ast.parse(text)
    docs = [node for node in tree.body if isinstance(node, ast.Assign)]
    assert [node.targets[0].id for node in docs if isinstance(node.targets[0], ast.Name)] == [
        "DOCUMENTATION", "EXAMPLES", "RETURN",
    ]  # fmt: skip
    code = [node for node in tree.body if node not in docs]
    assert sum((node.end_lineno or 0) - node.lineno + 1 for node in code) <= LONGEST_DOOR
    [main] = [node for node in code if isinstance(node, ast.FunctionDef)]
    assert ast.unparse(main.body[0]) == "open_door(AREA)"
    assert len(main.body) == 1


# Documentation of modules


def documentation(path: Path) -> dict[str, Any]:
    """The documentation with its fragments, as Ansible puts it together."""
    found = constants(path)
    docs: dict[str, Any] = yaml.safe_load(found["DOCUMENTATION"])
    for name in docs.pop("extends_documentation_fragment", []):
        assert name.startswith("gpufleet.host."), name
        fragment = constants(PLUGINS / "doc_fragments" / (name.rsplit(".", 1)[1] + ".py"))
        for key, value in yaml.safe_load(fragment["DOCUMENTATION"]).items():
            docs[key] = {**value, **docs.get(key, {})} if isinstance(value, dict) else docs.get(key, []) + value
    return docs


def constants(path: Path) -> dict[str, str]:
    return {
        target.id: ast.literal_eval(node.value)
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id in ("DOCUMENTATION", "EXAMPLES", "RETURN")
    }


@each("modules/*.py")
def test_a_module_is_documented(path: Path) -> None:
    docs = documentation(path)
    assert docs["module"] == path.stem
    for key in ("short_description", "version_added", "description", "options", "author", "requirements"):
        assert docs[key], key
    for name in ("check_mode", "diff_mode", "idempotent"):
        assert docs["attributes"][name]["support"] in ("full", "partial", "none"), name
        assert docs["attributes"][name]["description"], name
    found = constants(path)
    for task in yaml.safe_load(found["EXAMPLES"]):
        [used] = [options for key, options in task.items() if key == "gpufleet.host." + path.stem]
        assert set(used or {}) <= set(docs["options"]), task["name"]
    assert {"state", "report"} <= set(yaml.safe_load(found["RETURN"])) or path.stem in (
        "node_capture",
        "node_packages",
    )


# Specs


def option(spec: Mapping[str, Any], inner: str) -> dict[str, Any]:
    """An option as all kinds of specs can be compared: SPEC, module documentation, role argument spec."""
    found = {
        "type": spec.get("type", "str"),
        "elements": spec.get("elements"),
        "required": bool(spec.get("required", False)),
        "choices": sorted(map(str, spec.get("choices", []))),
        "default": spec.get("default"),
    }
    below = spec.get(inner) or {}
    found["options"] = {name: option(about, inner) for name, about in below.items()}
    return found


def options(specs: Mapping[str, Any], inner: str) -> dict[str, Any]:
    return {name: option(about, inner) for name, about in specs.items()}


def role_file(role: str, *place: str) -> Any:
    return yaml.safe_load(ROOT.joinpath("roles", role, *place).read_text(encoding="utf-8"))


def role_specs(role: str) -> dict[str, Any]:
    specs: dict[str, Any] = role_file(role, "meta", "argument_specs.yml")["argument_specs"]["main"]["options"]
    return specs


areas = pytest.mark.parametrize("area", every_area.NAMES)


def role_of(area: str) -> str:
    return every_area.sample(area).area.role


def test_the_foundation_stands() -> None:
    found = {name: role_of(name) for name in every_area.NAMES}
    assert {name: found.get(name) for name in FOUNDATION} == FOUNDATION
    # acceptance is no area: it compares the reports of hosts with an order.
    assert sorted(path.name for path in (ROOT / "roles").iterdir()) == sorted([*found.values(), "acceptance"])


@areas
def test_an_area_is_what_its_file_says(area: str) -> None:
    sample = every_area.sample(area)
    assert sample.area.name == area
    assert sample.area.spec is sample.spec


@areas
def test_the_module_documents_the_spec(area: str) -> None:
    sample = every_area.sample(area)
    documented = documentation(PLUGINS / "modules" / (area + ".py"))["options"]
    common = {"allow_risk", "run"}
    assert common <= set(documented)
    shown = {name: about for name, about in documented.items() if name not in common}
    assert options(shown, "suboptions") == options(sample.spec, "options")


@areas
def test_the_role_asks_for_the_spec(area: str) -> None:
    """Names, types and what is inside; a top option may be an int where the module takes any word.

    What may be null has neither a default nor choices, or Ansible would refuse the null: words of choices are told.
    """
    sample = every_area.sample(area)
    role = sample.area.role
    asked, wanted = options(role_specs(role), "options"), options(sample.spec, "options")
    assert asked.pop(role + "_allow_risk") == option({}, "options")
    packages = asked.pop(role + "_packages", {"type": "list"})
    assert packages["type"] == "list"
    assert set(asked) == {role + "_" + name for name in wanted}
    for name, about in wanted.items():
        mine = asked[role + "_" + name]
        if (about["type"], mine["type"]) == ("str", "int"):
            mine["type"] = "str"
        told = str(role_specs(role)[role + "_" + name]["description"])
        assert [word for word in filter(None, about["choices"]) if "V(%s)" % word not in told] == [], name
        about.update(default=None, choices=[])
        assert mine == about, name


@areas
def test_defaults_and_profiles_are_of_variables_that_there_are(area: str) -> None:
    role = role_of(area)
    defaults, profiles = role_file(role, "defaults", "main.yml"), profiles_of(role)
    assert set(defaults) <= set(role_specs(role))
    assert set(profiles) <= set(PROFILES)
    for values in profiles.values():
        # A default would hide the profile's value.
        assert {role + "_" + name for name in values} <= set(role_specs(role)) - set(defaults)


@areas
def test_every_knob_is_in_the_defaults_if_only_as_an_example(area: str) -> None:
    role = role_of(area)
    text = (ROOT / "roles" / role / "defaults/main.yml").read_text(encoding="utf-8")
    assert [name for name in role_specs(role) if not re.search("^(#   )?%s:" % name, text, re.MULTILINE)] == []


@areas
def test_defaults_are_explained(area: str) -> None:
    text = (ROOT / "roles" / role_of(area) / "defaults/main.yml").read_text(encoding="utf-8")
    rows = text.splitlines()
    knobs = [number for number, row in enumerate(rows) if row.startswith(role_of(area) + "_")]
    bare = [rows[number] for number in knobs if not rows[number - 1].startswith(("#", role_of(area) + "_"))]
    assert bare == []


@areas
def test_one_place_maps_variables_to_options(area: str) -> None:
    sample = every_area.sample(area)
    role = sample.area.role
    mapped = role_file(role, "vars", "main.yml")["__%s_want" % role]
    assert set(mapped) == set(sample.spec)
    for name, text in mapped.items():
        assert "%s_%s" % (role, name) in text, name
    [task] = [task for task in role_file(role, "tasks", "main.yml") if "gpufleet.host." + area in task]
    given = task["gpufleet.host." + area]
    assert set(given) == set(sample.spec) | {"allow_risk", "run"}
    for name in sample.spec:
        assert given[name] == "{{ __%s_want.%s }}" % (role, name)
    assert given["allow_risk"] == "{{ %s_allow_risk }}" % role


def profiles_of(role: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = role_file(role, "vars", "main.yml").get("__%s_profiles" % role, {})
    return found


@areas
@pytest.mark.parametrize("profile", ["", *PROFILES])
def test_role_defaults_are_a_want_that_can_be(area: str, profile: str) -> None:
    sample = every_area.sample(area)
    role = sample.area.role
    defaults = role_file(role, "defaults", "main.yml")
    given = {name: defaults.get(role + "_" + name) for name in sample.spec}
    every_area.whole.valid_want(sample.area, {**given, **profiles_of(role).get(profile, {})})


@areas
def test_nothing_set_is_nothing_managed(area: str, tmp_path: Path) -> None:
    """Neither on a fresh host, nor on one that was tuned by us: without a want the host keeps what it has."""
    sample = every_area.sample(area)
    host = sample.make(tmp_path)
    nothing = every_area.whole.valid_want(sample.area, {})
    before, judged = Journal(str(tmp_path / "journal")), []
    assert run_area(sample.area, nothing, host, mode="apply", journal=before, run="1").steps == ()
    run_area(sample.area, sample.want, host, mode="apply", allow_risk="destructive", journal=before, run="2")
    after = run_area(sample.area, nothing, host, mode="apply", journal=before, run="3")
    judged += [finding.id for finding in after.findings]
    assert (after.steps, after.state) == ((), "compliant"), after
    assert area == "platform" or area + ".nothing-wanted" in judged


@areas
def test_null_is_as_if_it_were_not_said(area: str) -> None:
    """Of every option, in both ways that a null arrives: itself, and the empty text of an older Ansible."""
    sample = every_area.sample(area)
    valid_want = every_area.whole.valid_want
    for name in sample.spec:
        rest = {other: value for other, value in every_area.ABOUT[area]["want"].items() if other != name}
        for null in (None, ""):
            assert valid_want(sample.area, {**rest, name: null}) == valid_want(sample.area, rest), name


# Roles


@areas
def test_a_role_is_built_like_the_others(area: str) -> None:
    role = ROOT / "roles" / role_of(area)
    for place in ("defaults/main.yml", "meta/argument_specs.yml", "meta/main.yml", "tasks/main.yml", "vars/main.yml"):
        assert (role / place).is_file(), place
    assert yaml.safe_load((role / "tasks/wants.yml").read_text(encoding="utf-8")) == []
    readme = (role / "README.md").read_text(encoding="utf-8")
    table = readme[readme.index(role_tables.BEGIN) : readme.index(role_tables.END)]
    missing = [name for name in role_specs(role.name) if "`%s`" % name not in table]
    assert missing == []


@areas
def test_tasks_of_a_role_read_as_sentences(area: str) -> None:
    text = (ROOT / "roles" / role_of(area) / "tasks/main.yml").read_text(encoding="utf-8")
    tasks = yaml.safe_load(text)
    assert 1 <= len(tasks) <= 6
    for task in tasks:
        assert task["name"][0].isupper()
        verbs = {key for key in task if "." in key}
        assert not verbs & {"ansible.builtin.command", "ansible.builtin.shell", "ansible.builtin.raw"}
    assert "ignore_errors" not in text


# All areas together


@areas
def test_an_area_is_known_everywhere(area: str) -> None:
    role = role_of(area)
    assert AREAS[area] is every_area.sample(area).area
    wants = yaml.safe_load((ROOT / "playbooks/tasks/wants.yml").read_text(encoding="utf-8"))
    imported = [task["ansible.builtin.import_role"] for task in wants]
    assert {"name": "gpufleet.host." + role, "tasks_from": "wants"} in imported
    assert {"area": area, "role": role} in applied_by_site()
    runtime = yaml.safe_load((ROOT / "meta/runtime.yml").read_text(encoding="utf-8"))
    assert area in runtime["action_groups"]["all"]
    assert (PLUGINS / "action" / (area + ".py")).is_file(), "the door on the controller"
    assert (ROOT / "docs/areas" / (area + ".md")).is_file()


def applied_by_site() -> list[dict[str, str]]:
    """The areas that playbooks/site.yml brings to their state, in its order."""
    [play] = yaml.safe_load((ROOT / "playbooks/site.yml").read_text(encoding="utf-8"))
    [task] = [task for task in play["tasks"] if "ansible.builtin.include_role" in task]
    rows: list[dict[str, str]] = task["loop"]
    return rows


def test_playbooks_and_modules_know_one_order() -> None:
    assert [row["area"] for row in applied_by_site()] == list(AREAS)


@areas
def test_an_area_has_its_tests(area: str) -> None:
    place = ROOT / "tests/unit/plugins/module_utils/_areas" / ("test_%s.py" % area)
    text = place.read_text(encoding="utf-8")
    for proof in ("prove_converges", "prove_reverts", "prove_rolls_back", "prove_survives_kills"):
        assert proof in text, proof
    assert any((ROOT / "tests/unit/cases" / area).glob("*.yml")), "case tables are data"


def test_every_file_of_the_core_is_used() -> None:
    """By an area, a module or the door on the controller, directly or through others; a parser may only be tested."""
    todo = [name for path in files("modules/*.py", "action/*.py") for name in imports(parse(path), path)]
    used: set[str] = set()
    while todo:
        name = todo.pop()
        path = UTILS / (name.replace(".", "/") + ".py")
        if name not in used and path.is_file():
            used.add(name)
            todo += imports(parse(path), path)
    every = {".".join(path.relative_to(UTILS).with_suffix("").parts) for path in files("module_utils/*/*.py")}
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests/unit").rglob("test_*.py"))
    unused = {name for name in every - used if not (name.startswith("_observe.") and name.split(".")[1] in tests)}
    assert unused == set()


# Targets


def targets(area: str, root: Path) -> set[str]:
    """What an area changes, on its fake host with a want that asks for all that it can do."""
    root.mkdir()
    sample = every_area.sample(area)
    have = sample.area.observe(sample.make(root), sample.want)
    steps = sample.area.plan(sample.want, have)
    assert steps, "the sample want of %s asks for nothing" % area
    assert len({step.id for step in steps}) == len(steps), "two steps with one id"
    return {step.target for step in steps if step.kind in ("file", "value")}


def own_files(area: str) -> set[str]:
    """Paths that the files of an area name as constants to be written: RULES_FILE, FILE, ..."""
    found: set[str] = set()
    todo = ["_areas." + area]
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        path = UTILS / (name.replace(".", "/") + ".py")
        if name in seen or not path.is_file():
            continue
        seen.add(name)
        tree = parse(path)
        todo += [other for other in imports(tree, path) if other.startswith("_plan.")]
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
                value = node.value.value
                if isinstance(value, str) and value.startswith("/") and any(n.endswith("FILE") for n in names):
                    found.add(value)
    return found


def test_no_two_areas_manage_one_target(tmp_path: Path) -> None:
    managed = {area: targets(area, tmp_path / area) | own_files(area) for area in every_area.NAMES}
    for one, other in combinations(managed, 2):
        assert managed[one] & managed[other] == set(), (one, other)


@areas
def test_steps_can_be_done_and_undone(area: str, tmp_path: Path) -> None:
    """A value is a text before and after; a command that changes something names its reverse or says that it has none."""
    sample = every_area.sample(area)
    have = sample.area.observe(sample.make(tmp_path), sample.want)
    ids = [step.id for step in sample.area.plan(sample.want, have)]
    for step in sample.area.plan(sample.want, have):
        assert step.why and step.source, step.id
        if step.kind == "value":
            assert isinstance(step.before, str) and isinstance(step.after, str), step.id
        if step.kind == "file":
            assert step.target.startswith("/") and isinstance(step.after, (str, type(None))), step.id
            assert isinstance(step.before, (str, type(None))), step.id
        if step.kind == "run":
            assert step.argv and all(isinstance(word, str) for word in step.argv), step.id
            assert step.undo is not None or step.risk == "destructive", step.id
        # What a step needs comes before it.
        needed = [ids.index(name) for name in step.requires if name in ids]
        assert all(place < ids.index(step.id) for place in needed), step.id


@areas
def test_a_plan_is_the_same_each_time(area: str, tmp_path: Path) -> None:
    sample = every_area.sample(area)
    host = sample.make(tmp_path)
    first, second = (sample.area.observe(host, sample.want) for _time in range(2))
    assert sample.area.plan(sample.want, first) == sample.area.plan(sample.want, second)
    assert sample.area.judge(sample.want, first) == sample.area.judge(sample.want, second)
    assert first == second
