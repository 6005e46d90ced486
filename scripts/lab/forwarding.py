"""What it is worth to pass sums and models on packet by packet instead of whole: by plans, by
simulated races, and by the measured ones that docs/benchmarks has; what it would be worth to plan a
batch while others are under way; and what several servers are. Nothing is sent. docs/fabric-plan.md
has what it prints."""

from __future__ import annotations

import argparse
import json
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from pslite_ext import _core
from scripts.lab.benches.case import Row
from scripts.lab.benches.fabric import PARTIAL, SCALE
from scripts.lab.benches.fabric_prediction import Fabric, FabricByPackets
from scripts.lab.benches.overlapping_prediction import Overlapping
from scripts.lab.benches.race_prediction import Conditions, Simulated
from scripts.lab.report.results import ROOT, Results

Race = tuple[str, str]  # its stragglers and its network
RACES = (("C1", "N1"), ("C1", "N2"), ("C2", "N1"), ("C2", "N2"))
SEEDS = range(1, 6)
SECONDS = 20.0
WAYS = {"whole": Fabric, "packets": FabricByPackets}
BOUND = 30
# If batches overlap: with so many updates that wait for a plan, and in these races.
LEAST = (1, 4, 12)
OVERLAPPING = (("C1", "N1"), ("C2", "N2"))
SERVERS = (1, 2, 3)
MEASURED = {1: "1 server", 3: "3 servers"}
SERVING = (("C1", "N1"), ("C3", "N1"), ("C2", "N2"), ("C1", "N3"))


def planned(way: type[Fabric], conditions: Conditions) -> tuple[float, float]:
    """When a batch of all workers is at the server, and when all have the model."""
    batch = way(conditions, None).batch(range(conditions.workers), range(4))
    text = json.dumps(batch).encode()
    plan = json.loads(_core.fabric_plan(text))
    said = re.search(r"answered by ([0-9.]+) s", _core.fabric_tree(text))
    assert said is not None
    return float(plan["commits"][-1]["time_s"]), float(said[1])


def _measured(rows: Sequence[Row], race: str, system: str, note: str = "") -> str:
    """Where it was."""
    found = [
        row.median
        for row in rows
        if (row.bench, row.what, row.system) == ("fabric", f"{race}, to {PARTIAL:g}{note}", system)
        and row.metric == "gradients a second"
    ]
    return f"{found[0]:.1f}" if found else ""


def _rate(made: Simulated) -> float:
    return made.gradients(SECONDS) / SECONDS


def _simulated(way: type[Fabric], bound: int | None, races: Sequence[Conditions]) -> float:
    return statistics.median(_rate(way(race, bound)) for race in races)


def _overlapping(races: Sequence[Conditions]) -> Iterator[float]:
    """Of one batch at a time, and of batches that overlap."""
    for bound in (BOUND, None):
        yield _simulated(FabricByPackets, bound, races)
        for least in LEAST:
            yield statistics.median(_rate(Overlapping(race, bound, least)) for race in races)


def _passing_on(race: Race, rows: Sequence[Row]) -> list[str]:
    races = [Conditions(*race, SCALE, seed=seed) for seed in SEEDS]
    of_plans = [[planned(way, race) for race in races] for way in WAYS.values()]
    cells = [
        f"{statistics.median(times[part] for times in of_way):.2f}"
        for part in (0, 1)
        for of_way in of_plans
    ]
    cells += [
        f"{_simulated(way, bound, races):.1f}" for bound in (BOUND, None) for way in WAYS.values()
    ]
    return cells + [
        _measured(rows, " ".join(race), f"fabric {what}{suffix}")
        for what in ("A-30", "S")
        for suffix in (", whole", "")
    ]


def _one_at_a_time(race: Race, _rows: Sequence[Row]) -> list[str]:
    races = [Conditions(*race, SCALE, seed=seed) for seed in SEEDS[:3]]
    return [f"{rate:.1f}" for rate in _overlapping(races)]


def _by_servers(race: Race, rows: Sequence[Row]) -> list[str]:
    cells = []
    for servers in SERVERS:
        races = [Conditions(*race, SCALE, servers=servers, seed=seed) for seed in SEEDS[:3]]
        cells.append(f"{_simulated(FabricByPackets, BOUND, races):.1f}")
    notes = [f", {note}" for note in MEASURED.values()]
    return cells + [_measured(rows, " ".join(race), "fabric A-30", note) for note in notes]


class Comparison(NamedTuple):
    """A table, with a row for each race."""

    heads: tuple[str, ...]
    races: tuple[Race, ...]
    cells: Callable[[Race, Sequence[Row]], list[str]]

    def title(self) -> str:
        return f"| | {' | '.join(self.heads)} |\n|{'---|' * (len(self.heads) + 1)}"

    def row(self, race: Race, rows: Sequence[Row]) -> str:
        return f"| {' '.join(race)} | {' | '.join(self.cells(race, rows))} |"


COMPARISONS = (
    Comparison(
        (
            *(f"{what}, {way}" for what in ("push [s]", "model [s]") for way in WAYS),
            *(f"{what} [gradients/s], {way}" for what in ("A-30", "S") for way in WAYS),
            *(f"{what} measured, {way}" for what in ("A-30", "S") for way in WAYS),
        ),
        RACES,
        _passing_on,
    ),
    Comparison(
        tuple(f"{m}, {how}" for m in ("A-30", "S") for how in ("one at a time", *map(str, LEAST))),
        OVERLAPPING,
        _one_at_a_time,
    ),
    Comparison(
        (
            *(f"A-30, servers: {servers}" for servers in SERVERS),
            *(f"measured: {servers}" for servers in MEASURED),
        ),
        SERVING,
        _by_servers,
    ),
)


def measured_rows() -> list[Row]:
    return Results((ROOT / "docs" / "benchmarks" / "results").glob("fabric_*.json")).rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args()
    rows = measured_rows()
    for number, each in enumerate(COMPARISONS):
        print("\n" * (number > 0) + each.title())
        for race in each.races:
            print(each.row(race, rows), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
