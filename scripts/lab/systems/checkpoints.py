"""A server under MLfabric that writes its model to the disk, instead of having a replica.

It does so at its best: beside its work, and never twice at a time; as `mercury.checkpoint` does,
whole or not at all.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Protocol

import numpy as np

from pslite_ext.saving import part_file

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


def keep(server: Holder, folder: Path, every: int, over: Event) -> Written:
    """A checkpoint whenever there are so many versions since the last one."""
    written = Written()
    saved = 0
    while not over.wait(LOOK_S):
        model, version = server.model()
        written.most_lost = max(written.most_lost, version - saved)
        if version - saved < every:
            continue
        part_file.write(folder / _MODEL, partial(np.save, arr=model))
        written.bytes += (folder / _MODEL).stat().st_size
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
