"""The rules of Chrome's trace event format, as far as a viewer depends on them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

NEEDED = {
    "X": {"name", "cat", "ph", "ts", "dur", "pid", "tid"},
    "M": {"name", "ph", "pid", "tid", "args"},
    "C": {"name", "ph", "ts", "pid", "args"},
    "i": {"name", "ph", "ts", "pid", "tid", "s"},
    "s": {"name", "cat", "ph", "ts", "pid", "tid", "id"},
    "f": {"name", "cat", "ph", "ts", "pid", "tid", "id", "bp"},
}
METADATA = {"process_name", "process_sort_index", "thread_name", "thread_sort_index"}
ROUNDING_US = 0.0005


def violations(document: Any) -> list[str]:
    """What is wrong; nothing if a viewer will show it as it is meant."""
    if not isinstance(document, dict) or not isinstance(document.get("traceEvents"), list):
        return ["no list of traceEvents"]
    out: list[str] = []
    slices: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    flows: dict[tuple[str, str, int], dict[str, dict[str, Any]]] = defaultdict(dict)
    for event in document["traceEvents"]:
        kind = event.get("ph")
        if kind not in NEEDED or not NEEDED[kind] <= set(event):
            out.append(f"incomplete: {event}")
            continue
        if not all(isinstance(event[name], int) for name in ("pid", "tid")):
            out.append(f"pid or tid is no whole number: {event}")
        if kind == "M":
            if event["name"] not in METADATA:
                out.append(f"unknown metadata: {event}")
            continue
        if not isinstance(event["ts"], (int, float)) or event["ts"] < 0:
            out.append(f"time: {event}")
        place = (event["pid"], event["tid"])
        if kind == "X":
            if event["dur"] <= 0:
                out.append(f"no length: {event}")
            slices[place].append((event["ts"], event["ts"] + event["dur"]))
        elif kind in "sf":
            # A viewer joins arrows by name, category and id together.
            ends = flows[event["name"], event["cat"], event["id"]]
            if kind in ends:
                out.append(f"an arrow's end twice: {event}")
            ends[kind] = event
    for place, spans in slices.items():
        out += _crossing(place, spans)
    for ident, ends in flows.items():
        if set(ends) != {"s", "f"}:
            out.append(f"arrow {ident} has {sorted(ends)}")
            continue
        if ends["f"]["ts"] < ends["s"]["ts"] - 2:  # clocks are known to a microsecond each
            out.append(f"arrow {ident} ends before it begins")
        for end in ends.values():
            spans = slices[end["pid"], end["tid"]]
            if not any(one <= end["ts"] < two for one, two in spans):
                out.append(f"arrow {ident} is bound to no slice")
    return out


def _crossing(place: tuple[int, int], spans: list[tuple[float, float]]) -> list[str]:
    """Slices of a thread must lie one after another, or inside one another."""
    out = []
    open_until: list[float] = []
    for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        while open_until and open_until[-1] <= begin + ROUNDING_US:
            open_until.pop()
        if open_until and end > open_until[-1] + ROUNDING_US:
            out.append(f"slices cross in {place} at {begin}")
        open_until.append(end)
    return out
