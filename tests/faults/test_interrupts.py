"""Ctrl-C in a script that catches it, has a handler of its own, or waits for the network; and
children that a worker forks."""

from __future__ import annotations

import signal

from tests.cluster import cluster

LIMIT_S = 60

SCRIPT = """
import os, signal, sys, time
import mxnet as mx

kv = mx.kv.create('dist_sync')
x = mx.nd.ones((4,))
kv.init('w', x)
kv.pushpull('w', x)
mx.nd.waitall()

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)

def fork(work):
    child = os.fork()
    if child:
        return child
    sys.exit(work())

def in_child():
    try:
        kv.push('w', x)
    except Exception as error:
        text = str(error)
    else:
        text = 'no error'
    print('child:', text, flush=True)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        interrupt()
        time.sleep(60)
    except KeyboardInterrupt:
        return 7

if kv.rank == 1:
    time.sleep(60)

# A child ends by itself, and what happens to it does not happen to this process.
_, status = os.waitpid(fork(in_child), 0)
print('child ended with', os.waitstatus_to_exitcode(status), flush=True)

# A handler of the script's own: the job goes on.
asked = []
raises = signal.signal(signal.SIGINT, lambda *_: asked.append(1))
interrupt()
time.sleep(1.5)
kv.pull('w', out=x)
mx.nd.waitall()
print('went on', asked, flush=True)
signal.signal(signal.SIGINT, raises)

# Caught, and again: the same.
for _ in range(2):
    try:
        interrupt()
        time.sleep(60)
    except KeyboardInterrupt:
        pass
time.sleep(1.5)
kv.pull('w', out=x)
mx.nd.waitall()

# Now worker 1 pushes no more, and this one waits for it.
print('waits', flush=True)
kv.pushpull('w', x)
mx.nd.waitall()
"""


def test_signals_are_the_script_s_until_it_waits_for_ever() -> None:
    with cluster(["-c", SCRIPT], 2, 1, van="mercury", forked=False) as job:
        worker = job.workers[0]
        job.wait_until("it waits", lambda: "waits\n" in worker.output or worker.code is not None)
        assert "child: this process was forked" in worker.output, job.report()
        assert "child ended with 7" in worker.output, job.report()
        assert "went on [1]" in worker.output, job.report()
        assert worker.code is None, job.report()
        worker.kill(signal.SIGINT)
        job.wait_until("it ends", lambda: worker.code is not None, LIMIT_S)
        assert "KeyboardInterrupt" in worker.output, job.report()
