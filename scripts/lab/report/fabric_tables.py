"""MLfabric's races: the authors' nine cells in one table, and a line for each race."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace

from scripts.lab.benches.case import Row
from scripts.lab.benches.fabric import AT_MOST_S, SCALE, seed_of
from scripts.lab.benches.fabric_prediction import rival
from scripts.lab.benches.race_prediction import Conditions
from scripts.lab.report.markdown_table import Table
from scripts.lab.report.results import APART, by_case, cell, number, quotients
from scripts.lab.systems.system import ASYNC, GLOO, TREE

SHARINGS = 5  # simulations of a race, which links that are shared otherwise may change by a tenth
RIVALS = (GLOO, TREE, ASYNC, "fabric A-30", "fabric A-60", "fabric S")
LDA = "LDA, "
_CELL = re.compile(
    r"(?P<stragglers>C\d) (?P<network>N\d), to (?P<target>[\d.]+)(?:, (?P<servers>\d+) servers?)?$"
)
_MORE = {
    "gradients a second": "gradients / s, to its end",
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
    "to the disk, an update": "to the disk, an update [MB]",
    "lost with the server, at most": "lost with the server, at most",
    "accuracy in the end": "accuracy in the end",
    "processors": "processors [%]",
}


def arrivals(times: Sequence[float], arrived: Sequence[float]) -> list[float]:
    """Of each repeat: when it arrived, which may be never. `arrived`: 1 of those that did."""
    left = iter(times)
    return [next(left) if came else math.inf for came in arrived] if arrived else [*times]


def _arrivals(of: dict[str, Row]) -> list[float]:
    times, arrived = (of[name].values if name in of else [] for name in ("time", "arrived"))
    return arrivals(times, arrived)


def _time(of: dict[str, Row]) -> str:
    """That of the race, or how long it was run in vain; and how many arrived, if not all did."""
    times = _arrivals(of)
    came = sum(map(math.isfinite, times))
    if came == len(times) > 0:
        return cell(of["time"])
    middle = statistics.median_high(times) if times else math.inf
    text = number(middle) if math.isfinite(middle) else f"> {number(of['ran for'].median)}"
    return f"{text}, {came} of {len(times)}" if came else text


def _cells(rows: Sequence[Row]) -> Iterator[tuple[re.Match[str], dict[str, dict[str, Row]]]]:
    for what, of in sorted(by_case(rows).items()):
        if match := _CELL.match(what):
            yield match, of


def _beside_ring(of: dict[str, dict[str, Row]], name: str) -> str:
    """A rival's time, and the ring's over it."""
    if name not in of:
        return ""
    time = _time(of[name])
    ring, other = (_arrivals(of.get(system, {})) for system in (GLOO, name))
    if name == GLOO or not (ring and other and math.isfinite(statistics.median_high(other))):
        return time
    by_turns = of[GLOO]["time"].run == of[name]["time"].run
    gain = statistics.median(quotients(ring, other, by_turns))
    return f"{time} ({gain:.2f}{'' if by_turns else f', {APART}'})"


def by_cell(rows: Sequence[Row]) -> list[str]:
    found: dict[str, list[list[str]]] = {}
    for match, of in _cells(rows):
        cells = [_beside_ring(of, name) for name in RIVALS]
        servers = f", servers: {match['servers']}" if match["servers"] else ""
        line = [f"{match['stragglers']} {match['network']}{servers}", *cells]
        found.setdefault(match["target"], []).append(line)
    lines: list[str] = []
    for target, of_target in sorted(found.items()):
        title = (
            f"Seconds until {100 * float(target):g} % are known, and in brackets the ring's over "
            f"it, the median of the repeats' own quotients ({APART}: of the medians):"
        )
        lines += Table(title, ["", *RIVALS], of_target).lines()
    return lines


def _rates(name: str, match: re.Match[str], of: dict[str, Row]) -> list[tuple[float, float]]:
    """Of each repeat, with the draws that it had: simulated and measured."""
    if "gradients" not in of:
        return []
    at_most_s = AT_MOST_S[float(match["target"])]
    gradients = of["gradients"].values
    times = _arrivals(of)
    rates = []
    for repeat, made in enumerate(gradients):
        seconds = min(at_most_s, times[repeat]) if len(times) == len(gradients) else at_most_s
        conditions = Conditions(
            match["stragglers"],
            match["network"],
            SCALE,
            servers=int(match["servers"] or 1),
            seed=seed_of(repeat),
        )
        drawn = [rival(name, replace(conditions, sharing=n)) for n in range(SHARINGS)]
        simulated = [race for race in drawn if race is not None]
        if not simulated:
            return []
        # In step, all repeats see the same models and arrive with the same iteration. Some make one
        # more before they hear that it is over; others begin none after that.
        count = min(gradients) if simulated[0].together else made
        foretold_s = statistics.median(race.begun_at(round(count)) for race in simulated)
        rates.append((count / foretold_s, count / seconds))
    return rates


def foretold(rows: Sequence[Row]) -> list[str]:
    """Gradients a second until the race ended: simulated, measured, and how far that is apart."""
    found = []
    for match, of_race in _cells(rows):
        cells = []
        for name in RIVALS:
            rates = _rates(name, match, of_race.get(name, {}))
            if not rates:
                cells.append("")
                continue
            told, measured = (statistics.median(rate) for rate in zip(*rates))
            ratio = statistics.median(ours / theirs for ours, theirs in rates)
            cells.append(f"{number(told)} / {number(measured)} ({ratio:.2f})")
        if any(cells):
            found.append([match.string, *cells])
    title = (
        "Gradients a second until the race ended, as a simulation in virtual time foretells them "
        "(`scripts/lab/benches/fabric_prediction.py`; drawn rates and stragglers, MLfabric's own "
        "planner; one assumption, how unevenly connections share a link, was made after a look at "
        "plain async), over what was measured, and in brackets the median of the repeats' own "
        "quotients:"
    )
    return Table(title, ["", *RIVALS], found).lines()


def sampling(rows: Sequence[Row]) -> list[str]:
    """Topics of documents: how often each worker went over its own until the target was reached."""
    metrics = ("dropped", "delay, median", "delay, most", "log-likelihood in the end")
    found = []
    for what, of_race in sorted(by_case(rows).items()):
        if not what.startswith(LDA):
            continue
        for system, of in of_race.items():
            workers = int(of["gradients"].setting.split()[0])
            sweeps = number(of["gradients"].median / workers)
            cells = [_time(of), sweeps, *(cell(of.get(metric)) for metric in metrics)]
            found.append([what[len(LDA) :], system, *cells])
    heads = ["", "system", "time [s]", "sweeps of a worker", "dropped [%]", "delay, median", "most"]
    title = "Topics of documents, until a held-out word has so much log-likelihood:"
    return Table(title, [*heads, metrics[-1]], found).lines()


def by_race(rows: Sequence[Row]) -> list[str]:
    most = max((len(row.values) for row in rows), default=1)
    times = "Each race was run once" if most == 1 else f"Each race was run up to {most} times"
    settings = ", ".join(sorted({row.setting for row in rows}))
    found = [
        [what, system, _time(of), *(cell(of.get(metric)) for metric in _MORE)]
        for what, of_race in sorted(by_case(rows).items())
        if not what.startswith(LDA)
        for system, of in of_race.items()
    ]
    heads = ["race", "system", "time [s]", *_MORE.values()]
    return Table(f"{times}; {settings}:", heads, found).lines()
