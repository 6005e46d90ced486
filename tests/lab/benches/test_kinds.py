"""Each kind of value is held against its own floor, ours beside the classic path."""

from __future__ import annotations

import pytest

from scripts.lab.bed.bed import LoopbackBed
from scripts.lab.benches.case import USUAL
from scripts.lab.benches.catalogue import LONG, cases_of
from scripts.lab.benches.kinds import WORDS, job_of, kinds
from scripts.lab.benches.prediction import floor_s
from scripts.lab.systems.job import host_names, run_job
from scripts.lab.systems.system import MERCURY, system
from scripts.lab.workloads.job_config import workload_of
from scripts.lab.workloads.kinds import ASYNC, CODED_BITS, ROWS, WHOLE

SYSTEMS = [system(name, None) for name in ("zmq", MERCURY, "mercury-fifo")]


def test_both_paths_take_turns_with_every_kind() -> None:
    cases = cases_of(["kinds"], SYSTEMS, "quick")
    assert [case.system.name for case in cases] == ["zmq", MERCURY] * len(WORDS)
    assert {case.config.kind for case in cases} == {WHOLE, *CODED_BITS, ROWS, ASYNC}
    for case in cases:
        assert (case.system.store == "dist_async") == (case.config.kind == ASYNC)
    assert "kinds" in LONG


def test_floors_are_of_the_way_that_carries_more() -> None:
    floors = {}
    for case in kinds(SYSTEMS[:1], rounds=2):
        workload = workload_of(case.config.tensors)
        floors[case.config.kind] = USUAL.bandwidth * floor_s(
            job_of(case.config.kind, workload, 2), USUAL.bandwidth
        )
        if case.config.kind != ROWS:  # whole sums come back, whatever is pushed
            assert floors[case.config.kind] == pytest.approx(workload.bytes, rel=1e-3)
    # A worker pushes two of eight rows, and gets three, each with its number.
    assert floors[ROWS] == pytest.approx(workload.bytes * 3 / 8 * (1024 + 8) / 1024, rel=1e-3)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("kind", WORDS)
def test_sums_of_every_kind_are_right(kind: str) -> None:
    pytest.importorskip("mxnet")
    (case,) = (c for c in kinds(SYSTEMS[1:2], rounds=3, share=0.01) if c.config.kind == kind)
    with LoopbackBed(host_names(2, 2)) as bed:
        outcome = run_job(bed, case.system, case.config, timeout_s=100)
    figures = case.measure(outcome)
    assert figures["ratio to floor"].value == figures["time"].value / figures["floor"].value
