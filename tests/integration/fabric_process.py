"""A process of a test's job under MLfabric: who it is, how it serves, and how it dies."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pslite_ext import fabric

ROLE, RANK = os.environ["DMLC_ROLE"], int(os.environ.get("DMLC_TASK_ID") or 0)
NAME = f"{ROLE}_{RANK}"
# What all of them are told: a folder, how long to train, and perhaps who dies, one or more.
FOLDER, LENGTH = Path(sys.argv[1]), int(sys.argv[2])
VICTIMS = "".join(sys.argv[3:4]).split(",")
DIES = NAME in VICTIMS
# Everybody is a host of its own to the planner, or it would see no network.
os.environ["DMLC_NODE_HOST"] = f"127.0.0.{10 + RANK + {'server': 100, 'replica': 150}.get(ROLE, 0)}"


def die(by: str = "SIGKILL") -> None:
    os.kill(os.getpid(), signal.Signals[by])


def die_before_the_end(by: str = "SIGKILL") -> None:
    """A server or replica: workers wait for that, or they may be done before it."""
    (FOLDER / f"dying_{NAME}").write_text(str(os.getpid()))
    die(by)


def await_death() -> None:
    """A worker's step before its last ones."""
    deadline = time.monotonic() + 30
    holders = [victim for victim in VICTIMS if victim.startswith(("server", "replica"))]
    while not all(map(_is_dead, holders)) and time.monotonic() < deadline:
        time.sleep(0.005)


def _is_dead(name: str) -> bool:
    with contextlib.suppress(OSError, ValueError):
        stat = Path(f"/proc/{int((FOLDER / f'dying_{name}').read_text())}/stat")
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] in "TZX"
    return False


def wait_for_version(holder: fabric.Holder, version: int) -> None:
    while holder.stats()["version"] < version:
        time.sleep(0.002)


def hold(model: Any, beside: Callable[[fabric.Holder], None] | None) -> fabric.Holder:
    """Serves until the job is over, as the server or its replica."""
    register = fabric.register_as_server if ROLE == "server" else fabric.register_as_replica
    holder = register(model)
    if beside is not None:
        threading.Thread(target=beside, args=(holder,), daemon=True).start()
    holder.serve()
    return holder
