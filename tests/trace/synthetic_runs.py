"""Runs that the tests of traces share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from tracer.run import Run, assemble
from tracer.synthetic import Plan, PlannedTensor, synthesize

LENET_BYTES = [2000, 80, 100000, 200, 1600000, 2000, 20000, 40]
SMALL = (PlannedTensor("a", 400), PlannedTensor("b", 4000), PlannedTensor("c", 40))


def run_of(plan: Plan) -> Run:
    return assemble(synthesize(plan))


@st.composite
def plans(draw: st.DrawFn, mode: str = "zmq", training: str = "synchronous") -> Plan:
    """Small runs of any kind."""
    workers = draw(st.integers(1, 3))
    servers = draw(st.integers(1, 3))
    small = st.integers(0, 2000)
    clocks = st.integers(-1_000_000, 1_000_000)
    return Plan(
        workers=workers,
        servers=servers,
        iterations=draw(st.integers(2, 4)),
        mode=mode,
        training=training,
        tensors=SMALL[: draw(st.integers(1, 3))],
        seed=draw(st.integers(0, 1000)),
        split_bytes=draw(st.sampled_from((1000, 1_000_000))),
        compute_us=draw(st.integers(1, 5000)),
        slower_us=tuple(draw(st.lists(small, max_size=3))),
        jitter_us=draw(st.sampled_from((0, 700))),
        gap_us=draw(st.integers(0, 300)),
        update_us=draw(small),
        search_us=draw(small),
        turnaround_us=draw(st.integers(0, 50)),
        asks_ahead=draw(st.booleans()),
        latency_us=draw(st.integers(1, 500)),
        bytes_per_us=draw(st.sampled_from((0, 1, 100))),
        ahead_us=tuple(draw(st.lists(clocks, max_size=workers + servers))),
        clock_notes=draw(st.booleans()),
    )


def beside_the_payload(run: Run) -> dict[int, set[int]]:
    """Of a run of LeNet-5, by stage: how much longer messages are than what they carry."""
    extra: dict[int, set[int]] = {}
    for trace in run.traces:
        r = trace.records
        for row in np.flatnonzero(trace.iteration() >= 0).tolist():
            stage = int(r.operation[row]) % 4
            payload = LENET_BYTES[r.key[row]] if stage in (0, 3) else 0
            extra.setdefault(stage, set()).add(int(r.length[row]) - payload)
    return extra


def plain(plan: Plan) -> Plan:
    """The same with clocks that agree."""
    return replace(plan, ahead_us=())
