"""Jobs under MLfabric, of real processes on loopback: what they come to, and what is refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pslite_ext.errors import FAILED_ELSEWHERE
from tests.cluster import ROOT, clean_environment, cluster, mercury
from tracer.fabric import NAME, read

SCRIPT = str(ROOT / "tests" / "integration" / "fabric_training.py")
DELAY_BOUND = 4
DIES_AT = 8  # as in the script
WORKERS = 3


def told(folder: Path, name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    return read


def check(
    folder: Path, holder: str, workers: int, momentum: float = 0.0, off: float = 1e-4
) -> None:
    """The model is what its commits give one by one; none was too late; all are accounted for."""
    updates = [np.load(folder / f"updates_{rank}.npy") for rank in range(workers)]
    stats = told(folder, f"{holder}_0")["stats"]
    model = np.ones(updates[0].shape[1:], np.float64)
    step = np.zeros_like(model)
    for version, commit in enumerate(stats["commits"], 1):
        assert commit["version"] == version
        assert version - commit["computed_from"] <= DELAY_BOUND
        step = momentum * step + updates[commit["worker"]][commit["number"] - 1]
        model += step
    np.testing.assert_allclose(np.load(folder / f"model_{holder}_0.npy"), model, rtol=0, atol=off)
    assert sum(stats["delays"].values()) == stats["version"] == len(stats["commits"])
    for rank in range(workers):
        mine = told(folder, f"worker_{rank}")["stats"]
        dropped = sum(mine[fate] for fate in ("too_old", "overtaken", "late", "orphaned"))
        assert mine["pushed"] == mine["committed"] + dropped == len(updates[rank])
        applied = [c["number"] for c in stats["commits"] if c["worker"] == rank]
        assert len(set(applied)) == len(applied) == mine["committed"] - mine["lost"]


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("rule", "wire", "servers"),
    [("sum", "float32", 1), ("momentum:0.5", "float32", 3), ("momentum:0.5", "bf16", 2)],
)
def test_the_model_is_what_its_commits_give(
    tmp_path: Path, rule: str, wire: str, servers: int
) -> None:
    env = {
        "MERCURY_FABRIC_DELAY_BOUND": str(DELAY_BOUND),
        "MERCURY_FABRIC_UPDATE": rule,
        "MERCURY_TRACE_DIR": str(tmp_path / "trace"),
        "MERCURY_WIRE": wire,
    }
    command = [SCRIPT, str(tmp_path), "6"]
    with cluster(command, WORKERS, servers, "mercury", env=env, replicas=1) as job:
        job.check()
    # Each value is at most 0.05, and rounded by a 256th of itself twice, in 18 updates.
    off = 0.01 if wire == "bf16" else 1e-4
    check(tmp_path, "server", WORKERS, 0.5 if rule != "sum" else 0.0, off)
    record = map(json.loads, (tmp_path / "trace" / NAME).read_text().splitlines())
    sizes = {line["bytes"] for line in record if line["event"] == "request"}
    assert sizes == {200_000 if wire == "bf16" else 400_000}
    assert told(tmp_path, "scheduler_0")["stats"]["batches"] > 0


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("servers", "dies"), [(1, 0), (3, 1)])
def test_the_replica_takes_over_when_a_server_is_killed(
    tmp_path: Path, servers: int, dies: int
) -> None:
    steps = 12
    launched = subprocess.run(
        [
            *(sys.executable, "-m", "tracer", "launch", "-n", str(WORKERS), "-s", str(servers)),
            *("--replicas", "1", "--log-dir", str(tmp_path / "logs")),
            *("--trace-dir", str(tmp_path / "trace"), "--"),
            *(sys.executable, SCRIPT, str(tmp_path), str(steps), f"server_{dies}", "SIGKILL"),
        ],
        cwd=ROOT,
        env=clean_environment(MERCURY_FABRIC_DELAY_BOUND=str(DELAY_BOUND)),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert launched.returncode == 0, launched.stdout + launched.stderr
    assert f"server {dies} was killed by signal 9; its replica is there" in launched.stderr
    check(tmp_path, "replica", WORKERS)
    assert told(tmp_path, "replica_0")["stats"]["is_server"]
    history = read(tmp_path / "trace")
    assert len(history.took_over) == 1
    assert max(history.delays) <= DELAY_BOUND
    workers = [told(tmp_path, f"worker_{rank}")["stats"] for rank in range(WORKERS)]
    assert history.updates == sum(worker.pop("pushed") for worker in workers)
    assert history.fates == sum(map(Counter, workers), Counter())
    # The workers went on: the last version that they had was made after the server's death.
    assert told(tmp_path, "replica_0")["version"] > DIES_AT


def test_replicas_in_reserve_become_the_server_one_after_another(tmp_path: Path) -> None:
    script = [SCRIPT, tmp_path, "20", "server_0,replica_0", "SIGKILL"]
    job = ["launch", "-n", "2", "-s", "1", "--replicas", "2", "--log-dir", tmp_path / "logs"]
    traced = ["--trace-dir", tmp_path / "trace", "--", sys.executable]
    launched = mercury(*job, *traced, *script)
    assert launched.returncode == 0, launched.stdout + launched.stderr
    assert "server 0 was killed by signal 9; its replica is there" in launched.stderr
    # The launcher may hear of the two in the other order.
    left = "(its server|another replica) is there"
    assert re.search(f"replica 0 was killed by signal 9; {left}", launched.stderr)
    last = told(tmp_path, "replica_1")["stats"]
    history = read(tmp_path / "trace")
    assert last["is_server"]
    assert len(history.took_over) == 2
    assert history.took_over[-1] < last["version"]
    model = np.ones((250, 400), np.float64)
    for rank in range(2):
        fates = told(tmp_path, f"worker_{rank}")["fates"]
        updates = np.load(tmp_path / f"updates_{rank}.npy")
        model += sum(u for u, fate in zip(updates, fates) if fate == "committed")
    np.testing.assert_allclose(np.load(tmp_path / "model_replica_1.npy"), model, rtol=0, atol=1e-4)


def test_the_job_of_the_docs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "fabric.md").read_text()
    script = tmp_path / "train.py"
    numpy = page.partition("## With NumPy\n")[2]
    script.write_text(numpy.partition("```python\n")[2].partition("```")[0])
    assert "\nmercury launch -n 4 -s 1 --replicas 1 -- python train.py\n" in page
    job = ["launch", "-n", "4", "-s", "1", "--replicas", "1", "--log-dir", tmp_path / "logs"]
    launched = mercury(*job, "--", sys.executable, script)
    assert launched.returncode == 0, launched.stdout + launched.stderr
    said = re.findall(r"off by (\d+\.\d+); {'pushed': 100, 'committed'", launched.stdout)
    assert len(said) == 4
    assert max(map(float, said)) < 0.1


@pytest.mark.drawn(1)
@pytest.mark.parametrize("bound", [0.0, 10.0])
def test_what_dies_with_the_server_is_bounded(tmp_path: Path, bound: float) -> None:
    env = {
        "MERCURY_FABRIC_DIVERGENCE_BOUND": str(bound),
        "MERCURY_TRACE_DIR": str(tmp_path / "trace"),
    }
    command = [SCRIPT, str(tmp_path), "16", "server_0", "SIGKILL"]
    # Of one worker, each batch is one update: so the bound holds at every commit.
    with cluster(command, 1, 1, "mercury", env=env, replicas=1) as job:
        job.wait()
        assert [worker.code for worker in job.workers] == [0], job.report()
    saved = np.load(tmp_path / "last_of_server.npy")
    updates = np.load(tmp_path / "updates_0.npy").astype(np.float64)
    assert bound == 0 or bound > 3 * np.linalg.norm(updates[0])
    history = read(tmp_path / "trace")
    (version,) = history.took_over
    replica = np.ones(saved.shape)
    for commit in told(tmp_path, "replica_0")["stats"]["commits"][:version]:
        replica += updates[commit["number"] - 1]
    if version < told(tmp_path, "last_of_server_0")["version"]:
        assert np.linalg.norm(saved - replica) <= bound + 1e-3
    assert version + bound // 3 >= DIES_AT


@pytest.mark.drawn(1)
@pytest.mark.parametrize("node", ["replica_0", "worker_1"])
def test_the_others_go_on_without(tmp_path: Path, node: str) -> None:
    env = {"MERCURY_FABRIC_DELAY_BOUND": str(DELAY_BOUND)}
    command = [SCRIPT, str(tmp_path), "12", node, "SIGKILL"]
    with cluster(command, WORKERS, 1, "mercury", env=env, replicas=1) as job:
        job.wait()
        for process in job.processes:
            dead = node == process.name.replace(" ", "_")
            assert process.code == (-9 if dead else 0), job.report()
    version = told(tmp_path, "server_0")["version"]
    for rank in (0, 2):
        stats = told(tmp_path, f"worker_{rank}")["stats"]
        assert stats["pushed"] == 12
        assert stats["lost"] == 0
        assert 0 < stats["committed"] < version


def test_a_server_that_hangs_is_replaced(tmp_path: Path) -> None:
    env = {"MERCURY_HEARTBEAT_TIMEOUT_MS": "6000"}
    command = [SCRIPT, str(tmp_path), "12", "server_0", "SIGSTOP"]
    with cluster(command, 2, 1, "mercury", env=env, replicas=1) as job:
        others = [process for process in job.processes if process.role != "server"]
        job.wait_until("ended", lambda: all(other.code is not None for other in others))
        assert all(other.code == 0 for other in others), job.report()
        assert "the server is lost" in job.scheduler.output
    assert told(tmp_path, "replica_0")["stats"]["is_server"]


def test_nobody_waits_for_a_worker_that_hangs(tmp_path: Path) -> None:
    """The server says nothing to it, so that only the scheduler notices."""
    told = ["MERCURY_HEARTBEAT_TIMEOUT_MS=6000", "MERCURY_FABRIC_MODE=stale:1"]
    job = ["launch", "-n", "3", "-s", "1", "--grace", "1", "--log-dir", tmp_path / "logs"]
    script = [sys.executable, SCRIPT, tmp_path, "12", "worker_2", "SIGSTOP"]
    env = [word for setting in told for word in ("--env", setting)]
    launched = mercury(*job, *env, "--", *script)
    assert launched.returncode == 0, launched.stdout + launched.stderr
    assert "worker 2 is lost" in launched.stdout
    assert "the job has ended well, without worker 2" in launched.stderr


def test_a_feed_is_heard_and_slow_links_make_groups(tmp_path: Path) -> None:
    feed = tmp_path / "feed"
    slow = {"host": "127.0.0.110", "in": 2e7, "out": 2e7}  # the server's: 160 ms an update
    feed.write_text(json.dumps({**slow, "host": "nowhere"}) + "\n" + json.dumps(slow) + "\n")
    env = {"MERCURY_FABRIC_FEED": str(feed), "MERCURY_FABRIC_BATCH_MS": "50"}
    with cluster([SCRIPT, str(tmp_path), "10"], 4, 1, "mercury", env=env) as job:
        job.check()
        assert 'there is no host "nowhere" in this job' in job.scheduler.output, job.report()
    assert told(tmp_path, "scheduler_0")["stats"]["groups"] > 0


def test_without_a_replica_the_job_fails_with_its_server(tmp_path: Path) -> None:
    with cluster([SCRIPT, str(tmp_path), "1000", "server_0", "SIGKILL"], 2, 1, "mercury") as job:
        job.wait()
        why = "the server is lost, and there is no replica to take over"
        for process in [job.scheduler, *job.workers]:
            assert process.code == FAILED_ELSEWHERE, job.report()
            assert why in process.output, job.report()


def test_who_does_not_know_the_token_is_left_outside(tmp_path: Path) -> None:
    code = (
        "import os, socket, time, numpy, pslite_ext.fabric as fabric\n"
        "if os.environ['DMLC_ROLE'] == 'worker':\n"
        "    os.environ.update(MERCURY_JOB_TOKEN='guessed', MERCURY_START_TIMEOUT_S='3')\n"
        "    scheduler = ('127.0.0.1', int(os.environ['DMLC_PS_ROOT_PORT']))\n"
        "    with socket.socket() as sock:\n"
        "        while sock.connect_ex(scheduler): time.sleep(0.01)\n"
        "fabric.register(numpy.zeros(3, 'f'))\n"
    )
    with cluster(["-c", code], 1, 1, "mercury") as job:
        worker = job.workers[0]
        job.wait_until("refused", lambda: worker.code is not None)
        assert worker.code == 1
        assert "do both have the same job token?" in worker.output, job.report()
        assert "it does not know the job token" in job.scheduler.output, job.report()


def test_models_that_differ_are_named(tmp_path: Path) -> None:
    code = (
        "import os, numpy, pslite_ext.fabric as fabric\n"
        "fabric.register(numpy.zeros(3 if os.environ['DMLC_ROLE'] == 'server' else 4, 'f'))\n"
    )
    with cluster(["-c", code], 1, 1, "mercury") as job:
        job.wait()
        for process in job.processes:
            assert process.code in (1, FAILED_ELSEWHERE)
            assert "has a model of " in process.output, job.report()
            assert "Traceback" not in process.output
        # Who came last is named.
        assert [process.code for process in job.processes].count(1) == 1


def test_a_node_that_was_told_otherwise_is_named(tmp_path: Path) -> None:
    code = (
        "import os, numpy, pslite_ext.fabric as fabric\n"
        "if os.environ['DMLC_ROLE'] == 'worker':\n"
        "    os.environ['MERCURY_FABRIC_DELAY_BOUND'] = '5'\n"
        "fabric.register(numpy.zeros(3, 'f'))\n"
    )
    with cluster(["-c", code], 1, 1, "mercury") as job:
        both = [job.scheduler, job.workers[0]]  # the server may come too late to hear it
        job.wait_until("refused", lambda: all(process.code is not None for process in both))
        why = "worker 0 was told MERCURY_FABRIC_DELAY_BOUND=5, and the scheduler uses 30"
        for process in both:
            assert process.code == (1 if process.role == "worker" else FAILED_ELSEWHERE)
            assert why in process.output, job.report()
            assert len(process.output.splitlines()) == 1
