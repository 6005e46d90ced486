"""What a set of durations looks like: extremes, mean, percentiles, distribution curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.format.record import Array, Ints
from tracer.grouping import group
from tracer.round_trip import RoundTrips
from tracer.table import PERCENTILES, Table

CURVE_POINTS = 101
TENTHS = range(0, 101, 10)
CURVE_NOTE = "p30: 30 % of all values are at most this; p0 is the smallest, p100 the largest."


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
    keys, named = of_each_key(samples, table)
    return _with_keys(keys, summaries(title, named, note))


def of_each_key(samples: Table, table: RoundTrips) -> tuple[Ints, list[tuple[str, Array]]]:
    """The keys of samples that have the columns key and us; of each its name and values."""
    groups = group(samples["key"])
    bounds = np.append(groups.begin, len(groups.order))
    named = [
        (table.name(int(key)), samples["us"][groups.order[one:two]])
        for key, one, two in zip(groups.keys[0], bounds[:-1], bounds[1:])
    ]
    return groups.keys[0], named


def _with_keys(keys: Ints, found: Table) -> Table:
    rest = {name: values for name, values in found.columns.items() if name != "what"}
    return Table(found.title, {"key": keys, "name": found["what"], **rest}, found.note)


def distributions(title: str, named: Sequence[tuple[str, Array]], unit: str = "_us") -> Table:
    """One row per set of values: its distribution curve, in steps of a tenth."""
    at = [np.percentile(values, TENTHS) if len(values) else None for _, values in named]
    nothing = np.full(len(TENTHS), np.nan)
    points = np.asarray([nothing if row is None else row for row in at]).reshape(-1, len(TENTHS))
    columns: dict[str, Any] = {"what": [name for name, _ in named]}
    columns["count"] = [len(values) for _, values in named]
    columns.update((f"p{tenth}{unit}", points[:, i]) for i, tenth in enumerate(TENTHS))
    return Table(title, columns, CURVE_NOTE)


def distributions_per_key(title: str, samples: Table, table: RoundTrips) -> Table:
    keys, named = of_each_key(samples, table)
    return _with_keys(keys, distributions(title, named))


def curves(title: str, named: Sequence[tuple[str, Array]], points: int = CURVE_POINTS) -> Table:
    """For a picture: of each set of values, which share of them is at most `value`."""
    named = [(name, values) for name, values in named if len(values)]
    share = np.linspace(0, 1, points)
    at = [np.quantile(values, share) for _, values in named]
    return Table(
        title,
        {
            "what": np.repeat(np.asarray([name for name, _ in named], dtype=object), points),
            "value": np.concatenate(at) if at else np.zeros(0),
            "share": np.tile(share, len(at)),
        },
    )
