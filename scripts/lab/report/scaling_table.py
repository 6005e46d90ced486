"""How near to the floor each system is on n workers and n servers: all cases in one table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from scripts.lab.benches.slow_host import APART
from scripts.lab.benches.speed import SCALES
from scripts.lab.report.results import RowFields

# A setting of as many servers as workers, as `Setting` names it.
_PLACED = re.compile(
    r"(?P<n>\d+) workers, (?P=n) servers(?P<beside> beside them)?, (?P<rate>[\d.]+) "
)
_SCALED = re.compile(r"(?P<model>\w+) x (?P<scale>[\d.e-]+)")


class Placed(NamedTuple):
    model: str
    share: float  # of the models' sizes in the other benches
    n: int
    rate: float
    beside: bool


def placed(row: RowFields) -> Placed | None:
    """Where the row's ratio stands in the table; None: it is no such ratio."""
    place, of = _PLACED.match(row["setting"]), _SCALED.match(row["what"])
    if row["metric"] != "ratio to floor" or place is None or of is None or APART in row["what"]:
        return None
    # Names have scales in three digits.
    share = round(float(of["scale"]) / SCALES[of["model"]], 2)
    beside = place["beside"] is not None
    return Placed(of["model"], share, int(place["n"]), float(place["rate"]), beside)


def by_hosts(rows: Iterable[RowFields]) -> list[str]:
    found: dict[tuple[Placed, str], dict[str, str]] = {}
    models: dict[str, None] = {}
    for row in rows:
        place = placed(row)
        if place is None:
            continue
        models[place.model] = None
        line = found.setdefault((place._replace(model=""), row["system"]), {})
        line[place.model] = f"{row['median']:.3f}"
    if not found:
        return []
    lines = ["", "Time of an iteration / floor, of all cases below:", ""]
    lines.append("| hosts | of the models | servers | system | " + " | ".join(models) + " |")
    lines.append("|---" * (4 + len(models)) + "|")
    for (at, system), cells in sorted(found.items(), key=lambda item: _order(item[0][0])):
        where = "beside workers" if at.beside else "own hosts"
        heads = (f"{at.n}, {at.rate:g} Mbit/s", f"{at.share:g}", where, system)
        lines.append("| " + " | ".join([*heads, *(cells.get(m, "") for m in models)]) + " |")
    return lines


def _order(at: Placed) -> tuple[float, int, float, bool]:
    return -at.share, at.n, -at.rate, at.beside
