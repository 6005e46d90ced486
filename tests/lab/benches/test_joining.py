"""Many nodes find each other: what is said of a few."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# A process of its own, for nodes are its forks.
FEW = """
import json
from dataclasses import asdict
from scripts.lab.benches.joining import measure
print(json.dumps([asdict(row) for row in measure(5, {!r}, settle_s=0, idle_s=1)]))
"""


@pytest.mark.drawn(1)
@pytest.mark.parametrize("system", ["zmq", "mercury-mercury"])
def test_nodes_join_and_leave_and_are_looked_at_meanwhile(system: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FEW.format(system)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    rows = json.loads(done.stdout)
    assert {row["setting"] for row in rows} == {"2 workers, 3 servers, loopback"}
    values = {row["metric"]: row["values"][0] for row in rows}
    assert 0 < values["to join"] < 60
    # A worker talks with the scheduler and three servers; the scheduler with all five.
    assert values["sockets, worker"] >= 4
    assert values["sockets, scheduler"] >= 5
    for role in ("scheduler", "server", "worker"):
        assert values[f"memory, {role}"] > 0
        assert values[f"threads, {role}"] >= 1
    assert values["control while idle, a node"] > 0
