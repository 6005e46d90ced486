"""What changed between two runs?

Every summary of the one against that of the other: the same key figures, side by side, with their
difference. A change is marked when the two distributions differ by more than chance allows: their
means are further apart than three standard errors, and by more than two per cent.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracer.analysis.exposed import per_layer, per_step
from tracer.analysis.inversion import inverted
from tracer.analysis.message_parts import PARTS, parts_of_each
from tracer.analysis.overheads import overheads
from tracer.analysis.phases import phases
from tracer.format.record import Array
from tracer.round_trip import RoundTrips
from tracer.table import Section, Table

NAME, TITLE = "compare", "Comparison of two runs"
QUESTION = "What changed between two runs?"
ERRORS, LEAST_SHARE = 3.0, 0.02
NOTE = (
    "change: relative to the first run; marked 'more' or 'less' when it is over 2% and over three "
    "standard errors."
)


def quantities(table: RoundTrips) -> dict[str, Array]:
    """What is compared: samples of each, in microseconds or bytes."""
    found = phases(table)
    out: dict[str, Array] = {
        f"{name}_us": found[f"{name}_us"] for name in ("whole", "computation", "communication")
    }
    out.update((f"{samples.kind}_us", samples.overall["us"]) for samples in overheads(table)[1:])
    out["exposed_us"] = per_step(per_layer(table))["us"]
    life = parts_of_each(table)
    out.update((f"life_{part}_us", life[f"{part}_us"]) for part in PARTS)
    out["inverted_bytes"] = inverted(table)["inverted_bytes"]
    return out


def compare(before: RoundTrips, after: RoundTrips) -> Table:
    one, two = quantities(before), quantities(after)
    rows = [{"what": name, **_against(one[name], two[name])} for name in one]
    return Table.of_rows("Before and after", rows, NOTE)


def per_key(before: RoundTrips, after: RoundTrips) -> Table:
    """The whole life of a message, key by key."""
    one, two = parts_of_each(before), parts_of_each(after)
    rows = []
    for key in sorted(set(one["key"].tolist()) & set(two["key"].tolist())):
        mine, others = (t["whole_us"][t["key"] == key] for t in (one, two))
        rows.append({"key": key, "name": before.name(key), **_against(mine, others)})
    names = list(rows[0]) if rows else ["key", "name", *_against(np.zeros(0), np.zeros(0))]
    columns = {name: [row[name] for row in rows] for name in names}
    return Table("Push_Send to Pull_Recv, per key, in microseconds", columns, NOTE)


def _against(before: Array, after: Array) -> dict[str, Any]:
    if not len(before) or not len(after):
        nothing = float("nan")
        return {"before": nothing, "after": nothing, "change": nothing, "verdict": "not in both"}
    one, two = float(before.mean()), float(after.mean())
    error = math.sqrt(float(before.var()) / len(before) + float(after.var()) / len(after))
    change = (two - one) / one if one else (math.inf if two else 0.0)
    marked = abs(two - one) > ERRORS * error and abs(change) > LEAST_SHARE
    verdict = ("more" if two > one else "less") if marked else "same"
    return {"before": one, "after": two, "change": change, "verdict": verdict}


def section(before: RoundTrips, after: RoundTrips) -> Section:
    tables = [compare(before, after), per_key(before, after)]
    return Section(NAME, TITLE, QUESTION, tables, {"compare": tables[0]})
