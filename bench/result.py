# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was measured, as ratios of medians, a table, and a verdict on each wanted figure. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

Row = Mapping[str, Any]
# Name -> (limit, whether more is better). The figures that the bench is there to hold.
WANTED: Mapping[str, tuple[float, bool]] = {
    "tasks of a whole-host audit": (1, False),
    "times faster than stock, 1 host": (4, True),
    "times faster than stock, 50 hosts": (15, True),
    "audits that a no-change site.yml costs": (1.5, False),
    "CPU seconds of the audit's module on the target": (0.4, False),
    "MB of memory of the audit's module": (60, False),
    "MB of the page of 1000 hosts": (3, False),
    "CPU seconds to make all pages of 1000 hosts": (5, False),
    "seconds to open the page of 1000 hosts": (2, False),
    "seconds of a key stroke in its filter": (0.2, False),
}
MODES = ("verify", "converge", "repair")
WORDS = {"verify": "verify only", "converge": "converge, nothing to change", "repair": "converge, one drift repaired"}


def summarise(measured: Row) -> dict[str, Any]:
    """Medians' ratios by hosts and mode, and the wanted figures; None is not measured."""
    runs = measured["runs"]
    ratios = {
        hosts: {mode: _ratio(rows, mode, "wall_s") for mode in MODES if f"{mode} stock" in rows}
        for hosts, rows in runs.items()
    }
    (ours,) = measured["payloads"]["gpufleet"]
    one = runs["1"]
    figures = {
        "tasks of a whole-host audit": float(max(cost["tasks"] for cost in one["verify gpufleet.host"])),
        "times faster than stock, 1 host": ratios["1"]["verify"],
        "times faster than stock, 50 hosts": ratios.get("50", {}).get("verify"),
        "audits that a no-change site.yml costs": max(
            _mid(rows["converge gpufleet.host"], "wall_s") / _mid(rows["verify gpufleet.host"], "wall_s")
            for rows in runs.values()
        ),
        "CPU seconds of the audit's module on the target": median(ours["cpu_s"]),
        "MB of memory of the audit's module": ours["rss_mb"],
        **page_figures(measured["pages"]),
    }
    return {"ratios": ratios, "figures": figures}


def page_figures(pages: Row) -> dict[str, float]:
    """The figures of the pages; each of several tries is worth its median."""
    return {
        "MB of the page of 1000 hosts": pages["mb"],
        "CPU seconds to make all pages of 1000 hosts": pages["render_s"],
        "seconds to open the page of 1000 hosts": median(pages["open_s"]),
        "seconds of a key stroke in its filter": median(pages["filter_s"]),
    }


def missed(summed: Row) -> list[str]:
    """A line for each wanted figure that is not met."""
    lines = []
    for name, (limit, is_more) in WANTED.items():
        value = summed["figures"].get(name)
        if value is not None and (value < limit if is_more else value > limit):
            lines.append(f"{name}: {value:.2f}, wanted {'at least' if is_more else 'at most'} {limit:g}")
    return lines


def table(measured: Row, summed: Row) -> str:
    """For people: Markdown that reads well in a terminal."""
    parts = [_speed(measured), _wanted(summed), _target(measured), _tuned(measured), _noticed(measured["noticed"])]
    if measured["simulated"]:
        parts.insert(0, "Simulated on this machine: " + ", ".join(measured["simulated"]))
    return "\n\n".join(parts) + "\n"


def _speed(measured: Row) -> str:
    rows = []
    for hosts, runs in measured["runs"].items():
        for mode in MODES:
            ours, stock = runs.get(f"{mode} gpufleet.host"), runs.get(f"{mode} stock")
            if not ours:
                continue
            rows.append([
                hosts, WORDS[mode], str(len(ours)), f"{ours[-1]['tasks']}", f"{_mid(ours, 'wall_s'):.1f}",
                f"{stock[-1]['tasks']}" if stock else "", f"{_mid(stock, 'wall_s'):.1f}" if stock else "",
                _times(_ratio(runs, mode, "wall_s") if stock else None),
                _times(_ratio(runs, mode, "controller_cpu_s") if stock else None),
            ])  # fmt: skip
    habit = measured["runs"]["1"].get("verify stock, no read-back")
    less = _mid(habit, "wall_s") / _mid(measured["runs"]["1"]["verify gpufleet.host"], "wall_s")
    head = [
        "hosts",
        "mode",
        "runs",
        "tasks",
        "median s",
        "stock tasks",
        "stock median s",
        "wall ratio",
        "controller CPU ratio",
    ]
    note = f"Without facts and read-back, which make the work equal, the stock playbook takes {less:.1f} times as long on 1 host."
    return _markdown(head, rows) + "\n\n" + note


def page_table(figures: Mapping[str, float]) -> str:
    """The figures of the pages alone, for people."""
    return _wanted({"figures": figures}, list(figures))


def _wanted(summed: Row, names: Sequence[str] = tuple(WANTED)) -> str:
    rows = []
    for name in names:
        limit, is_more = WANTED[name]
        value = summed["figures"][name]
        is_met = value is not None and (value >= limit if is_more else value <= limit)
        verdict = "not measured" if value is None else ("met" if is_met else "NOT MET")
        wanted = f"{'at least' if is_more else 'at most'} {limit:g}"
        rows.append([name, wanted, "" if value is None else f"{value:.2f}", verdict])
    return _markdown(["figure", "wanted", "measured", ""], rows)


def _target(measured: Row) -> str:
    (ours,) = measured["payloads"]["gpufleet"]
    stock = measured["payloads"]["peer"]
    cpu = sum(median(row["cpu_s"]) for row in stock)
    rows = [
        ["gpufleet.host", "1", f"{median(ours['cpu_s']):.2f}", f"{ours['rss_mb']:.0f}"],
        ["stock modules", str(len(stock)), f"{cpu:.2f}", f"{max(row['rss_mb'] for row in stock):.0f}"],
    ]
    return _markdown(["on the target, for one host", "module calls", "CPU s", "largest memory MB"], rows)


def _tuned(measured: Row) -> str:
    times = _mid(measured["tuned"]["tuned"], "wall_s") / _mid(measured["tuned"]["audit"], "wall_s")
    return (
        f"`tuned-adm verify` covers the sysctls, huge pages and schedulers (no mount, geometry or slice): "
        f"a playbook with that one task takes {times:.2f} times as long as the whole-host audit."
    )


def _noticed(rows: Sequence[Row]) -> str:
    columns = list(rows[0]["by"])
    # The first row is the control: nothing was changed, and nobody says that it was.
    lines = [[row["drift"], *(row["by"][column] for column in columns), row["what"]] for row in rows[1:]]
    seen = [f"{sum(row['by'][column] == 'noticed' for row in rows)} of {len(rows) - 1}" for column in columns]
    return _markdown(["hand-made change", *columns, "how gpufleet.host names it"], [*lines, ["noticed", *seen, ""]])


def _ratio(runs: Row, mode: str, what: str) -> float:
    return _mid(runs[f"{mode} stock"], what) / _mid(runs[f"{mode} gpufleet.host"], what)


def _mid(costs: Sequence[Row], what: str) -> float:
    return float(median(cost[what] for cost in costs))


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[column]) for line in [head, *rows]) for column in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(word.ljust(w) for word, w in zip(line, widths, strict=True)) + " |" for line in lines
    )
