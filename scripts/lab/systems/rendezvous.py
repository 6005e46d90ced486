"""How workers without a scheduler find each other: their places, and the first one's port."""

from __future__ import annotations

import os
import socket
import time

_START_S = 60.0  # for the other workers to start


def place() -> tuple[int, int, str]:
    """This worker's rank, the number of workers, and the first one's address."""
    return int(os.environ["LAB_RANK"]), int(os.environ["LAB_SIZE"]), os.environ["LAB_FIRST"]


def await_port(address: str, port: int) -> None:
    """Until somebody listens there."""
    deadline = time.monotonic() + _START_S
    while True:
        try:
            socket.create_connection((address, port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
