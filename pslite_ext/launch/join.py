"""`mercury join`: one more worker for a job that runs, or a server in the place of one that it has
lost, by a file that its launcher writes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pslite_ext.command_line import Parser
from pslite_ext.config import read_token
from pslite_ext.launch.tasks import CannotRunError, LaunchError, lines_of, normal_command

FILE = "join.env"
JOINS = "-2"  # instead of a number: whatever place is free, once the job has begun
SERVES = "import sys; from pslite_ext.job.serving import main; sys.exit(main())"
# What a node needs to find its job; all other settings are handed out by the scheduler.
NAMES = (
    "DMLC_PS_VAN_TYPE",
    "DMLC_NUM_WORKER",
    "DMLC_NUM_SERVER",
    "DMLC_PS_ROOT_URI",
    "DMLC_PS_ROOT_PORT",
    "MERCURY_JOB_TOKEN",
)


def write(folder: Path, job: Mapping[str, str]) -> Path:
    """For this user alone: it has the job's token, which may be in a file that other hosts lack."""
    told = {**job, "MERCURY_JOB_TOKEN": read_token(job)}
    path = folder / FILE
    folder.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.writelines(f"{name}={told[name]}\n" for name in NAMES if told.get(name))
    return path


def remove(path: Path, job: Mapping[str, str]) -> None:
    """Once the job is over; what another one has written there since stays."""
    with suppress(OSError, LaunchError):
        there = read(path)
        if all(there[name] == job[name] for name in NAMES[:-1]):
            path.unlink()


def read(path: Path) -> dict[str, str]:
    job = dict(line.split("=", 1) for line in lines_of(path, str(path)) if "=" in line)
    if missing := [name for name in NAMES[:-1] if name not in job]:
        raise LaunchError(
            f"{path} does not say {missing[0]}: it is no {FILE} of `mercury launch --min-workers`"
        )
    return {name: job[name] for name in NAMES if name in job}


def parser() -> argparse.ArgumentParser:
    result = Parser(
        prog="mercury join",
        description="Run COMMAND as one more worker of a job that runs, or serve in the place of a "
        "server that it has lost (docs/elastic.md).",
        epilog="The exit code is COMMAND's.",
    )
    add = result.add_argument
    add("file", type=Path, help=f"{FILE}, which `mercury launch --min-workers` writes to --log-dir")
    add("--server", action="store_true", help="be a server; there is no COMMAND then")
    add("command", nargs=argparse.REMAINDER, metavar="[--] COMMAND")
    return result


def run(arguments: argparse.Namespace) -> None:
    command = normal_command(arguments.command)
    if arguments.server and command:
        raise LaunchError(f"--server: a server runs no command, such as {command[0]}")
    if arguments.server:
        command = [sys.executable, "-c", SERVES]
    if not command:
        raise LaunchError("there is no command to run: end the line with `-- python train.py`")
    role = "server" if arguments.server else "worker"
    joins = {"DMLC_ROLE": role, "DMLC_TASK_ID": JOINS}
    environ = {**os.environ, **read(arguments.file), **joins}
    sys.stdout.flush()
    try:
        os.execvpe(command[0], command, environ)
    except OSError as error:
        raise CannotRunError(f"cannot run {command[0]}: {error.strerror}") from None


def main(argv: Sequence[str] | None = None) -> int:
    try:
        run(parser().parse_args(argv))
    except LaunchError as error:
        print(f"mercury join: {error}", file=sys.stderr)
        return error.exit_code
    raise AssertionError("COMMAND runs instead of us")
