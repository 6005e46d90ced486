"""Prophet in real jobs: over packets, over the classic path, and with profiles of every kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from pslite_ext.forecast.model.job_file import find_job
from tests.cluster import cluster
from tracer.analysis import prophet
from tracer.check import ERROR, check_run
from tracer.run import read_run

# Twelve gradients in four steps, 40 ms apart, the most urgent last, as a backward pass makes them.
SCRIPT = """
import sys, time
import mxnet as mx, mxnet_plugins
from pslite_ext.job import figures as live
iterations = sys.argv[1]
kv = mx.kv.create('dist_sync')
arrays = [mx.nd.ones((20000 * (i + 1),)) for i in range(12)]
for i, x in enumerate(arrays):
    kv.init(i, x)
for n in range(int(iterations)):
    for step in range(4):
        for i in range(11 - 3 * step, 8 - 3 * step, -1):
            arrays[i][:] = kv.rank + 1 + n
            kv.pushpull(i, arrays[i], out=arrays[i], priority=-i)
        arrays[0].wait_to_read()
        time.sleep(0.04)
    for x in arrays:
        low, high = x.min().asscalar(), x.max().asscalar()
        assert low == high == sum(r + 1 + n for r in range(kv.num_workers)), (n, low, high)
figures = mxnet_plugins.stats()
print('blocks', sum(p['blocks'] for p in figures['peers']), 'profiles', figures['profiles'])
assert figures['policy'] == 'prophet' and figures['iterations'] >= int(iterations) - 1, figures
_, page = live.page()
assert 'mercury_blocks_total{' in page and 'mercury_wait_first_seconds_total{' in page, page
print('waits', figures['waits'], figures['wait_first_us'])
print('sums are right')
"""


def _env(path: Path, lanes: int) -> dict[str, str]:
    return {
        "MERCURY_TRACE_DIR": str(path.with_name("trace")),
        "MERCURY_TRACE_STEPS": "0:16",
        "MERCURY_LANES": str(lanes),
        "MERCURY_POLICY": "prophet",
        "MERCURY_PROPHET_PROFILE": str(path),
        "MERCURY_PROPHET_PROFILE_STEPS": "8",
    }


def _train(van: str, path: Path, iterations: int, lanes: int = 1) -> str:
    """A job of two workers and two servers; what the first worker said."""
    with cluster(["-c", SCRIPT, str(iterations)], 2, 2, van=van, env=_env(path, lanes)) as job:
        job.wait_output("sums are right")
        job.check()
        assert "Prophet: " in job.workers[0].output, job.report()
        return job.workers[0].output


# In three lanes, only the first one sees the most urgent tensor, which is small.
@pytest.mark.drawn(1)
@pytest.mark.parametrize(("van", "lanes"), [("mercury", 1), ("mercury", 3), ("zmq", 1)])
def test_blocks_are_sent_and_a_profile_is_kept(van: str, lanes: int, tmp_path: Path) -> None:
    path = tmp_path / "profile"
    said = _train(van, path, 18, lanes)
    assert "blocks 0" not in said, said
    assert "waits 0" not in said, said
    assert "forward 0 us" not in path.read_text()
    lines = [line.split() for line in path.read_text().splitlines() if line[0] != "#"]
    assert [int(line[2]) for line in lines] == [-i for i in range(12)]
    assert [int(line[1]) for line in lines] == [80000 * (i + 1) for i in range(12)]
    # In the trace, too: all iterations that have ended and are in its window.
    run = read_run(path.with_name("trace"))
    assert [found for found in check_run(run) if found.severity == ERROR] == []
    section = prophet.section(run)
    assert section is not None
    per_worker, iterations = section.tables
    assert list(per_worker["worker"]) == [0, 1]
    assert all(n > 0 for n in per_worker["blocks"])
    assert all(n > 0 for n in per_worker["wait_first_us"])
    for rank in (0, 1):
        told = [row["iteration"] for row in iterations.rows() if row["worker"] == rank]
        assert told == list(range(16))
    # The most urgent came last, some 120 ms after the first; and the simulator takes it.
    assert int(lines[0][3]) > 80000
    assert find_job(str(path)).bytes.sum() == 80000 * 78


def test_a_profile_of_another_model_is_said_once(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("# Prophet profile; forward 0 us\n1 2 3 4 weight\n5 6 7 8 bias\n")
    said = _train("mercury", other, 4)
    assert said.count("the profile is of another model") == 1, said


LEAVES = """
import sys, time
import mxnet as mx, mxnet_plugins
from pslite_ext import _core
kv = mx.kv.create('dist_sync')
arrays = [mx.nd.ones((20000,)) for i in range(6)]
for i, x in enumerate(arrays):
    kv.init(i, x)
for n in range(1000):
    for i in range(5, -1, -1):
        kv.pushpull(i, arrays[i], out=arrays[i], priority=-i)
        time.sleep(0.002)
    mx.nd.waitall()
    if n == 12 and kv.rank == 1:
        _core.finish('ValueError: enough')
        print('after the end:', mxnet_plugins.stats()['policy'])
        raise ValueError('enough')
"""


def test_what_waits_in_the_queue_fails_with_the_job() -> None:
    with cluster(["-c", LEAVES], 2, 1, van="zmq", env={"MERCURY_POLICY": "prophet"}) as job:
        job.wait()
        assert all(process.code != 0 for process in job.workers), job.report()
        assert "worker 1 ended: ValueError: enough" in job.workers[0].output, job.report()
        assert "after the end: prophet" in job.workers[1].output, job.report()
