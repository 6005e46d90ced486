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
for way in ('sent', 'received'):
    payload = sum(p['bytes_' + way] for p in figures['peers'])
    assert 3000000 < payload < 3100000, figures
assert all(p['queue'] == [] for p in figures['peers']), figures
page = urllib.request.urlopen('http://127.0.0.1:%s/metrics' % sys.argv[1]).read().decode()
line = [t for t in page.splitlines() if t.startswith('mercury_sent_bytes_total{')]
assert len(line) == 3 and 'peer="server 0",path="packets"' in line[0], page
assert 'path="messages"' in line[2] and float(line[2].split()[-1]) > 1000000, page
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
            assert re.search(r"\d [kM]B sent in \d+ packets( and \d+ messages?)?, ", process.output)


ASYNCHRONOUS = """
import mxnet as mx, mxnet_plugins
kv = mx.kv.create('dist_async')
x = mx.nd.ones((250000,))
kv.init('w', x)
for _ in range(3):
    kv.push('w', x)
kv.pull('w', out=x)
x.wait_to_read()
(peer,) = mxnet_plugins.stats()['messages']
assert peer['peer'] == 'server 0' and 4000000 < peer['bytes_sent'] < 4100000, peer
assert 1000000 < peer['bytes_received'] < 1100000, peer
print('figures are right')
"""


def test_messages_are_counted_in_both_modes() -> None:
    for van in ("zmq", "mercury"):
        with cluster(["-c", ASYNCHRONOUS], 1, 1, van=van) as job:
            job.wait_output("figures are right")
            job.check()
            assert re.search(r"worker 0: 4\.\d MB sent in", job.workers[0].output), job.report()


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
