"""What a captured run says of its job, in the order of SketchDLC's tables and figures.

Of both modes, under the same names: docs/trace-format.md has what the records mean in each.
"""

from __future__ import annotations

import numpy as np

from scripts.lab.benches.case import Figure, Figures
from tracer.analysis.overheads import overheads
from tracer.analysis.phases import phases
from tracer.analysis.sizes import per_iteration, per_key_and_operation, training_columns
from tracer.format.record import Array
from tracer.round_trip import RoundTrips
from tracer.run import Run

DATA, LENGTHS = "data of a worker's iteration (Table 5)", "bytes beside the payload (Tables 6, 7)"
PHASES, OVERHEADS = "phases of an iteration (Figs 9, 10)", "overheads (Figs 11 to 18)"
# What a message is, and whether it has a payload.
MESSAGES = {
    "Push_Send_Worker": ("push", True),
    "Push_Recv_Worker": ("confirmation", False),
    "Pull_Send_Worker": ("request", False),
    "Pull_Recv_Worker": ("answer", True),
}
# In mercury mode, neither is sent.
UNITS = {"computation": (1e3, "ms"), "search": (1.0, "us"), "update": (1.0, "us")}
UNITS["synchronisation"] = (1.0, "us")


def captured_figures(run: Run, table: RoundTrips) -> dict[str, Figures]:
    """By table; of jobs with one server, for lengths are those of whole tensors."""
    return {
        DATA: _data(run),
        LENGTHS: _lengths(run),
        PHASES: _phases(table),
        OVERHEADS: _overheads(table),
    }


def _data(run: Run) -> Figures:
    found = per_iteration(training_columns(run))
    figures = {
        name: Figure(float(np.median(found[column])) / run.num_workers / 1e6, "MB")
        for name, column in (
            ("to the server", "to_servers_bytes"),
            ("to the worker", "to_workers_bytes"),
        )
    }
    steps = [trace.iteration() for trace in run.workers]
    of_each = [np.median(np.unique(step[step >= 0], return_counts=True)[1]) for step in steps]
    return {**figures, "records": Figure(float(np.mean(of_each)), "")}


def _lengths(run: Run) -> Figures:
    found: dict[str, list[int]] = {}
    for row in per_key_and_operation(training_columns(run), run).rows():
        name, carries = MESSAGES[row["operation"]]
        payload = row["tensor_bytes"] if carries else 0
        beside = found.setdefault(name, [])
        beside += [row["min_bytes"] - payload, row["max_bytes"] - payload]
    return {
        f"{name}, {which}": Figure(float(how(values)), "bytes")
        for name, values in found.items()
        for which, how in (("least", min), ("most", max))
    }


def _phases(table: RoundTrips) -> Figures:
    found = phases(table)
    overlap = 100 * np.asarray(found["overlap_ratio"])
    return {
        "computation": _mean(np.asarray(found["computation_us"]) / 1e3, "ms"),
        "communication": _mean(np.asarray(found["communication_us"]) / 1e3, "ms"),
        "overlap": _mean(overlap, "%"),
        "overlap, 10 % of iterations below": Figure(float(np.percentile(overlap, 10)), "%"),
        "overlap, 10 % above": Figure(float(np.percentile(overlap, 90)), "%"),
    }


def _overheads(table: RoundTrips) -> Figures:
    found: Figures = {}
    for samples in overheads(table):
        if samples.kind in UNITS:
            scale, unit = UNITS[samples.kind]
            values = np.asarray(samples.overall["us"]) / scale
            found[samples.kind] = _mean(values, unit)
            found[f"{samples.kind}, 10 % above"] = Figure(float(np.percentile(values, 90)), unit)
    return found


def _mean(values: Array, unit: str) -> Figure:
    return Figure(float(values.mean()), unit)
