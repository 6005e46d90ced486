"""How near to the floor each system is on n workers and n servers: all cases in one table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from scripts.lab.benches.case import Row, Setting
from scripts.lab.benches.slow_host import APART
from scripts.lab.benches.speed import SCALES
from scripts.lab.report.markdown_table import Table
from scripts.lab.workloads.job_config import workload_of

# A setting of as many servers as workers, as `Setting` names it.
_PLACED = re.compile(
    r"(?P<n>\d+) workers, (?P=n) servers(?P<beside> beside them)?, (?P<rate>[\d.]+) "
)
_SCALED = re.compile(r"(?P<model>\w+) x (?P<scale>[\d.e-]+), (?P<computed_s>[\d.]+) s")


class Placed(NamedTuple):
    model: str
    share: float  # of the models' sizes in the other benches
    n: int
    rate: float
    beside: bool
    computed: float  # for each second in which a link carries the model one way


def placed(row: Row) -> Placed | None:
    """Where the row's ratio stands in the table; None: it is no such ratio."""
    place, of = _PLACED.match(row.setting), _SCALED.match(row.what)
    if row.metric != "ratio to floor" or place is None or of is None or APART in row.what:
        return None
    # Names have scales in three digits.
    model, scale, rate = of["model"], float(of["scale"]), float(place["rate"])
    share = round(scale / SCALES[model], 2)
    n = int(place["n"])
    way_s = Setting(n, n, 1e6 * rate).link_s(workload_of({"model": model, "scale": scale}).bytes)
    computed = round(float(of["computed_s"]) / way_s, 2)
    return Placed(model, share, n, rate, place["beside"] is not None, computed)


def by_hosts(rows: Iterable[Row]) -> list[str]:
    found: dict[tuple[Placed, str], dict[str, str]] = {}
    models: dict[str, None] = {}
    for row in rows:
        place = placed(row)
        if place is None:
            continue
        models[place.model] = None
        cells = found.setdefault((place._replace(model=""), row.system), {})
        cells[place.model] = f"{row.median:.3f}"
    lines = []
    for (at, system), cells in sorted(found.items(), key=lambda item: by_size(item[0][0])):
        servers = "beside workers" if at.beside else "own hosts"
        case = [f"{at.n}, {at.rate:g} Mbit/s", f"{at.share:g}", f"{at.computed:g}", servers, system]
        lines.append([*case, *(cells.get(model, "") for model in models)])
    title = "Time of an iteration / floor, of all cases below:"
    heads = ["hosts", "of the models", "computation / way", "servers", "system", *models]
    return Table(title, heads, lines).lines()


def by_size(at: Placed) -> tuple[float, int, float, float, bool]:
    return -at.share, at.n, -at.rate, at.computed, at.beside
