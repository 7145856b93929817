#!/usr/bin/python
# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_revert
short_description: Put a host back to what it was before the collection changed it
version_added: "0.1.0"
description:
  - Undoes one run, one area or everything, from the journal on the host, newest change first, back to the recorded originals.
  - What has no reverse, such as a filesystem that was made, stays, and the report says so. No data is ever deleted.
  - A damaged journal fails the task, also in check mode, with what is lost of it. What the other records know is undone; what may
    have had an older original is left as it is and named. A journal that others than root could have written is not used.
options:
  area:
    description:
      - Undo this area only, by the name of its module.
    type: str
  undo_run:
    description:
      - Undo this run only, by its name in the journal.
      - A run that changed nothing on this host is not in its journal; RV(unknown_run) tells.
    type: str
extends_documentation_fragment:
  - gpufleet.host.area
"""

EXAMPLES = r"""
- name: Put the I/O schedulers back
  gpufleet.host.node_revert:
    area: block_queue
"""

RETURN = r"""
state:
  description: State after the run, V(compliant) when there was nothing to undo.
  returned: always
  type: str
unknown_run:
  description: That the run of O(undo_run) is not in the journal of this host, and the newest of those that are.
  returned: when it is not
  type: str
report:
  description: What was undone, as docs/report.schema.json describes it.
  returned: always
  type: dict
"""

from contextlib import nullcontext
from typing import List

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpufleet.host.plugins.module_utils._engine.door import (
    COMMON_SPEC,
    finish,
    host_report,
    new_run_id,
    refuse_without_root,
    result_of,
)
from ansible_collections.gpufleet.host.plugins.module_utils._engine.engine import journal_findings, revert
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost
from ansible_collections.gpufleet.host.plugins.module_utils._engine.journal import Journal, JournalError, Lock, Locked

SHOWN_RUNS = 10


def unknown_run(wanted: str, runs: List[str]) -> str:
    """Why a run cannot be undone that is none of these."""
    more = " and %d older ones" % (len(runs) - SHOWN_RUNS) if len(runs) > SHOWN_RUNS else ""
    known = "the newest are %s%s" % (", ".join(runs[:SHOWN_RUNS]), more) if runs else "it holds none"
    return "run %s is not in the journal of this host; %s. Nothing was undone." % (wanted, known)


def main() -> None:
    module = AnsibleModule(
        argument_spec=dict({"area": {"type": "str"}, "undo_run": {"type": "str"}}, **COMMON_SPEC),
        supports_check_mode=True,
    )
    params = module.params
    host = LiveHost()
    refuse_without_root(module, host, "revert", params["run"])
    journal = Journal()
    try:
        runs = journal.runs() if params["undo_run"] else []
        # Telling what would be undone needs no lock, and leaves none.
        with nullcontext() if module.check_mode else Lock():
            findings = journal_findings(journal, "fail")
            reports = revert(
                host,
                journal,
                apply=not module.check_mode,
                area=params["area"],
                run=params["undo_run"],
                allow_risk=params["allow_risk"],
            )
    except Locked as error:
        module.fail_json(msg=str(error))
    except JournalError as error:
        module.fail_json(msg="%s. Nothing was undone." % error)
    result = result_of(host_report(reports, params["run"] or new_run_id(), "revert", findings))
    if params["undo_run"] and params["undo_run"] not in runs:
        result["unknown_run"] = unknown_run(params["undo_run"], runs)
    finish(module, result, reports, findings)


if __name__ == "__main__":
    main()
