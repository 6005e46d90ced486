"""MLfabric's races: the authors' nine cells in one table, and a line for each race."""

from __future__ import annotations

import re
from collections.abc import Sequence

from scripts.lab.benches.fabric import AT_MOST_S, SCALE
from scripts.lab.benches.race_prediction import Conditions, rival
from scripts.lab.report.results import RowFields, number
from scripts.lab.systems.system import ASYNC, GLOO, TREE

RIVALS = (GLOO, TREE, ASYNC, "fabric A-30", "fabric A-60", "fabric S")
LDA = "LDA, "
_CELL = re.compile(r"(?P<stragglers>C\d) (?P<network>N\d), to (?P<target>[\d.]+)$")
_MORE = {
    "gradients a second": "gradients / s",
    "delay, median": "delay, median",
    "delay, 95 %": "95 %",
    "delay, most": "most",
    "dropped": "dropped [%]",
    "groups": "groups",
    "control, median": "control, median [ms]",
    "control, 99 %": "99 % [ms]",
    "wait for a plan, median": "wait, median [ms]",
    "wait for a plan, 99 %": "99 % [ms]",
    "models passed on": "models passed on [%]",
    "over slow links": "over slow links [%]",
    "to the replica, an update": "to the replica, an update [MB]",
    "accuracy in the end": "accuracy in the end",
    "processors": "processors [%]",
}
Races = dict[str, dict[str, dict[str, RowFields]]]  # by case, system and metric


def _races(rows: Sequence[RowFields]) -> Races:
    found: Races = {}
    for row in rows:
        found.setdefault(row["what"], {}).setdefault(row["system"], {})[row["metric"]] = row
    return found


def _cell(row: RowFields | None) -> str:
    if row is None:
        return ""
    spread = f" ± {number(row['spread'] / 2)}" if row["spread"] > 0 else ""
    return number(row["median"]) + spread


def _time(of: dict[str, RowFields]) -> str:
    """That of the race, or how long it was run in vain."""
    return _cell(of["time"]) if "time" in of else f"> {number(of['ran for']['median'])}"


def by_cell(rows: Sequence[RowFields]) -> list[str]:
    races = _races(rows)
    targets = sorted({m["target"] for what in races if (m := _CELL.match(what))})
    lines: list[str] = []
    for target in targets:
        lines += ["", f"Seconds until {100 * float(target):g} % are known, and the ring's over it:"]
        lines += ["", "| | " + " | ".join(RIVALS) + " |", "|---" * (1 + len(RIVALS)) + "|"]
        for what, of in sorted(races.items()):
            match = _CELL.match(what)
            if match is None or match["target"] != target:
                continue
            cells = []
            for name in RIVALS:
                cell = _time(of[name]) if name in of else ""
                both = [of.get(n, {}).get("time") for n in (GLOO, name)]
                if name != GLOO and both[0] is not None and both[1] is not None:
                    cell += f" ({both[0]['median'] / both[1]['median']:.2f})"
                cells.append(cell)
            lines.append(f"| {match['stragglers']} {match['network']} | {' | '.join(cells)} |")
    return lines


def foretold(rows: Sequence[RowFields]) -> list[str]:
    """Gradients a second until the race ended: simulated, measured, and the one over the other."""
    lines: list[str] = []
    for what, of_race in sorted(_races(rows).items()):
        match = _CELL.match(what)
        if match is None:
            continue
        conditions = Conditions(match["stragglers"], match["network"], SCALE)
        cells = []
        for name in RIVALS:
            of = of_race.get(name, {})
            simulated = rival(name, conditions)
            if "gradients" not in of or simulated is None:
                cells.append("")
                continue
            seconds = of["time"]["median"] if "time" in of else AT_MOST_S[float(match["target"])]
            rates = simulated.gradients(seconds) / seconds, of["gradients"]["median"] / seconds
            ratio = f"{rates[0] / rates[1]:.2f}" if rates[1] > 0 else ""
            cells.append(f"{number(rates[0])} / {number(rates[1])} = {ratio}")
        if any(cells):
            lines.append(f"| {what} | {' | '.join(cells)} |")
    if not lines:
        return []
    intro = (
        "Gradients a second until the race ended, as a simulation in virtual time foretells them "
        "(`scripts/lab/benches/race_prediction.py`; drawn rates and stragglers, MLfabric's own "
        "planner; one assumption, how unevenly connections share a link, was made after a look at "
        "plain async), over what was measured:"
    )
    head = "| | " + " | ".join(RIVALS) + " |"
    return ["", intro, "", head, "|---" * (1 + len(RIVALS)) + "|", *lines]


def sampling(rows: Sequence[RowFields]) -> list[str]:
    """Topics of documents: how often each worker went over its own until the target was reached."""
    lines: list[str] = []
    for what, of_race in sorted(_races(rows).items()):
        if not what.startswith(LDA):
            continue
        for system, of in of_race.items():
            workers = int(of["gradients"]["setting"].split()[0])
            sweeps = number(of["gradients"]["median"] / workers)
            metrics = ("dropped", "delay, median", "delay, most", "log-likelihood in the end")
            cells = " | ".join(_cell(of.get(metric)) for metric in metrics)
            lines.append(f"| {what[len(LDA) :]} | {system} | {_time(of)} | {sweeps} | {cells} |")
    if not lines:
        return []
    head = (
        "| | system | time [s] | sweeps of a worker | dropped [%] | delay, median | most "
        "| log-likelihood in the end |"
    )
    intro = "Topics of documents, until a held-out word has so much log-likelihood:"
    return ["", intro, "", head, "|---" * 8 + "|", *lines]


def by_race(rows: Sequence[RowFields]) -> list[str]:
    most = max((row["repeats"] for row in rows), default=1)
    times = "Each race was run once" if most == 1 else f"Each race was run up to {most} times"
    settings = ", ".join(sorted({row["setting"] for row in rows}))
    lines = ["", f"{times}; {settings}:", ""]
    lines += ["| race | system | time [s] | " + " | ".join(_MORE.values()) + " |"]
    lines.append("|---" * (3 + len(_MORE)) + "|")
    for what, of_race in sorted(_races(rows).items()):
        if what.startswith(LDA):
            continue
        for system, of in of_race.items():
            more = " | ".join(_cell(of.get(metric)) for metric in _MORE)
            lines.append(f"| {what} | {system} | {_time(of)} | {more} |")
    return lines
