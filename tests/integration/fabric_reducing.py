"""A process of a job under MLfabric whose workers sum arrays, between updates of the model.

    fabric_reducing.py FOLDER ROUNDS [NODE]

That node, such as server_0, kills itself in the middle.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from pslite_ext import fabric
from pslite_ext.errors import ClosedError
from tests.integration import fabric_process as own
from tests.integration.fabric_process import DIES, FOLDER, LENGTH, RANK, ROLE

SIZE = 70_000  # 280 kB: several packets


def get_from_threads(worker: fabric.Worker) -> None:
    with ThreadPoolExecutor(4) as pool:
        models = list(pool.map(lambda _: worker.get(), range(12)))
    assert all((model == models[0]).all() for model in models)


class BrokenOff(Exception):
    pass


def break_off(worker: fabric.Worker, part: Any) -> None:
    """Worker 0 does not wait for the sum. What it gets next is the model all the same."""
    broken_off = FOLDER / "broken off"
    if RANK:
        while not broken_off.exists():
            time.sleep(0.005)
        worker.all_reduce(part)
        return

    def stop(*_: Any) -> None:
        raise BrokenOff

    signal.signal(signal.SIGUSR1, stop)
    pushed = worker.stats()["pushed"]

    def stop_when_it_waits() -> None:
        while worker.stats()["pushed"] == pushed:
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGUSR1)

    threading.Thread(target=stop_when_it_waits).start()
    with pytest.raises(BrokenOff):
        worker.all_reduce(part)
    broken_off.touch()


def fork_a_child(worker: fabric.Worker, part: Any) -> None:
    """It is not in the job, says so, and ends as any process does."""
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        return
    calls = (worker.get, worker.settle, lambda: worker.push(part), lambda: worker.all_reduce(part))
    for call in calls:
        with pytest.raises(ClosedError, match="was forked by a node of the job"):
            call()
    worker.leave()
    sys.exit(0)


def work(model: Any) -> None:
    worker = fabric.register_as_worker(model)
    random = np.random.default_rng(RANK)
    parts = random.standard_normal((LENGTH, SIZE)).astype(np.float32)
    sums = []
    for step, part in enumerate(parts):
        if DIES and step == LENGTH // 2:
            own.die()
        if step == LENGTH - 3:
            own.await_death()
        sums.append(worker.all_reduce(part))
        worker.push(np.full(SIZE, 0.5, np.float32))
    worker.settle()
    worker.all_reduce(parts[0])  # all have settled
    break_off(worker, parts[0])
    get_from_threads(worker)
    fork_a_child(worker, parts[0])
    model = worker.get()
    worker.leave()
    np.savez(FOLDER / f"worker_{RANK}.npz", parts=parts, sums=np.stack(sums), model=model)
    (FOLDER / f"worker_{RANK}.json").write_text(json.dumps(worker.stats()))


def die_in_the_middle(holder: fabric.Holder) -> None:
    own.wait_for_version(holder, LENGTH // 2)
    own.die_before_the_end()


def main() -> None:
    model = np.zeros(SIZE, np.float32)
    if ROLE == "worker":
        work(model)
    elif ROLE == "scheduler":
        fabric.register_as_scheduler().serve()
    else:
        own.hold(model, die_in_the_middle if DIES else None)


if __name__ == "__main__":
    main()
