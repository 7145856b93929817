# SPDX-License-Identifier: GPL-3.0-or-later
"""The bench's verdict: ratios of medians, and a line for each figure that is not met."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from bench import result


def cost(wall: float, tasks: int = 1) -> dict[str, Any]:
    return {
        "wall_s": wall,
        "controller_cpu_s": wall / 2,
        "tasks": tasks,
        "changed": 0,
        "hosts": 1,
        "failed": 0,
        "rc": 0,
    }


def rows(ours: list[float], stock: list[float]) -> dict[str, Any]:
    return {
        "verify gpufleet.host": [cost(wall) for wall in ours],
        "verify stock": [cost(wall, 14) for wall in stock],
        "converge gpufleet.host": [cost(wall) for wall in ours],
    }


MEASURED: dict[str, Any] = {
    "simulated": [],
    "runs": {
        "1": {**rows([1, 2, 30], [10, 12, 9]), "verify stock, no read-back": [cost(7)]},
        "50": rows([10, 10, 10], [200, 100, 300]),
    },
    "payloads": {
        "gpufleet": [{"module": "node_audit", "cpu_s": [0.3, 0.2, 0.9], "rss_mb": 30.0}],
        "peer": [
            {"module": "sysctl", "cpu_s": [0.2], "rss_mb": 25.0},
            {"module": "mount", "cpu_s": [0.2], "rss_mb": 24.0},
        ],
    },
    "pages": {"hosts": 1000, "mb": 0.9, "render_s": 4.0, "open_s": [0.5, 0.4, 9], "filter_s": [0.01, 0.02, 0.9]},
    "tuned": {"audit": [cost(2)], "tuned": [cost(3)]},
    "noticed": [
        {"drift": "nothing (control)", "by": {"gpufleet.host": "missed", "stock modules": "missed"}, "what": ""},
        {
            "drift": "a hand",
            "by": {"gpufleet.host": "noticed", "stock modules": "missed"},
            "what": "area.step (drifted)",
        },
    ],
}


def measured(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(MEASURED), **changes}


def test_ratios_are_of_medians() -> None:
    assert result.summarise(measured())["ratios"] == {"1": {"verify": 5.0}, "50": {"verify": 20.0}}


def test_all_figures_are_met() -> None:
    assert result.missed(result.summarise(measured())) == []


def test_what_was_not_measured_is_not_missed() -> None:
    quick = measured()
    del quick["runs"]["50"]
    assert result.missed(result.summarise(quick)) == []
    assert "not measured" in result.table(quick, result.summarise(quick))


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda data: data["runs"]["1"].update(rows([5], [10])), "times faster than stock, 1 host: 2.00, wanted at least 4"),
        (lambda data: data["runs"]["50"].update(rows([10], [100])), "times faster than stock, 50 hosts: 10.00, wanted at least 15"),
        (lambda data: data["payloads"]["gpufleet"][0].update(cpu_s=[0.5]),
         "CPU seconds of the audit's module on the target: 0.50, wanted at most 0.4"),
        (lambda data: data["payloads"]["gpufleet"][0].update(rss_mb=61), "MB of memory of the audit's module: 61.00, wanted at most 60"),
        (lambda data: data["runs"]["1"].update({"converge gpufleet.host": [cost(4)]}),
         "audits that a no-change site.yml costs: 2.00, wanted at most 1.5"),
        (lambda data: data["pages"].update(mb=3.5), "MB of the page of 1000 hosts: 3.50, wanted at most 3"),
        (lambda data: data["pages"].update(render_s=6), "CPU seconds to make all pages of 1000 hosts: 6.00, wanted at most 5"),
        (lambda data: data["pages"].update(open_s=[1, 3, 4]), "seconds to open the page of 1000 hosts: 3.00, wanted at most 2"),
        (lambda data: data["pages"].update(filter_s=[0.3]), "seconds of a key stroke in its filter: 0.30, wanted at most 0.2"),
        (lambda data: data["runs"]["1"]["verify gpufleet.host"][0].update(tasks=2), "tasks of a whole-host audit: 2.00, wanted at most 1"),
    ],
)  # fmt: skip
def test_each_figure_that_is_not_met_gets_a_line(change: Any, line: str) -> None:
    data = measured()
    change(data)
    summed = result.summarise(data)
    assert line in result.missed(summed)
    assert "NOT MET" in result.table(data, summed)


def test_the_table_tells_who_noticed_and_what_is_simulated() -> None:
    data = measured(simulated=["cpuset controller"])
    text = result.table(data, result.summarise(data))
    assert "cpuset controller" in text
    assert "1 of 1" in text
    assert "0 of 1" in text
    assert "area.step (drifted)" in text


def test_the_pages_have_a_table_of_their_own() -> None:
    figures = result.page_figures(MEASURED["pages"])
    assert "NOT MET" not in result.page_table(figures) and "not measured" not in result.page_table(figures)
    assert result.page_table(figures).count("at most") == 4 and result.missed({"figures": figures}) == []
