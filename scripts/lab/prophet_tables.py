"""The Prophet bench's cases of one model at all rates, in one table and one chart."""

from __future__ import annotations

from typing import Any, Optional

from bench_prophet import RATED
from systems import MERCURY

RowFields = dict[str, Any]
PROPHET, RIVAL = "mercury-prophet", "mercury-bytescheduler"
Times = dict[str, tuple[float, Optional[float]]]  # by system: measured, predicted


def rated(what: str) -> tuple[str, float] | None:
    """The model and the share of the balanced rate, if that is what a case is about."""
    found = RATED.fullmatch(what)
    return (found["model"], float(found["share"])) if found else None


def times(rows: list[RowFields]) -> dict[str, dict[float, Times]]:
    """By model and rate."""
    measured: dict[tuple[str, float], dict[str, float]] = {}
    predicted: dict[tuple[str, float], dict[str, float]] = {}
    for row in rows:
        case = rated(row["what"])
        if case is not None and row["metric"] in ("time", "predicted time"):
            kind = measured if row["metric"] == "time" else predicted
            kind.setdefault(case, {})[row["system"]] = row["median"]
    models: dict[str, dict[float, Times]] = {}
    for (model, share), of in sorted(measured.items()):
        also = predicted.get((model, share), {})
        models.setdefault(model, {})[share] = {name: (t, also.get(name)) for name, t in of.items()}
    return models


def by_rate(rows: list[RowFields]) -> list[str]:
    """A table for each model, a line for each rate, and Prophet's gains."""
    lines = []
    for model, rates in times(rows).items():
        systems = list(dict.fromkeys(name for of in rates.values() for name in of))
        systems.sort(key=lambda name: name != PROPHET)
        gains = ["over bytescheduler", "over its better tuning", "over mercury"]
        lines += [
            "",
            f"{model}: seconds an iteration, in brackets as predicted; how many times faster "
            f"{PROPHET} is:",
            "",
            "| rate | " + " | ".join(name.replace("mercury-", "") for name in systems)
            + " | " + " | ".join(gains) + " |",
            "|---" * (1 + len(systems) + len(gains)) + "|",
        ]  # fmt: skip
        for share, of in rates.items():
            cells = [_seconds(of.get(name)) for name in systems]
            tuned = [of[name][0] for name in of if name.startswith(f"{RIVAL} ")]
            rivals = [_measured(of, RIVAL), min(tuned, default=None), _measured(of, MERCURY)]
            cells += [_times_faster(_measured(of, PROPHET), rival) for rival in rivals]
            lines.append(f"| {share:g} | " + " | ".join(cells) + " |")
    return lines


def _measured(of: Times, name: str) -> float | None:
    return of[name][0] if name in of else None


def _seconds(found: tuple[float, float | None] | None) -> str:
    if found is None:
        return ""
    measured, predicted = found
    return f"{measured:#.3g}" + (f" ({predicted:#.3g})" if predicted is not None else "")


def _times_faster(ours: float | None, theirs: float | None) -> str:
    return f"{theirs / ours:.2f}" if ours and theirs else ""
