"""`mercury dump`: ask processes of jobs on this machine what they are doing."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from pslite_ext.command_line import Parser

PROCESSES = Path("/proc")


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="mercury dump",
        description="Ask the processes of jobs on this machine what they are doing: each writes "
        "the Python stacks of its threads, what it waits for, and its peers to its "
        "trace directory, or else on its standard error, which mercury launch keeps "
        "in its logs.",
        epilog="exit codes: 0 all were asked; 1 there is none, or one could not be asked; 2 wrong "
        "usage",
    )
    result.add_argument(
        "processes", nargs="*", type=int, metavar="PROCESS", help="process ids; default: all"
    )
    return result


def answers(process: int) -> bool:
    """Whether it has the thread that a dump is made by."""
    from pslite_ext.dump import THREAD  # it needs the core, which help does not

    try:
        tasks = list((PROCESSES / str(process) / "task").iterdir())
        return any((task / "comm").read_bytes().strip() == THREAD for task in tasks)
    except OSError:  # it has just ended, or is somebody else's
        return False


def who(process: int) -> str:
    try:
        environ = (PROCESSES / str(process) / "environ").read_bytes().split(b"\0")
    except OSError:
        return "a process"
    values = dict(item.partition(b"=")[::2] for item in environ)
    role, task = (values.get(name, b"").decode() for name in (b"DMLC_ROLE", b"DMLC_TASK_ID"))
    return f"{role} (DMLC_TASK_ID={task})" if task else role


def main(argv: Sequence[str]) -> int:
    wanted: list[int] = parser().parse_args(list(argv)).processes
    found = wanted or sorted(int(p.name) for p in PROCESSES.iterdir() if p.name.isdecimal())
    asked, failed = 0, False
    for process in found:
        if not answers(process):
            if wanted:
                failed = True
                text = "is not a process of a job, or handles SIGUSR1 itself"
                print(f"mercury dump: {process}: {text}", file=sys.stderr)
            continue
        try:
            os.kill(process, signal.SIGUSR1)
        except OSError as error:
            failed = True
            print(f"mercury dump: {process}: {error.strerror}", file=sys.stderr)
            continue
        asked += 1
        print(f"asked {who(process)}, process {process}")
    if not asked and not failed:
        print("mercury dump: no job is running on this machine", file=sys.stderr)
    return 0 if asked and not failed else 1
