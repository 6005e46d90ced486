"""The Prophet bench's cases of one model at all rates, in one table and one chart."""

from __future__ import annotations

from scripts.lab.benches.case import Row
from scripts.lab.benches.prophet import RATED
from scripts.lab.report.markdown_table import Table
from scripts.lab.systems.system import MERCURY

Times = dict[str, dict[str, Row]]  # by system: the rows `time` and `predicted time`
PROPHET, RIVAL = "mercury-prophet", "mercury-bytescheduler"
GAINS = ("over bytescheduler", "over its better tuning", "over mercury")


def rated(what: str) -> tuple[str, float] | None:
    """The model and the share of the balanced rate, if that is what a case is about."""
    found = RATED.fullmatch(what)
    return (found["model"], float(found["share"])) if found else None


def times(rows: list[Row]) -> dict[str, dict[tuple[float, str], Times]]:
    """By model, then by share of the balanced rate and setting."""
    models: dict[str, dict[tuple[float, str], Times]] = {}
    for row in rows:
        case = rated(row.what)
        if case is not None and row.metric in ("time", "predicted time"):
            rates = models.setdefault(case[0], {})
            of = rates.setdefault((case[1], row.setting), {})
            of.setdefault(row.system, {})[row.metric] = row
    return {model: dict(sorted(rates.items())) for model, rates in sorted(models.items())}


def seconds(of: Times, name: str, metric: str = "time") -> float | None:
    row = of.get(name, {}).get(metric)
    return row.median if row else None


def by_rate(rows: list[Row]) -> list[str]:
    """A table for each model, a line for each rate, and Prophet's gains."""
    lines: list[str] = []
    for model, rates in times(rows).items():
        systems = list(dict.fromkeys(name for of in rates.values() for name in of))
        systems.sort(key=lambda name: name != PROPHET)
        heads = ["rate", *(name.replace("mercury-", "") for name in systems), *GAINS]
        rows_of_model = []
        for (share, setting), of in rates.items():
            cells = [f"{share:g}: {setting}", *(_cell(of, name) for name in systems)]
            ours = seconds(of, PROPHET)
            tuned = [seconds(of, name) for name in of if name.startswith(f"{RIVAL} ")]
            better = min((time for time in tuned if time is not None), default=None)
            for rival in (seconds(of, RIVAL), better, seconds(of, MERCURY)):
                cells.append(f"{rival / ours:.2f}" if ours and rival else "")
            rows_of_model.append(cells)
        title = (
            f"{model}: seconds an iteration, in brackets as predicted; and how many times faster "
            f"{PROPHET} is:"
        )
        lines += Table(title, heads, rows_of_model).lines()
    return lines


def _cell(of: Times, name: str) -> str:
    took, foretold = seconds(of, name), seconds(of, name, "predicted time")
    if took is None:
        return ""
    spread = of[name]["time"].spread
    return (
        f"{took:#.3g}"
        + (f" ± {spread / 2:.2g}" if spread > 0 else "")
        + (f" ({foretold:#.3g})" if foretold is not None else "")
    )
