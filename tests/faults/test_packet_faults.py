"""What goes wrong with tensors as packets: nobody hangs, the text says who, what and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import Cluster, cluster

TRAINING = [str(Path(__file__).parent / "training.py")]


def on_worker_1(changes: dict[str, str]) -> list[str]:
    """The training script, with other settings on worker 1."""
    code = (
        "import os, runpy\n"
        "if os.environ['DMLC_ROLE'] == 'worker' and os.environ['DMLC_TASK_ID'] == '1':\n"
        f"    os.environ.update({changes!r})\n"
        f"runpy.run_path({TRAINING[0]!r}, run_name='__main__')\n"
    )
    return ["-c", code]


def all_fail_with(job: Cluster, *texts: str) -> None:
    job.wait()
    for process in job.processes:
        assert process.code is not None
        assert process.code > 0, job.report()
        for text in texts:
            assert text in process.output, job.report()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("MERCURY_POLICY", "fifo", "the worker has MERCURY_POLICY fifo, the server mercury"),
        ("MERCURY_PACKET_BYTES", "8192", "MERCURY_PACKET_BYTES 8192, the server 65536"),
    ],
)
def test_settings_that_differ(name: str, value: str, says: str) -> None:
    with cluster(on_worker_1({name: value}), van="mercury") as job:
        all_fail_with(job, says)


def test_another_van() -> None:
    """A node in zmq mode is refused, and the others say who is missing."""
    env = {"MERCURY_START_TIMEOUT_S": "12", "MERCURY_START_WARN_S": "1"}
    with cluster(on_worker_1({"DMLC_PS_VAN_TYPE": "zmq"}), van="mercury", env=env) as job:
        job.wait()
        says = "it has DMLC_PS_VAN_TYPE=zmq, the scheduler mercury"
        for process in (job.scheduler, job.workers[1]):
            assert says in process.output, job.report()
        for process in job.processes:
            assert process.code, job.report()
        assert "1 of 2 workers" in job.workers[0].output, job.report()


def test_no_memory_for_a_tensor(tmp_path: Path) -> None:
    """Summed in the order of ranks: two copies wait for a third, and are too much."""
    code = (
        "import os, time\n"
        "import mxnet as mx\n"
        "kv = mx.kv.create('dist_sync')\n"
        "value = mx.nd.ones((1_000_000,))\n"
        "kv.init('the_weight', value)\n"
        "while kv.rank == 2 and not os.path.exists(os.environ['GO_FILE']): time.sleep(0.05)\n"
        "kv.pushpull('the_weight', value)\n"
        "value.asnumpy()\n"
    )
    go = tmp_path / "go"
    env = {
        "MERCURY_SERVER_BYTES_MAX": "6000000",
        "MERCURY_DETERMINISTIC": "1",
        "GO_FILE": str(go),
    }
    with cluster(["-c", code], 3, 1, van="mercury", env=env) as job:
        first = job.workers[:2]
        job.wait_until("two end", lambda: all(w.code is not None for w in first))
        go.touch()
        job.wait()
        for worker in job.workers:
            assert worker.code == 1, job.report()
            for text in ("tensor 'the_weight'", "MERCURY_SERVER_BYTES_MAX", "no memory"):
                assert text in worker.output, job.report()


def test_a_stall_is_reported(tmp_path: Path) -> None:
    """The worker that waits says for which tensor, and for whom; then all is well."""
    code = (
        "import os, time\n"
        "import mxnet as mx\n"
        "kv = mx.kv.create('dist_sync')\n"
        "kv.init('the_weight', mx.nd.zeros((9,)))\n"
        "while kv.rank == 1 and not os.path.exists(os.environ['GO_FILE']): time.sleep(0.05)\n"
        "value = mx.nd.ones((9,))\n"
        "kv.pushpull('the_weight', value)\n"
        "assert value.asnumpy().sum() == 18\n"
    )
    go = tmp_path / "go"
    env = {"MERCURY_STALL_WARN_S": "1", "GO_FILE": str(go)}
    with cluster(["-c", code], van="mercury", env=env) as job:
        says = "s: worker 1 has not sent it all"
        job.wait_until("a stall report", lambda: says in job.workers[0].output)
        assert "tensor 'the_weight' has waited for" in job.workers[0].output, job.report()
        go.touch()
        job.check()
