"""mercury: read, analyse and replay traces; launch and look after jobs.

    import tracer
    run = tracer.read_run("traces/")
    exchanges, alignment = tracer.aligned(run)
    for section in tracer.sections(run, exchanges): ...

Names are imported when they are first used, so that commands that need no NumPy work without it.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "TraceError": "tracer.errors",
    "Header": "tracer.record",
    "Records": "tracer.record",
    "Trace": "tracer.record",
    "read_trace": "tracer.reader",
    "write_trace": "tracer.writer",
    "Run": "tracer.run",
    "read_run": "tracer.run",
    "Exchanges": "tracer.exchange",
    "exchanges": "tracer.exchange",
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
