"""Live figures: from a script, and on the page for Prometheus."""

from __future__ import annotations

import re

from tests.cluster import cluster, free_port

SCRIPT = """
import os, sys, urllib.request
os.environ['MERCURY_METRICS_PORT'] = sys.argv[1] if os.environ['DMLC_ROLE'] == 'worker' else '0'
import mxnet as mx, mxnet_plugins
kv = mx.kv.create('dist_sync')
x = mx.nd.ones((250000,))
kv.init('w', x)
for _ in range(3):
    kv.pushpull('w', x, out=x, priority=-7)
mx.nd.waitall()
figures = mxnet_plugins.stats()
assert figures['control_refused'] == 0, figures
assert figures['role'] == 'worker' and figures['policy'] == 'priority', figures
assert {p['peer'] for p in figures['peers']} == {'server 0', 'server 1'}, figures
for way, rounds in (('sent', 4), ('received', 3)):  # the first value is sent, too
    payload = sum(p['bytes_' + way] for p in figures['peers'])
    assert rounds * 1000000 < payload < rounds * 1000000 + 100000, figures
assert figures['messages'] == [], figures
assert all(p['queue'] == [] for p in figures['peers']), figures
page = urllib.request.urlopen('http://127.0.0.1:%s/metrics' % sys.argv[1]).read().decode()
line = [t for t in page.splitlines() if t.startswith('mercury_sent_bytes_total{')]
assert len(line) == 2 and 'peer="server 0",path="packets"' in line[0], page
assert '# TYPE mercury_sent_packets_total counter' in page, page
assert 'mercury_steps_total{role="worker",rank="0"} 2' in page, page
for text in page.splitlines():
    assert text.startswith('#') or float(text.rpartition(' ')[2]) >= 0, text
print('figures are right')
"""


def test_stats() -> None:
    with cluster(["-c", SCRIPT, str(free_port())], 1, 2, van="mercury") as job:
        job.wait_output("figures are right")
        job.check()
        for process in (*job.workers, *job.servers):
            assert re.search(r"\d [kM]B sent in \d+ packets, ", process.output)


ASYNCHRONOUS = """
import mxnet as mx, mxnet_plugins
kv = mx.kv.create('dist_async')
x = mx.nd.ones((250000,))
kv.init('w', x)
for _ in range(3):
    kv.push('w', x)
kv.pull('w', out=x)
x.wait_to_read()
figures = mxnet_plugins.stats()
(peer,) = figures['messages'] + figures['peers']
assert peer['peer'] == 'server 0' and 4000000 < peer['bytes_sent'] < 4100000, peer
assert 1000000 < peer['bytes_received'] < 1100000, peer
print('figures are right')
"""


def test_each_mode_counts_what_its_path_has_carried() -> None:
    for van in ("zmq", "mercury"):
        with cluster(["-c", ASYNCHRONOUS], 1, 1, van=van) as job:
            job.wait_output("figures are right")
            job.check()
            assert re.search(r"worker 0: 4\.\d MB sent in", job.workers[0].output), job.report()


EVERY_KIND = """
import mxnet as mx, mxnet_plugins, numpy as np
kv = mx.kv.create('dist_sync')
x = mx.nd.ones((5000,))
kv.init('whole', x)
kv.push('whole', x)
kv.pull('whole', out=x)
kv.pushpull('whole', x, out=x)
rows = mx.nd.sparse.row_sparse_array((np.ones((2, 10), 'float32'), [1, 40]), shape=(100, 10))
kv.init('rows', mx.nd.sparse.zeros('row_sparse', (100, 10)))
kv.push('rows', rows)
out = mx.nd.sparse.zeros('row_sparse', (100, 10))
kv.row_sparse_pull('rows', out=out, row_ids=mx.nd.array([1, 40]))
assert out.asnumpy().sum() == 20 * kv.num_workers
for kind in ('1bit', '2bit'):
    kv.set_gradient_compression({'type': kind, 'threshold': 0.5})
    kv.init(kind, x)
    kv.pushpull(kind, mx.nd.ones((5000,)), out=x)
    x.wait_to_read()
late = mx.kv.create('dist_async')
late.init('late', x)
late.push('late', x)
late.pull('late', out=x)
x.wait_to_read()
figures = mxnet_plugins.stats()
assert figures['messages'] == [], figures
assert len(figures['peers']) == 2, figures
print('all went as packets')
"""


def test_in_mercury_mode_no_value_goes_as_a_message() -> None:
    with cluster(["-c", EVERY_KIND], 2, 2, van="mercury") as job:
        job.wait_output("all went as packets")
        job.check()


TAKEN = """
import os, socket
taken = socket.create_server(('127.0.0.1', 0))
os.environ['MERCURY_METRICS_PORT'] = str(taken.getsockname()[1])
import mxnet as mx
kv = mx.kv.create('dist_sync')
kv.init('w', mx.nd.ones((3,)))
print('trains')
"""


def test_a_page_whose_port_is_taken_costs_nobody_the_job() -> None:
    with cluster(["-c", TAKEN], 1, 1, van="mercury") as job:
        job.check()
        assert "trains" in job.workers[0].output, job.report()
        for process in job.processes:
            assert "live figures are at http://127.0.0.1:" in process.output, job.report()
