"""What a set of durations looks like: extremes, mean, percentiles, distribution curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.format.record import Array
from tracer.grouping import group
from tracer.round_trip import RoundTrips
from tracer.table import PERCENTILES, Table

CURVE_POINTS = 101


def describe(values: Array) -> dict[str, float]:
    """count, min, mean, max and percentiles; all but count are nan of nothing."""
    if not len(values):
        names = ["min", "mean", "max", *(f"p{p}" for p in PERCENTILES)]
        return {"count": 0, **{name: float("nan") for name in names}}
    out: dict[str, float] = {
        "count": len(values),
        "min": float(values.min()),
        "mean": float(values.mean()),
        "max": float(values.max()),
    }
    at = np.percentile(values, PERCENTILES)
    out.update((f"p{p}", float(v)) for p, v in zip(PERCENTILES, at))
    return out


def summaries(title: str, named: Sequence[tuple[str, Array]], note: str = "") -> Table:
    """One row per set of values."""
    rows = [describe(values) for _, values in named]
    columns: dict[str, Any] = {"what": [name for name, _ in named]}
    for name in describe(np.zeros(0)):
        columns[name if name == "count" else f"{name}_us"] = [row[name] for row in rows]
    return Table(title, columns, note)


def per_key(title: str, samples: Table, table: RoundTrips, note: str = "") -> Table:
    """A row per key of samples that have the columns key and us."""
    groups = group(samples["key"])
    bounds = np.append(groups.begin, len(groups.order))
    named = [
        (table.name(int(key)), samples["us"][groups.order[one:two]])
        for key, one, two in zip(groups.keys[0], bounds[:-1], bounds[1:])
    ]
    out = summaries(title, named, note)
    rest = {name: values for name, values in out.columns.items() if name != "what"}
    columns = {"key": groups.keys[0], "name": out["what"], **rest}
    return Table(title, columns, note)


def curve(title: str, values: Array) -> Table:
    """The distribution: which share of the values is at most so many microseconds."""
    share = np.linspace(0, 1, CURVE_POINTS)
    at = np.quantile(values, share) if len(values) else np.zeros(0)
    return Table(title, {"us": at, "share": share[: len(at)]})
