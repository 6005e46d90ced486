"""A worker of a job that others join: what each step took, and when a newcomer was in, as JSON.

Usage: steps_and_newcomers.py FOLDER STATE_MB GRADIENTS_MB COMPUTES_S. Each step sleeps as if it
computed, then sums gradients; the state beside them is what a newcomer is given. All end some steps
after the file `last` is in FOLDER. On SIGUSR1 it holds Python's lock for long, as libraries may.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pslite_ext import _core
from pslite_ext.saving.checkpoint import Checkpoint
from pslite_ext.saving.exchange import Seat
from pslite_ext.saving.letting_in import PART_BYTES
from pslite_ext.torch import this_worker

TENSORS = 12
NEVER = 1_000_000  # steps between checkpoints
ENDS = 1000  # of the last steps, that are said together
HELD_S = 70


class State:
    """As a checkpoint's front: some bytes, which each step changes a little."""

    def __init__(self, megabytes: float) -> None:
        self.values = np.zeros(int(megabytes * 1e6), np.uint8)

    def digest(self) -> str:
        return hashlib.sha1(self.values.tobytes()).hexdigest()

    def capture_shared(self) -> np.ndarray[Any, Any]:
        return self.values.copy()

    def capture_own(self) -> bytes:
        return b""

    def dump(self, state: Any, file: Any) -> None:
        file.write(state)

    def load(self, file: BinaryIO) -> np.ndarray[Any, Any]:
        read = np.empty_like(self.values)
        file.readinto(read)  # type: ignore[attr-defined]
        return read

    def parts(self) -> Iterator[np.ndarray[Any, Any]]:
        return (self.values[at : at + PART_BYTES] for at in range(0, len(self.values), PART_BYTES))

    def load_parts(self, files: Iterator[BinaryIO]) -> np.ndarray[Any, Any]:
        at = 0
        for file in files:
            at += file.readinto(self.values[at : at + PART_BYTES])  # type: ignore[attr-defined]
        return self.values

    def restore(self, shared: Any, mine: Any) -> None:
        self.values = shared

    def standing(self) -> dict[str, Any]:
        return {}

    def stand(self, standing: Mapping[str, Any]) -> None:
        pass

    def missing(self) -> str:
        return ""


def hold_the_lock(*_: object) -> None:
    ctypes.PyDLL(None).sleep(HELD_S)


def memory(array: np.ndarray[Any, Any]) -> _core.Memory:
    return array, array.ctypes.data, array.nbytes


def main(folder: Path, state_mb: float, gradients_mb: float, computes_s: float) -> None:
    workers = this_worker.join()
    signal.signal(signal.SIGUSR1, hold_the_lock)
    rank = _core.rank()
    state = State(state_mb)
    print(f"rank {rank}\nready", flush=True)
    ready = time.monotonic()
    saved = Checkpoint(
        folder / f"saved {rank}", state, Seat(rank, workers, _core.places()), NEVER, 2
    )
    told = {"rank": rank, "began": saved.steps, "ready": ready, "in": time.monotonic()}
    print("in", flush=True)
    elements = int(gradients_mb * 1e6 / 4 / TENSORS)
    gradients = [np.zeros(elements, np.float32) for _ in range(TENSORS)]
    tensors = [_core.Tensor(key + 1, f"g{key}", "float32", [elements]) for key in range(TENSORS)]
    ends, last = [time.monotonic()], NEVER
    while saved.steps < last:
        time.sleep(computes_s)
        for array in gradients:
            array[:] = rank + 1
        works = [
            tensor.sum_memory(memory(array), -key)
            for key, (tensor, array) in enumerate(zip(tensors, gradients))
        ]
        for work in works:
            work.wait()
        state.values[saved.steps % len(state.values)] += int(gradients[0][0])
        saved.step()
        ends.append(time.monotonic())
        summed = tensors[0].workers()
        print(f"step {saved.steps}\nat {saved.steps} {ends[-1]} of {summed}", flush=True)
        if last == NEVER and (folder / "last").exists():
            last = int((folder / "last").read_text())
    print(json.dumps({**told, "ends": ends[-ENDS:], "digest": state.digest()}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(float, sys.argv[2:5]))
