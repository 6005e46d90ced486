"""Trains until somebody is told to stop, and says what came of it; sums carry the word, so that all
stop at the same step."""

import ctypes
import hashlib
import os
import signal
import socket
import time
from pathlib import Path

import mxnet as mx

KEYS = ("a", "b", "c")
ELEMENTS = 30000  # several packets on each server


def scheduler() -> int:
    """Its process, where a launcher has started both."""
    children = Path(f"/proc/{os.getppid()}/task/{os.getppid()}/children").read_text().split()
    environments = {int(child): Path(f"/proc/{child}/environ").read_bytes() for child in children}
    (found,) = (child for child, has in environments.items() if b"DMLC_ROLE=scheduler\0" in has)
    return found


def fail(how: str) -> None:
    """One of the ways in which a worker of a job is lost, or is not."""
    if how == "segfault":
        ctypes.string_at(0)
    elif how == "connections":  # it lives, but all that it was connected by has broken
        for fd in map(int, os.listdir("/proc/self/fd")):
            try:
                connection = socket.socket(fileno=os.dup(fd))
                if connection.type == socket.SOCK_STREAM and connection.family == socket.AF_INET:
                    connection.shutdown(socket.SHUT_RDWR)
            except OSError:  # it is no socket, or not connected
                continue
    else:  # so many seconds in which no Python runs, or until an alarm: PyDLL keeps the GIL
        signal.signal(signal.SIGALRM, lambda *_: None)
        ctypes.PyDLL(None).sleep(int(how))


store = mx.kv.create("dist_sync")
rank = store.rank
stop = Path(os.environ.get("STOP_FILE", "/nowhere"))
steps = int(os.environ.get("STEPS", "0"))
by_rows = mx.kv.create("dist_sync") if os.environ.get("ROWS") else None  # and by nothing else
rows = mx.nd.ones((4, 2)).tostype("row_sparse")
ways = dict(word.split("=") for word in os.environ.get("WAYS", "").split())  # to fail, by rank
weights = [mx.nd.zeros((ELEMENTS,)) for _ in KEYS]
for key, weight in zip(KEYS, weights):
    store.init(key, weight)
store.init("stop", mx.nd.zeros((1,)))
if by_rows is not None:
    by_rows.init("rows", rows)
step, longest = 0, 0.0
while True:
    before = time.monotonic()
    workers = (by_rows or store).num_workers
    if by_rows is not None:
        by_rows.push("rows", rows)
    word = mx.nd.array([float(stop.exists())])
    store.pushpull("stop", word, out=word)
    for number, (key, weight) in enumerate(zip(KEYS, weights)):
        # Whole numbers: their sums are exact in any order.
        gradient = mx.nd.full((ELEMENTS,), 1 + (step + number + rank) % 5)
        store.pushpull(key, gradient, out=gradient, priority=-number)
        weight += gradient
    mx.nd.waitall()
    step += 1
    if step > 2:  # until then, servers are still told of tensors
        longest = max(longest, time.monotonic() - before)
    if step == 20:
        print("looping", flush=True)
    if step == 30 and os.environ.get("FAIL_RANK") == str(rank):
        raise ValueError("a mistake in the script")
    if step == 30 and str(rank) in ways:
        fail(ways[str(rank)])
        print("awake", flush=True)
    if step == 30 and os.environ.get("STOP_RANK") == str(rank):
        break
    if step == 20 and os.environ.get("KILL_SCHEDULER_RANK") == str(rank):
        os.kill(scheduler(), signal.SIGKILL)
    if step == 30 and os.environ.get("KILL_RANK") == str(rank):
        os.kill(os.getpid(), signal.SIGKILL)
    if word.asscalar() > 0 and not steps:
        steps = step + 3  # in the round of a loss, some of the lost one's may be there
    if step == steps:
        break
values = b"".join(weight.asnumpy().tobytes() for weight in weights)
digest = hashlib.sha1(values).hexdigest()[:12]
print(
    f"ended with {digest} after {step} steps, {workers} workers, longest {longest:.3f}", flush=True
)
