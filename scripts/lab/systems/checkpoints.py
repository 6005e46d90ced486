"""A server under MLfabric that writes its model to the disk, instead of having a replica.

It does so at its best: beside its work, and never twice at a time. A checkpoint is written aside,
is on the disk, and then takes the last one's place.
"""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event
from typing import Any, Protocol

import numpy as np

LOOK_S = 0.005  # at the version
_MODEL, _WRITTEN = "model.npy", "checkpoints.json"


class Holder(Protocol):
    def model(self) -> tuple[Any, int]: ...

    def serve(self) -> None: ...


@dataclass
class Written:
    checkpoints: int = 0
    bytes: int = 0
    most_lost: int = 0  # versions, of a server that is killed when that is most


def _write(folder: Path, model: Any) -> int:
    aside = folder / f"{_MODEL}.part"
    with aside.open("wb") as file:
        np.save(file, model)
        file.flush()
        os.fsync(file.fileno())
        size = file.tell()
    aside.replace(folder / _MODEL)
    return size


def keep(server: Holder, folder: Path, every: int, over: Event) -> Written:
    """A checkpoint whenever there are so many versions since the last one."""
    written = Written()
    saved = 0
    while not over.wait(LOOK_S):
        model, version = server.model()
        written.most_lost = max(written.most_lost, version - saved)
        if version - saved < every:
            continue
        written.bytes += _write(folder, model)
        written.checkpoints += 1
        # Until now, the checkpoint before was all there was.
        written.most_lost = max(written.most_lost, server.model()[1] - saved)
        saved = version
    return written


def serve(server: Holder, folder: Path, every: int) -> None:
    """Until the job is over; what was written stands beside the model then."""
    folder.mkdir(parents=True, exist_ok=True)
    over = Event()
    with ThreadPoolExecutor(1) as beside:
        writing = beside.submit(keep, server, folder, every, over)
        try:
            server.serve()
        finally:
            over.set()
    (folder / _WRITTEN).write_text(json.dumps(asdict(writing.result())))


def written(folder: Path) -> Written:
    return Written(**json.loads((folder / _WRITTEN).read_text()))
