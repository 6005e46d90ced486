"""Hosts with several workers: one copy leaves a host, one sum comes back, everybody has the same.

Hosts are addresses of this machine.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.cluster import cluster
from tracer.analysis import critical
from tracer.check import check_run
from tracer.clocks import aligned
from tracer.hosts import by_host
from tracer.replay.recorded import recorded
from tracer.round_trip import W_PULL_RECV
from tracer.run import read_run

PER_HOST = 3


def beside(role: str, rank: int) -> str:
    """Two hosts of three workers and a server each."""
    host = rank // PER_HOST if role == "worker" else rank
    return f"127.0.0.{2 + host}"


def apart(role: str, rank: int) -> str:
    """The same, with servers on hosts of their own."""
    return f"127.0.0.{2 + rank // PER_HOST if role == 'worker' else 9}"


SUMS = """
import os, sys
import mxnet as mx, mxnet_plugins
kv = mx.kv.create('dist_sync')
assert (kv.local_rank, kv.local_size) == (kv.rank % 3, 3), (kv.local_rank, kv.local_size)
shapes = [(3,), (700, 11), (250000,)]
for key, shape in enumerate(shapes):
    kv.init(key, mx.nd.zeros(shape))
def all_right(array, each):
    assert (array.asnumpy() == each).all(), (kv.rank, array, each)
n = kv.num_workers
for step in range(5):
    for key, shape in enumerate(shapes):
        out = mx.nd.ones(shape) * (kv.rank + step)
        kv.pushpull(key, out, out=out, priority=-key)
        all_right(out, n * (n - 1) / 2 + n * step)
# Pushes whose sums are fetched, by some later than by others; and what each sends for itself.
for key, shape in enumerate(shapes):
    kv.push(key, mx.nd.ones(shape) * kv.rank)
    out = mx.nd.zeros(shape)
    kv.pull(key, out=out)
    all_right(out, n * (n - 1) / 2)
rows = mx.nd.sparse.row_sparse_array((mx.nd.ones((1, 4)), [kv.rank]), shape=(40, 4))
kv.init('rows', mx.nd.zeros((40, 4)).tostype('row_sparse'))
kv.push('rows', rows)
out = mx.nd.zeros((40, 4)).tostype('row_sparse')
kv.row_sparse_pull('rows', out=out, row_ids=mx.nd.arange(40))
assert (out.asnumpy()[:n] == 1).all() and (out.asnumpy()[n:] == 0).all(), out
figures = mxnet_plugins.stats()
sent = {p['peer']: p['bytes_sent'] for p in figures['peers']}
to_servers = [sent['server 0'], sent['server 1']]
if len(sys.argv) > 1:
    own = to_servers.pop(kv.rank // 3)
    assert own > 3e6, sent
dense = 6 * 4 * sum(x * y for x, y in ((3, 1), (700, 11), (250000, 1)))
leads = kv.rank % 3 == 0
share = dense / (2 if len(sys.argv) > 1 else 1)
assert sum(to_servers) > 0.95 * share if leads else sum(to_servers) < 1.2e6, sent
assert ('worker %d' % (kv.rank - kv.rank % 3) in sent) != leads, sent
print('sums are right', flush=True)
"""


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("at", "lanes"), [(beside, 1), (apart, 2)])
def test_sums_and_what_leaves_a_host(at: Callable[[str, int], str], lanes: int) -> None:
    words = ["beside"] if at is beside else []
    env = {"MERCURY_LANES": str(lanes), "MERCURY_DETERMINISTIC": str(lanes - 1)}
    with cluster(["-c", SUMS, *words], 6, 2, van="mercury", env=env, at=at) as job:
        job.check()
        assert all("sums are right" in w.output for w in job.workers), job.report()


TRAINS = """
import os, signal, sys
import mxnet as mx
kv = mx.kv.create('dist_sync')
x = mx.nd.ones((100000,))
kv.init('x', x)
for step in range(int(sys.argv[1])):
    kv.pushpull('x', mx.nd.ones((100000,)), out=x)
    x.wait_to_read()
    if step == 3 and kv.rank == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
print('done', flush=True)
"""


@pytest.mark.drawn(1)
@pytest.mark.parametrize("killed", [0, 1, 5])
def test_who_is_killed_is_named_by_all(killed: int) -> None:
    with cluster(["-c", TRAINS, "1000", str(killed)], 6, 2, van="mercury", at=beside) as job:
        job.wait()
        others = [w for w in job.workers if w.rank != killed]
        assert all(w.code == 69 for w in others), job.report()
        assert all(f"lost worker {killed} " in w.output for w in others), job.report()
    assert not list(Path("/dev/shm").glob("mercury*"))


ASYNCHRONOUS = """
import mxnet as mx
kv = mx.kv.create('dist_async')
x = mx.nd.ones((5000,))
kv.init('x', x)
kv.push('x', x)
kv.pull('x', out=x)
x.wait_to_read()
"""


def test_what_each_sends_for_itself_leaves_the_leader_s_trace_empty(tmp_path: Path) -> None:
    env = {"MERCURY_TRACE_DIR": str(tmp_path)}
    with cluster(["-c", ASYNCHRONOUS], 6, 2, van="mercury", env=env, at=apart) as job:
        job.check()
    assert check_run(read_run(tmp_path, strict=True)) == []


def test_traces_show_both_hops(tmp_path: Path) -> None:
    env = {"MERCURY_TRACE_DIR": str(tmp_path)}
    with cluster(["-c", TRAINS, "6", "-1"], 6, 2, van="mercury", env=env, at=apart) as job:
        job.check()
    run = read_run(tmp_path, strict=True)
    assert check_run(run) == []
    assert run.leaders == {2: 0, 3: 3}
    table, _ = aligned(run)
    found = critical.path(table)
    assert set(critical.WITHIN) & {*found["what"]}
    for iteration in np.unique(table.iteration).tolist():
        parts = found["iteration"] == iteration
        end = int(table.times[W_PULL_RECV][table.iteration == iteration].max())
        assert int(found["begin_us"][parts].min() + found["us"][parts].sum()) == end
    hosts = by_host(table)
    assert (hosts.workers, hosts.servers, {*hosts.worker.tolist()}) == (2, 2, {0, 1})
    assert recorded(run).workers == 2
