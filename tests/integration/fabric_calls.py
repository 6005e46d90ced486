"""A process of a synchronous job under MLfabric whose server's script applies updates itself.

    fabric_calls.py FOLDER STEPS [killed | fails]

Each worker pushes its rank plus one. A version is half of the one before, plus the sum; workers see
1000 more.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import Any

import numpy as np

from pslite_ext import fabric
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.fabric import nodes
from tests.integration.fabric_process import FOLDER, LENGTH, NAME, RANK, ROLE, die

HOW = "".join(sys.argv[3:])
SHAPE = (300, 100)
DIES_AT = 3  # versions
counts: list[int] = []


def update(model: Any, change: Any, updates: int) -> None:
    if ROLE == "server" and len(counts) == DIES_AT:
        if HOW == "killed":
            die()
        if HOW == "fails":
            raise ArithmeticError(f"{updates} updates are too many \udce9")
    counts.append(updates)
    look_at_oneself()
    model *= 0.5
    model += change


def look_at_oneself() -> None:
    """What other threads may ask of the server, its own call may, too, or is refused."""
    holder = nodes._here
    assert isinstance(holder, fabric.Holder)
    assert holder.stats()["elements"] == SHAPE[0] * SHAPE[1]
    with suppress(InvalidArgumentError):
        holder.model()
        raise AssertionError


def save(model: Any) -> None:
    values = [float(model.min()), float(model.max())]
    (FOLDER / "model.json").write_text(json.dumps({"by": ROLE, "values": values, "of": counts}))


def main() -> None:
    first = np.ones(SHAPE, np.float32)
    worker = fabric.register(first, save, update=update, request=lambda model: model + 1000)
    got = []
    for _ in range(LENGTH):
        model = worker.get()
        assert model.shape == SHAPE
        got.append(float(model.mean()))
        worker.push(np.full(SHAPE, RANK + 1, np.float32))
    worker.leave()
    (FOLDER / f"{NAME}.json").write_text(json.dumps(got))


if __name__ == "__main__":
    main()
