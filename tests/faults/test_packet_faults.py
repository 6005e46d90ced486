"""What goes wrong with tensors as packets: nobody hangs, the text says who, what and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from pslite_ext.errors import FAILED_ELSEWHERE
from tests.cluster import Cluster, cluster

STATS = (
    "import mxnet as mx, mxnet_plugins\n"
    "kv = mx.kv.create('dist_sync')\n"
    "value = mx.nd.ones((9,))\n"
    "kv.init('w', value)\n"
    "kv.pushpull('w', value)\n"
    "assert value.asnumpy().sum() == 18\n"
    "print('uses', mxnet_plugins.stats()['policy'], flush=True)\n"
)


def told(script: str, **changes: dict[str, str]) -> list[str]:
    """`script`, with other settings on some nodes: worker_1={...}."""
    code = (
        "import os\n"
        "node = os.environ['DMLC_ROLE'] + '_' + os.environ['DMLC_TASK_ID']\n"
        f"os.environ.update({changes!r}.get(node, {{}}))\n"
    )
    return ["-c", code + script]


def all_fail_with(job: Cluster, text: str) -> None:
    job.wait()
    for process in job.processes:
        assert process.code is not None
        assert process.code > 0, job.report()
        assert text in process.output, job.report()


@pytest.mark.drawn(1)
@pytest.mark.parametrize("node", ["scheduler_0", "worker_0"])
def test_what_one_is_told_all_use(node: str) -> None:
    """Servers and workers would refuse each other if they had different policies and packets."""
    settings = {"MERCURY_POLICY": "p3", "MERCURY_PACKET_BYTES": "8192", "MERCURY_LANES": "2"}
    with cluster(told(STATS, **{node: settings}), van="mercury") as job:
        job.wait_output("uses p3")
        job.check()


def test_a_worker_that_was_told_otherwise_than_worker_0() -> None:
    """The job ends at once, and everybody says who has what."""
    changes = {"worker_0": {"MERCURY_POLICY": "p3"}, "worker_1": {"MERCURY_POLICY": "fifo"}}
    with cluster(told(STATS, **changes), van="mercury") as job:
        all_fail_with(job, "worker 1 has MERCURY_POLICY=fifo, worker 0 p3")


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("scheduler", "name", "worker", "has"),
    [
        ({"MERCURY_POLICY": "p3"}, "MERCURY_POLICY", "fifo", "p3"),
        ({}, "DMLC_PS_VAN_TYPE", "zmq", "mercury"),
    ],
)
def test_a_worker_that_was_told_otherwise_than_the_scheduler(
    scheduler: dict[str, str], name: str, worker: str, has: str
) -> None:
    """It is refused, and the others say who is missing; nobody hangs."""
    script = told(STATS, scheduler_0=scheduler, worker_1={name: worker})
    with cluster(script, van="mercury", env={"MERCURY_START_TIMEOUT_S": "12"}) as job:
        job.wait()
        for process in (job.scheduler, job.workers[1]):
            says = f"it has {name}={worker}, the scheduler {has}"
            assert says in process.output, job.report()
        for process in job.processes:
            assert process.code, job.report()
        assert "1 of 2 workers" in job.workers[0].output, job.report()


def test_no_memory_for_a_tensor(tmp_path: Path) -> None:
    """Summed in the order of ranks: two copies wait for a third, beside the sum before them."""
    code = (
        "import os, time\n"
        "import mxnet as mx\n"
        "kv = mx.kv.create('dist_sync')\n"
        "value = mx.nd.ones((1_000_000,))\n"
        "kv.init('the_weight', value)\n"
        "kv.pushpull('the_weight', value)\n"
        "value.wait_to_read()\n"
        "while kv.rank == 2 and not os.path.exists(os.environ['GO_FILE']): time.sleep(0.05)\n"
        "kv.pushpull('the_weight', value)\n"
        "value.asnumpy()\n"
    )
    go = tmp_path / "go"
    env = {
        "MERCURY_SERVER_BYTES_MAX": "10000000",
        "MERCURY_DETERMINISTIC": "1",
        "GO_FILE": str(go),
    }
    with cluster(["-c", code], 3, 1, van="mercury", env=env) as job:
        first = job.workers[:2]
        job.wait_until("two end", lambda: all(w.code is not None for w in first))
        go.touch()
        job.wait()
        # Who does not hear of it from the server hears that another has ended of it, if that is
        # sooner.
        assert 1 in [w.code for w in first], job.report()
        assert {w.code for w in job.workers} <= {1, FAILED_ELSEWHERE}, job.report()
        for worker in job.workers:
            for text in ("tensor 'the_weight'", "MERCURY_SERVER_BYTES_MAX", "no memory"):
                assert text in worker.output, job.report()


@pytest.mark.drawn(2)
@pytest.mark.parametrize("van", ["zmq", "mercury"])
@pytest.mark.parametrize("sums_before", [0, 1])
def test_a_stall_is_reported(tmp_path: Path, van: str, sums_before: int) -> None:
    """The worker that waits says for which tensor, and for whom; then all is well."""
    code = (
        "import os, time\n"
        "import mxnet as mx\n"
        "kv = mx.kv.create('dist_sync')\n"
        "kv.init('the_weight', mx.nd.zeros((9,)))\n"
        f"for _ in range({sums_before}): kv.pushpull('the_weight', mx.nd.ones((9,)))\n"
        "while kv.rank == 1 and not os.path.exists(os.environ['GO_FILE']): time.sleep(0.05)\n"
        "value = mx.nd.ones((9,))\n"
        "kv.pushpull('the_weight', value)\n"
        "assert value.asnumpy().sum() == 18\n"
    )
    go = tmp_path / "go"
    env = {"MERCURY_STALL_WARN_S": "1", "GO_FILE": str(go)}
    with cluster(["-c", code], van=van, env=env) as job:
        says = "s: worker 1 has not sent it all"
        job.wait_until("a stall report", lambda: says in job.workers[0].output)
        assert "tensor 'the_weight' has waited for" in job.workers[0].output, job.report()
        go.touch()
        job.check()
