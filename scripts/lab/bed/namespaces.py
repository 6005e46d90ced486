"""Network namespaces by name: made in one batch, found again and removed by a later start.

A run is known by a short random id, which is part of every name it makes. A record under RECORDS
says which process made it; a record whose process is gone is what a killed run left behind.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

PREFIX = "mlab-"
RECORDS = Path("/run/mercury-lab")
_GONE_WITHIN_S = 2.0


class LabError(RuntimeError):
    """The bed could not be built or changed."""


def _run(argv: Sequence[str], stdin: str | None = None) -> str:
    done = subprocess.run(list(argv), input=stdin, capture_output=True, text=True)
    if done.returncode != 0:
        raise LabError(f"{' '.join(argv)}: {done.stderr.strip() or f'exit {done.returncode}'}")
    return done.stdout


def ip(lines: Sequence[str], namespace: str | None = None) -> None:
    """`ip` commands as one batch: a process each would take most of the time."""
    where = ["-n", namespace] if namespace else []
    _run(["ip", *where, "-batch", "-"], "\n".join(lines) + "\n")


def tc(line: str, namespace: str) -> str:
    return _run(["tc", "-n", namespace, *line.split()])


def tc_batch(lines: Sequence[str], namespace: str) -> None:
    _run(["tc", "-n", namespace, "-batch", "-"], "\n".join(lines) + "\n")


def no_filters(namespace: str) -> None:
    """What its bridges pass on does not go through a firewall, as it would where one is loaded.

    That costs a tenth of all processor time with eight hosts. Where it cannot be changed, it stays.
    """
    change = "for f in /proc/sys/net/bridge/bridge-nf-call-*; do echo 0 > $f; done 2> /dev/null"
    _run(["ip", "netns", "exec", namespace, "sh", "-c", f"{change} || true"])


def privilege_missing() -> str | None:
    """Why this process cannot make namespaces, or None if it can."""
    for tool in ("ip", "tc"):
        if shutil.which(tool) is None:
            return f"there is no `{tool}` here (Debian: iproute2)"
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    probe = f"{PREFIX}{secrets.token_hex(2)}-probe"
    try:
        ip([f"netns add {probe}", f"netns del {probe}"])
    except LabError as error:
        return str(error)
    return None


def start_time(pid: int) -> str | None:
    """In clock ticks since boot: tells a process from a later one with the same number.

    None: there is no such process, or it has ended and only waits to be asked for its code.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat[stat.rindex(")") + 2 :].split()
    return None if fields[0] == "Z" else fields[19]


def new_run(hosts: Sequence[str]) -> str:
    run = secrets.token_hex(2)
    RECORDS.mkdir(parents=True, exist_ok=True)
    record = {"pid": os.getpid(), "start": start_time(os.getpid()), "hosts": list(hosts)}
    _write_record(run, record)
    return run


def keep_run(run: str) -> None:
    """It stays when this process ends, until somebody removes it."""
    _write_record(run, {**read_record(run), "kept": True})


def _record(run: str) -> Path:
    return RECORDS / run


def _write_record(run: str, record: dict[str, Any]) -> None:
    """At once: a record that is half there would be taken for a dead run's."""
    draft = RECORDS / f"{run}.draft"
    draft.write_text(json.dumps(record))
    draft.replace(_record(run))


def read_record(run: str) -> dict[str, Any]:
    try:
        record = json.loads(_record(run).read_text())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def runs() -> list[str]:
    return sorted(p.name for p in RECORDS.glob("*") if not p.suffix) if RECORDS.is_dir() else []


def is_alive(record: dict[str, Any]) -> bool:
    """Whether somebody still wants it: its maker lives, or left it on purpose."""
    if record.get("kept"):
        return True
    pid = record.get("pid")
    return isinstance(pid, int) and start_time(pid) == record.get("start")


def namespaces_of(run: str) -> list[str]:
    listing = _run(["ip", "netns", "list"]).splitlines()
    names = [line.split()[0] for line in listing if line]
    return [name for name in names if name.startswith(f"{PREFIX}{run}-")]


def _pids(namespace: str) -> list[str]:
    try:
        return _run(["ip", "netns", "pids", namespace]).split()
    except LabError:  # it has just been removed
        return []


def remove_run(run: str) -> None:
    """Ends what runs in the run's namespaces, then removes them and the record."""
    names = namespaces_of(run)
    deadline = time.monotonic() + _GONE_WITHIN_S
    while pids := [pid for name in names for pid in _pids(name)]:
        for pid in pids:
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                continue
        if time.monotonic() > deadline:
            raise LabError(f"run {run}: processes {', '.join(pids)} cannot be ended")
        time.sleep(0.01)
    for name in names:
        with suppress(LabError):  # another start may be removing it too
            ip([f"netns del {name}"])
    if left := namespaces_of(run):
        raise LabError(f"run {run}: namespaces {', '.join(left)} cannot be removed")
    _record(run).unlink(missing_ok=True)


def remove_leftovers() -> list[str]:
    """Removes the runs whose process is gone; their ids."""
    gone = [run for run in runs() if not is_alive(read_record(run))]
    for run in gone:
        remove_run(run)
    return gone
