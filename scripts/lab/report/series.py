"""What was seen while a case ran: of it, what pictures draw. The rest is not kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

BIN_S = 0.25  # of a chart's points
SHORT_S = 3.0  # of an iteration's throughput, which is shown closely
Points = Sequence[Sequence[float]]
KINDS = {"throughput", "timeline", "blocks", "curve"}
# By bench, how the cases begin of whose last iteration each layer is drawn.
TIMED = {"iteration": "", "prophet": "Fig. 8, resnet152"}


def drawn(every: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Of all cases' systems."""
    kept = []
    for series in every:
        shown = {**series, "curve": _means(series.get("curve", ()))}
        if series["bench"] == "iteration":
            close = [point for point in series.get("throughput", ()) if point[0] <= SHORT_S]
            shown["throughput"] = close
        else:
            shown["throughput"] = _means(series.get("throughput", ()))
        begins = TIMED.get(series["bench"])
        if begins is None or not series["what"].startswith(begins):
            shown["timeline"] = ()
        points = {kind: _rounded(shown[kind]) for kind in sorted(KINDS) if shown.get(kind)}
        if points:
            place = {name: series[name] for name in ("bench", "what", "setting", "system")}
            kept.append({**place, **points})
    return kept


def _rounded(points: Points) -> Points:
    return [[float(f"{x:.4g}") for x in point] for point in points]


def _means(points: Points) -> Points:
    """Of each `BIN_S`, which is named by its middle."""
    bins: dict[int, list[Sequence[float]]] = {}
    for point in points:
        bins.setdefault(int(point[0] / BIN_S), []).append(point[1:])
    return [
        [BIN_S * (i + 0.5), *(sum(column) / len(column) for column in zip(*rows))]
        for i, rows in sorted(bins.items())
    ]
