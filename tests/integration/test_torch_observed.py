"""Traces, live figures and policies are under PyTorch what they are under MXNet."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import Cluster, free_port
from tests.integration.torch_workers import torch_job
from tracer.analysis import sections
from tracer.check import check_run
from tracer.clocks import aligned
from tracer.run import read_run

pytestmark = pytest.mark.xdist_group("torch")  # imported once

STEPS = 8  # of torch_observed.py
UNTRACED = 3
NAMES = ["0.weight to 0.bias (2)", "3.weight", "3.bias to 4.bias (3)"]


def figures(job: Cluster) -> dict[str, Any]:
    job.check()
    found: dict[str, Any] = json.loads(
        next(x for x in job.workers[0].output.splitlines() if x[0] == "{")
    )
    return found


def test_traces_have_the_names_and_the_steps(tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    with torch_job("torch_observed.py", servers=2, MERCURY_TRACE_DIR=str(folder)) as job:
        job.check()
    run = read_run(folder, strict=True)
    assert check_run(run) == []
    assert run.header.workers == 2
    keys = [key for key in run.keys().values() if key.name in NAMES]
    assert [key.name for key in sorted(keys, key=lambda k: -k.priority)] == NAMES
    for worker in run.workers:
        steps = {int(step) for step in worker.iteration() if step >= 0}
        assert steps == set(range(STEPS)) - {UNTRACED}
    table, _ = aligned(run)
    tables = [t.text() for section in sections(run, table) for t in section.tables]
    assert any("3.weight" in text for text in tables)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("policy", ["priority", "bytescheduler", "prophet"])
def test_figures_and_policies(policy: str, tmp_path: Path) -> None:
    profile, env = tmp_path / "profile", {"MERCURY_POLICY": policy}
    if policy == "prophet":
        env |= {"MERCURY_PROPHET_PROFILE": str(profile), "MERCURY_PROPHET_PROFILE_STEPS": "3"}
    port = str(free_port())
    with torch_job("torch_observed.py", port, workers=2, servers=2, at=None, **env) as job:
        found = figures(job)
        assert (found["role"], found["policy"]) == ("worker", policy)
        assert {p["peer"] for p in found["peers"]} == {"server 0", "server 1"}
        payload = 4 * (80 + 288 * 300 + 300 + 1200 + 4)
        assert sum(p["bytes_sent"] for p in found["peers"]) > STEPS * payload
        assert "mercury_sent_bytes_total{" in job.workers[0].output
        assert "B sent in" in job.workers[0].output
        if policy == "prophet":
            assert found["profiles"] == 1, found
            assert os.path.getsize(profile) > 0
