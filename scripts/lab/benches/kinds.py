"""Values that are no whole float32 sums, against the floor of the bytes that each kind needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pslite_ext.forecast.model import Job, Layer
from scripts.lab.benches.case import USUAL, Case, Setting
from scripts.lab.benches.speed import SCALES, case
from scripts.lab.systems.system import System
from scripts.lab.workloads.job_config import Config, workload_of
from scripts.lab.workloads.kinds import ASYNC, CODED_BITS, ROW_ELEMENTS, ROWS, WHOLE, ways
from scripts.lab.workloads.workload import ELEMENT_BYTES, Workload

MODEL = "vgg16"
TABLES = 16
TABLE_ROWS = 12_000
WORDS = {
    WHOLE: f"{MODEL}, whole",
    **{kind: f"{MODEL} in {bits} bits an element" for kind, bits in CODED_BITS.items()},
    ASYNC: f"{MODEL}, asynchronous",
    ROWS: f"a quarter of the rows of {TABLES} tables",
}


def job_of(kind: str, workload: Workload, workers: int) -> Job:
    """For the model: each tensor as large as it is on the way that carries more of it."""
    return Job(
        tuple(
            Layer(t.name, float(max(ways(kind, t, workers))), bp_s=t.backward_s, fp_s=t.forward_s)
            for t in workload.tensors
        )
    )


def kinds(
    systems: Sequence[System], rounds: int, share: float = 1.0, setting: Setting = USUAL
) -> list[Case]:
    """`share`: of the usual size."""
    cases = []
    for kind, words in WORDS.items():
        scale = SCALES[MODEL] * share
        tensors: dict[str, object] = {"model": MODEL, "scale": scale}
        if kind == ROWS:
            rows = round(TABLE_ROWS * share)
            tensors = {"count": TABLES, "bytes": rows * ROW_ELEMENTS * ELEMENT_BYTES}
        config = Config("rounds", tensors, kind=kind, rounds=rounds)
        job = job_of(kind, workload_of(tensors), setting.workers)
        what = f"{words}, x {scale if kind != ROWS else share:g}"
        each_s = 2 * setting.link_s(sum(layer.bytes for layer in job.layers))
        for system in systems:
            store = "dist_async" if kind == ASYNC else system.store
            of = replace(system, store=store)
            cases.append(case("kinds", what, of, setting, config, each_s, job))
    return cases
