"""What is left of a job: processes of its sessions and its files, found and given time to go."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from scripts.soak import leaks

# Leaves a child behind, and says who it is.
LEAVES = """
import subprocess, sys
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
print(left.pid, flush=True)
"""


def test_a_process_that_its_leader_left_behind_is_found() -> None:
    leader = subprocess.Popen(
        [sys.executable, "-c", LEAVES], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert leader.stdout is not None
    pid = int(leader.stdout.readline())
    try:
        leader.wait()
        found = leaks.processes({leader.pid: "worker_0"})
        assert len(found) == 1
        assert found[0].startswith(f"process {pid} (")
        assert found[0].endswith("of worker_0")
        assert leaks.processes({}) == []
    finally:
        subprocess.run(["kill", "-9", str(pid)], check=True)
        leader.stdout.close()
    assert leaks.lasting(lambda: leaks.processes({leader.pid: "worker_0"}), 30) == []


def test_files_are_found(tmp_path: Path) -> None:
    shm = tmp_path / "shm"
    shm.mkdir()
    assert leaks.files([shm]) == []
    (shm / "ring").touch()
    assert leaks.files([shm]) == ["shm/ring"]
    assert leaks.lasting(lambda: leaks.files([shm]), 0) == ["shm/ring"]
