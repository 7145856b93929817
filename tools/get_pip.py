# SPDX-License-Identifier: GPL-3.0-or-later
"""Give an empty virtual environment its pip, from the copy that comes with Python.

ansible-test downloads a script of this name from its makers unless it finds one in its cache, and
a site may have no way out but its package index. It is called with the packages to install, and
without the environment, so the settings of pip come from a file that `make sanity` lays beside it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

subprocess.check_call([sys.executable, "-m", "ensurepip"], stdout=subprocess.DEVNULL)
settings = os.path.join(os.path.dirname(os.environ["GET_PIP"]), "pip.conf")
if os.path.exists(settings):
    shutil.copy(settings, os.path.join(sys.prefix, "pip.conf"))
packages = [word for word in sys.argv[1:] if not word.startswith("--no-")]
sys.exit(subprocess.call([sys.executable, "-m", "pip", "install", "--quiet", *packages]))
