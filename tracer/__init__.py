"""Reads, checks, analyses, shows and replays traces.

    import tracer
    run = tracer.read_run("traces/")
    round_trips, alignment = tracer.aligned(run)
    for section in tracer.sections(run, round_trips): ...

Names are imported when they are first used, so that `import tracer` needs no NumPy.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "TraceError": "tracer.errors",
    "Header": "tracer.format.record",
    "Records": "tracer.format.record",
    "Trace": "tracer.format.record",
    "read_trace": "tracer.format.reader",
    "write_trace": "tracer.format.writer",
    "Run": "tracer.run",
    "read_run": "tracer.run",
    "RoundTrips": "tracer.round_trip",
    "round_trips": "tracer.round_trip",
    "Alignment": "tracer.clocks",
    "aligned": "tracer.clocks",
    "check_run": "tracer.check",
    "sections": "tracer.analysis",
    "Table": "tracer.table",
    "Section": "tracer.table",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'tracer' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
