"""Profiles in the form in which MXNet 1.9.1 and PyTorch 2 write them, made up."""

from __future__ import annotations

from typing import Any

THREAD = 15112187934001632198  # MXNet numbers threads so
DOMAIN = 3060606181218273969


def mxnet(at_us: int, operators: list[tuple[str, int, int]]) -> dict[str, Any]:
    """As mx.profiler.dump() with profile_all: (name, begin, end) after `at_us`.

    Each operator is told twice, by its device and as a task; API calls are tasks of a thread.
    """
    events: list[dict[str, Any]] = [
        {"ph": "M", "args": {"name": "cpu/0"}, "pid": 0, "name": "process_name"},
        {"ph": "M", "args": {"name": "operator"}, "pid": DOMAIN, "name": "process_name"},
        {"ph": "M", "args": {"name": "MXNET_C_API"}, "pid": 8497, "name": "process_name"},
        {
            "name": "MXNet C API Calls", "cat": "MXNET_C_API", "ph": "C", "ts": at_us,
            "args": {"MXNet C API Calls": 1}, "pid": 8497, "tid": THREAD,
        },
    ]  # fmt: skip
    for name, begin, end in operators:
        common = {"name": name, "cat": "operator", "tid": THREAD}
        for kind, at in (("B", begin), ("E", end)):
            events.append({**common, "ph": kind, "ts": at_us + at, "pid": 0})
        for kind, at in (("b", begin), ("e", end)):
            events.append({**common, "ph": kind, "ts": at_us + at, "id": THREAD, "pid": DOMAIN})
    call = {"name": "MXNDArrayWaitAll", "cat": "MXNET_C_API", "id": 7, "pid": 8497, "tid": 1}
    events += [{**call, "ph": "b", "ts": at_us}, {**call, "ph": "e", "ts": at_us + 900}]
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def kineto(at_ns: int, rank: int | None) -> dict[str, Any]:
    """As export_chrome_trace(): nested operators, a kernel on another track, an arrow to it."""
    cpu: dict[str, Any] = {"pid": 71, "tid": 71, "ph": "X", "cat": "cpu_op"}
    gpu: dict[str, Any] = {"pid": 0, "tid": 7}
    arrow: dict[str, Any] = {"cat": "ac2g", "name": "ac2g"}
    spans: dict[str, Any] = {"pid": "Spans", "tid": "PyTorch Profiler", "ts": 90.0}
    events: list[dict[str, Any]] = [
        named("process_name", 71, 0, name="python"),
        named("process_labels", 71, 0, labels="CPU"),
        named("process_labels", 0, 0, labels="GPU 0"),
        named("thread_name", 0, 7, name="stream 7"),
        {**cpu, "name": "aten::linear", "ts": 100.5, "dur": 80.25, "args": {"External id": 1}},
        {**cpu, "name": "aten::addmm", "ts": 110.0, "dur": 60},
        {**gpu, "ph": "X", "cat": "kernel", "name": "gemm", "ts": 150.0, "dur": 200.0},
        {**arrow, "ph": "s", "id": 5, "pid": 71, "tid": 71, "ts": 120.0},
        {**arrow, **gpu, "ph": "f", "id": 5, "ts": 150.0, "bp": "e"},
        {**arrow, "ph": "s", "id": 6, "pid": 71, "tid": 71, "ts": 121.0},
        {**spans, "ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "dur": 400.0},
        {**spans, "ph": "i", "name": "Iteration Start", "s": "g"},
    ]
    said = {} if rank is None else {"distributedInfo": {"backend": "mercury", "rank": rank}}
    return {
        "schemaVersion": 1, **said, "displayTimeUnit": "ms", "baseTimeNanoseconds": at_ns,
        "traceEvents": events, "traceName": "rank.pt.trace.json",
    }  # fmt: skip


def named(what: str, process: int, thread: int, **args: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "ts": 0, "pid": process, "tid": thread, "args": args}
