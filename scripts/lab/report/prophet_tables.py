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


def measured(of: Times, name: str) -> float | None:
    return float(of[name]["time"].median) if "time" in of.get(name, {}) else None


def predicted(of: Times, name: str) -> float | None:
    row = of.get(name, {}).get("predicted time")
    return float(row.median) if row else None


def by_rate(rows: list[Row]) -> list[str]:
    """A table for each model, a line for each rate, and Prophet's gains."""
    lines: list[str] = []
    for model, rates in times(rows).items():
        systems = list(dict.fromkeys(name for of in rates.values() for name in of))
        systems.sort(key=lambda name: name != PROPHET)
        heads = ["rate", *(name.replace("mercury-", "") for name in systems), *GAINS]
        rows_of_model = []
        for (share, setting), of in rates.items():
            cells = [f"{share:g}: {setting}", *(_seconds(of, name) for name in systems)]
            tuned = [measured(of, name) for name in of if name.startswith(f"{RIVAL} ")]
            better = min((time for time in tuned if time is not None), default=None)
            for rival in (measured(of, RIVAL), better, measured(of, MERCURY)):
                cells.append(_times_faster(measured(of, PROPHET), rival))
            rows_of_model.append(cells)
        title = (
            f"{model}: seconds an iteration, in brackets as predicted; and how many times faster "
            f"{PROPHET} is:"
        )
        lines += Table(title, heads, rows_of_model).lines()
    return lines


def _seconds(of: Times, name: str) -> str:
    took, foretold = measured(of, name), predicted(of, name)
    if took is None:
        return ""
    spread = of[name]["time"].spread
    return (
        f"{took:#.3g}"
        + (f" ± {spread / 2:.2g}" if spread > 0 else "")
        + (f" ({foretold:#.3g})" if foretold is not None else "")
    )


def _times_faster(ours: float | None, theirs: float | None) -> str:
    return f"{theirs / ours:.2f}" if ours and theirs else ""
