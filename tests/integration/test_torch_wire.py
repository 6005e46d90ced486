"""PyTorch's gradients as bf16, fp16 and int8 on the wire."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.test_torch_training import said, two_hosts
from tests.integration.torch_workers import torch_job
from tracer.analysis import sizes
from tracer.run import read_run

pytestmark = pytest.mark.xdist_group("torch, a second time")  # imported once

CASES = (
    *("bf16", "fp16", "int8", "some", "auto", "float32"),
    *("bf16:staged", "fp16:staged", "int8:staged", "auto:staged"),
)


@pytest.mark.parametrize(
    ("van", "workers", "lanes"), [("mercury", 2, 1), ("mercury", 3, 2), ("mercury", 5, 1)]
)
def test_sums_are_what_the_formulas_say(tmp_path: Path, van: str, workers: int, lanes: int) -> None:
    cases = CASES if workers == 2 else CASES[:5]
    # Of five workers, four share two hosts; each word of the job's, too.
    at = two_hosts if workers == 5 else None
    env = {"MEETING": str(tmp_path / "meeting"), "MERCURY_LANES": str(lanes)}
    traced = tmp_path / "traces"
    if workers == 2:
        env["MERCURY_TRACE_DIR"] = str(traced)
    with torch_job(
        "torch_wire.py", *cases, "scaled", van=van, workers=workers, servers=2, at=at, **env
    ) as job:
        job.wait(timeout_s=400)
        job.check()
        lines = said(job.workers[0])
        assert [line.split()[:2] for line in lines] == [
            *(["wire", case] for case in cases),
            ["scaled"],
        ]
        assert all(said(worker) == lines for worker in job.workers), job.report()
    if workers == 2:
        words = {row["as"] for row in sizes.wires(read_run(traced)).rows()}
        assert {"bf16", "fp16", "int8", "bf16, then int8, then float32"} <= words
