"""Runs that the tests of traces share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tracer.format.record import FIRST_PACKET, Note, Trace
from tracer.round_trip import (
    S_PULL_RECV,
    S_PULL_SEND,
    S_PUSH_RECV,
    S_PUSH_SEND,
    W_PULL_RECV,
    W_PULL_SEND,
    W_PUSH_RECV,
)
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


def two_hosts(**options: Any) -> list[Trace]:
    """Workers 0 and 1 share a host, and so do 2 and 3; the hosts' sums are servers 1 and 2.

    Made of a run in which everybody pushes to every server: what a leader sends to server 0 comes
    after what its neighbour has sent, and its neighbour has the sum later than it has.
    """
    leaders = {1: 0, 3: 2}  # by neighbour
    whole = Plan(
        workers=4, servers=3, iterations=8, mode="mercury", split_bytes=1,
        tensors=(PlannedTensor("t", 3000),), **options,
    )  # fmt: skip
    pairs = {(0, 0), (2, 0), (1, 1), (3, 2)}
    traces = [trace for trace in synthesize(whole) if not trace.is_scheduler_traffic]
    sent: dict[tuple[int, ...], int] = {}  # what neighbours send to server 0
    for trace in traces:
        r = trace.records
        worker, server = trace.ends(np.arange(len(r)))
        place = [trace.iteration(), r.operation, worker, server]
        for row, (*what, by, to) in enumerate(np.stack(place, axis=1).tolist()):
            if by in leaders and to == 0:
                sent[(*what, leaders[by])] = int(r.time[row])
    for trace in traces:
        r = trace.records
        worker, server = trace.ends(np.arange(len(r)))
        place = [trace.iteration(), r.operation, worker]
        for row, what in enumerate(np.stack(place, axis=1).tolist()):
            if what[1] in (W_PUSH_RECV, S_PUSH_RECV, S_PUSH_SEND):
                r.time[row] = max(r.time[row], sent.get(tuple(what), 0) + 200)
            elif what[1] in (W_PULL_SEND, W_PULL_RECV, S_PULL_RECV, S_PULL_SEND):
                r.time[row] += 1000 * (what[2] in leaders)
        kept = [pair in pairs for pair in zip(worker.tolist(), server.tolist())]
        trace.records = r.take(np.flatnonzero(kept & (r.is_data | (r.operation == FIRST_PACKET))))
        if trace.header.role == "server" and trace.header.rank:
            trace.notes.insert(0, Note(0, f"leader worker {2 * trace.header.rank - 2}"))
    return traces
