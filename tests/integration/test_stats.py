"""Live figures: from a script, and on the page for Prometheus."""

from __future__ import annotations

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
line = [t for t in page.splitlines() if t.startswith('mercury_bytes_sent_total{')]
assert len(line) == 2 and 'peer="server 0"' in line[0], page
assert '# TYPE mercury_packets_sent_total counter' in page, page
for text in page.splitlines():
    assert text.startswith('#') or float(text.rpartition(' ')[2]) >= 0, text
print('figures are right')
"""


def test_stats() -> None:
    with cluster(["-c", SCRIPT, str(free_port())], 1, 2, van="mercury") as job:
        job.wait_output("figures are right")
        job.check()
        for process in (*job.workers, *job.servers):
            assert "MB sent in" in process.output, job.report()


TAKEN = """
import os, socket
taken = socket.create_server(('127.0.0.1', 0))
if os.environ['DMLC_ROLE'] == 'worker':
    os.environ['MERCURY_METRICS_PORT'] = str(taken.getsockname()[1])
import mxnet as mx
try:
    mx.kv.create('dist_sync')
except ValueError as error:
    print('refused:', error)
"""


def test_a_page_that_cannot_be_opened_costs_nobody_else_the_job() -> None:
    with cluster(["-c", TAKEN], 1, 1, van="mercury") as job:
        job.check()
        assert "refused: MERCURY_METRICS_PORT is" in job.workers[0].output, job.report()
