# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-test sanity, on the collection as it would be published.

ansible-test wants the path ansible_collections/gpufleet/host and looks at every file there. The
built archive unpacked there is exactly what users get, without the lab and the bench.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile

from tools.parts import CACHE, ROOT, close

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


def main(args: list[str]) -> int:
    unpack_collection()
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    argv = ["ansible-test", "sanity", "--venv", "--requirements", "--python", version, *args]
    done = subprocess.run(argv, cwd=TARGET)
    return close(passed=int(done.returncode == 0), failed=int(done.returncode != 0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
