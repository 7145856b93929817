# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-test sanity, on the collection as it would be published.

ansible-test wants the path ansible_collections/gpufleet/host and looks at every file there. The
built archive unpacked there is exactly what users get, without the lab and the bench.
"""

from __future__ import annotations

import ast
import configparser
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import ansible_test

from tools.parts import CACHE, ROOT, close
from tools.pythons import OLDEST, interpreters

BUILD = CACHE / "build"
TARGET = CACHE / "sanity/ansible_collections/gpufleet/host"


def unpack_collection() -> None:
    shutil.rmtree(BUILD, ignore_errors=True)
    argv = ["ansible-galaxy", "collection", "build", "--force", "--output-path", str(BUILD)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{done.stdout}{done.stderr}\nThe collection does not build: see galaxy.yml")
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir(parents=True)
    with tarfile.open(next(BUILD.glob("*.tar.gz"))) as archive:
        archive.extractall(TARGET, filter="data")
    # Else ansible-test asks this checkout's git for the files, which ignores .cache.
    subprocess.run(["git", "init", "--quiet", str(TARGET)], check=True)


def pip_settings() -> str:
    """What pip is told here by files and environment, as one configuration file."""
    argv = [sys.executable, "-m", "pip", "config", "list"]
    listing = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    settings = configparser.RawConfigParser()
    settings["global"] = {}
    for line in listing.splitlines():
        name, _equals, value = line.partition("=")
        section, _dot, key = name.rpartition(".")
        # The environment is listed after the files, and wins.
        section = "global" if section == ":env:" else section
        if key not in ("config-file", "require-virtualenv"):
            if not settings.has_section(section):
                settings.add_section(section)
            settings.set(section, key, str(ast.literal_eval(value)))
    proxy = os.environ.get("https_proxy") or os.environ.get("HTTPS_PROXY")
    if proxy:
        settings["global"].setdefault("proxy", proxy)
    # Warnings about an index belong in setup; errors are still shown.
    settings["global"]["quiet"] = "2"
    text = io.StringIO()
    settings.write(text)
    return text.getvalue()


def provide_pip() -> None:
    """Put our bootstrap script where ansible-test looks for the one it would download."""
    source = Path(str(ansible_test.__path__[0]), "_internal/python_requirements.py").read_text()
    cache = Path.home() / ".ansible/test/cache"
    cache.mkdir(parents=True, exist_ok=True)
    for version in set(re.findall(r"pip='([0-9.]+)'", source)):
        shutil.copyfile(ROOT / "tools/get_pip.py", cache / f"get_pip_{version.replace('.', '_')}.py")
    # An index address may hold a password.
    settings = cache / "pip.conf"
    settings.touch(mode=0o600)
    settings.write_text(pip_settings())


def other_python(oldest: Path) -> Path:
    """A folder for PATH, so that ansible-test finds the interpreter itself and no launcher of the name."""
    folder = CACHE / "pythons"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / f"python{OLDEST[0]}.{OLDEST[1]}"
    link.unlink(missing_ok=True)
    link.symlink_to(oldest)
    return folder


def environment() -> tuple[list[str], dict[str, str]]:
    """This Python for all tests, and the oldest a target may have for those that compile and import."""
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    options = ["--controller", f"origin:python={here}", "--target-python", here]
    oldest = interpreters().get(OLDEST)
    if oldest is None:
        print("Python 3.8 is not installed: files are compiled and imported under this Python only.")
        return options, dict(os.environ)
    folder = other_python(oldest)
    options += ["--target-python", f"{OLDEST[0]}.{OLDEST[1]}@{folder}/{oldest.name}"]
    return options, {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def count(output: str, rc: int) -> tuple[int, int]:
    """How many of ansible-test's tests passed and failed."""
    ran = len(re.findall(r"^Running sanity test ", output, flags=re.MULTILINE))
    listed = re.search(r"The (\d+) sanity test\(s\) listed below", output)
    failed = int(listed[1]) if listed else int(rc != 0)
    return ran - failed if listed else ran, failed


def main(args: list[str]) -> int:
    unpack_collection()
    provide_pip()
    options, env = environment()
    argv = ["ansible-test", "sanity", *options, *args]
    output = ""
    with subprocess.Popen(
        argv, cwd=TARGET, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            output += line
            # One such line a test says nothing to a reader.
            if not line.startswith(("Installing requirements", "Using cached pip")):
                print(line, end="", flush=True)
    passed, failed = count(output, process.returncode)
    if failed:
        print("What to do: each issue names file and line; `make sanity ARGS='--test pep8'` repeats one test.")
    return close(passed=passed, failed=failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
