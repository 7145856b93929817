# SPDX-License-Identifier: GPL-3.0-or-later
"""Every static check. All of them run, so that one call shows all that is to mend."""

from __future__ import annotations

import sys

from tools.parts import COLLECTIONS, ROOT, Check, run_checks, tracked_files

LINK = COLLECTIONS.relative_to(ROOT) / "ansible_collections/gpufleet/host"


def mypy_checks() -> list[Check]:
    """Plugins are checked under the name that their imports use, the rest by path."""
    checks = []
    hint = "mend the types; `# type: ignore[code]` needs a reason beside it."
    plugins = [f"{LINK}/{name}" for name in tracked_files("plugins/**.py")]
    if plugins:
        checks.append(Check("mypy plugins", ["mypy", *plugins], hint))
    paths = tracked_files("lab/**.py", "tools/**.py", "bench/**.py")
    # Two mypy runs at once need two caches.
    argv = ["mypy", "--python-version=3.11", "--cache-dir=.cache/mypy-tools", *paths]
    return [*checks, Check("mypy lab tools bench", argv, hint)]


def shell_checks() -> list[Check]:
    scripts = [
        name
        for name in tracked_files()
        if name.endswith(".sh") or (ROOT / name).read_bytes()[:64].split(b"\n")[0].endswith(b"bash")
    ]
    hint = "follow the link that shellcheck prints for each code."
    return [Check("shellcheck", ["shellcheck", "-x", *scripts], hint)]


def all_checks() -> list[Check]:
    ansible_env = {"ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS)}
    python = sys.executable
    return [
        # The slow ones first: two run at a time.
        Check(
            "ansible-lint",
            ["ansible-lint", "--offline", "--nocolor", "-q"],
            "`ansible-lint --fix` mends some of them; the rules are explained by `ansible-lint -L`.",
            ansible_env,
        ),
        *mypy_checks(),
        Check(
            "antsibull-docs",
            ["antsibull-docs", "lint-collection-docs", "--plugin-docs", "--skip-rstcheck", "."],
            "mend the DOCUMENTATION, EXAMPLES or RETURN block, or the argument spec, that it names.",
            ansible_env,
        ),
        Check(
            "antsibull-changelog",
            ["antsibull-changelog", "lint"],
            "a fragment is YAML with the sections of changelogs/config.yaml.",
            ansible_env,
        ),
        Check("ruff check", ["ruff", "check", "--output-format=concise", "."], "`ruff check --fix .` mends many."),
        Check("ruff format", ["ruff", "format", "--check", "--output-format=concise", "."], "run `ruff format .`"),
        Check("yamllint", ["yamllint", "--strict", "."], "mend the lines it names."),
        Check(
            "role tables",
            [python, "-m", "tools.role_tables", "--check"],
            "run `make docs` and commit the changed README files.",
        ),
        Check(
            "tables page",
            [python, "-m", "tools.tables_page", "--check"],
            "run `make docs` and commit docs/tables.md.",
        ),
        Check(
            "stories page",
            [python, "-m", "tools.stories_page", "--check"],
            "run `make docs` and commit docs/stories.md.",
        ),
        Check(
            "host names",
            [python, "-m", "tools.host_names"],
            "take the registry or mirror from the machine's own configuration, or from a variable.",
        ),
        *shell_checks(),
    ]


if __name__ == "__main__":
    sys.exit(run_checks(all_checks(), workers=2))
