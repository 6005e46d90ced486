"""What worker 0 of an MLfabric job says, told to the others, and compared with what they say.

It goes by all-reduces of arrays of the model's shape, a byte an element, to which the others add
nothing: as whatever updates travel, bytes come through whole.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from pslite_ext.errors import InvalidArgumentError
from pslite_ext.fabric.nodes import Worker

_LENGTH_BYTES = 8


def from_worker_0(worker: Worker, data: bytes) -> bytes:
    """All workers call it; the `data` of the others does not matter."""
    length = _told(worker, len(data).to_bytes(_LENGTH_BYTES, "little"), _LENGTH_BYTES)
    return _told(worker, data, int.from_bytes(length, "little"))


def _told(worker: Worker, data: bytes, length: int) -> bytes:
    told = []
    for begin in range(0, length, worker.shape[0]):
        part = np.zeros(worker.shape, np.float32)
        if worker.rank == 0:
            some = np.frombuffer(data, np.uint8)[begin : begin + len(part)]
            part[: len(some)] = some
        told.append(worker.all_reduce(part)[: length - begin].astype(np.uint8).tobytes())
    return b"".join(told)


def agree(worker: Worker, lines: Sequence[str]) -> None:
    """Whether this worker says of its model and its optimizer what worker 0 says."""
    theirs = from_worker_0(worker, "\n".join(lines).encode()).decode().split("\n")
    for mine, other in itertools.zip_longest(lines, theirs, fillvalue="nothing more"):
        if mine != other:
            raise InvalidArgumentError(
                f"worker {worker.rank} does not train what worker 0 does: it has {mine}, and "
                f"worker 0 has {other}"
            )
