"""`mercury trace`: stats, check, report, live, plot, export, convert, diff, example."""

from __future__ import annotations

import argparse
import importlib
import math
import sys
from collections.abc import Sequence
from typing import Any

from pslite_ext.command.arguments import count
from pslite_ext.command_line import Parser
from tracer.errors import TraceError, UsageError
from tracer.output import print_json

MISUSED, FAILED = 2, 3
EXIT_CODES = (
    "exit codes: 0 all well; 1 the check found errors, diff found what was asked for, or the job "
    "that live followed has failed; "
    "2 wrong usage; 3 a file cannot be read or written; 130 interrupted"
)


def parser() -> argparse.ArgumentParser:
    top = Parser(
        prog="mercury trace",
        description="Read, check, analyse and show traces. RUN is a directory of trace files, "
        "or one file.",
        epilog=EXIT_CODES,
    )
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, says: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=says, description=says, epilog=EXIT_CODES)
        sub.add_argument("--json", action="store_true", help="print the result as JSON")
        sub.add_argument("--quiet", action="store_true", help="no progress on stderr")
        return sub

    def reads(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("run", metavar="RUN", help="a directory of traces, or one trace file")
        sub.add_argument("--strict", action="store_true", help="stop at the first irregular place")

    sub = command("stats", "print the analysis, question by question")
    reads(sub)
    sub.add_argument(
        "--only", metavar="NAME", action="append", help="only this section; repeatable"
    )
    sub.add_argument(
        "--rows", type=count, default=12, help="rows to show of each table (default 12)"
    )

    sub = command("check", "check that files are whole, consistent and agree with each other")
    reads(sub)

    sub = command("report", "write one HTML file with pictures and tables")
    reads(sub)
    sub.add_argument("-o", "--output", default="report.html", metavar="FILE")

    sub = command("live", "follow a running job: steps per second, slow workers, what links carry")
    sub.add_argument("run", metavar="RUN", help="the directory that the job writes its trace to")
    sub.add_argument(
        "--every", type=_pause, default=1.0, metavar="SECONDS", help="between looks (default 1)"
    )
    sub.add_argument("--link", metavar="RATE", help="what a link can carry, such as 10Gbps")
    sub.add_argument(
        "--lines", action="store_true", help="print one line per look, even on a terminal"
    )
    sub.add_argument("--once", action="store_true", help="look once, print one line and exit")

    sub = command("plot", "write the pictures as PNG files")
    reads(sub)
    sub.add_argument("-o", "--output", default="plots", metavar="DIRECTORY")
    sub.add_argument("--iteration", type=int, help="of the timeline (default: one in the middle)")

    sub = command("export", "write the trace for other tools")
    sub.add_argument("format", choices=("chrome", "csv", "parquet", "chakra"))
    reads(sub)
    sub.add_argument("-o", "--output", metavar="FILE", help="for chakra a directory")
    sub.add_argument(
        "--iterations", type=_window, metavar="A:B", help="chrome: only iterations A to B - 1"
    )
    sub.add_argument(
        "--profile",
        nargs="+",
        action="extend",
        default=[],
        metavar="[RANK:]FILE",
        help="chrome: add what mx.profiler or torch.profiler wrote on a worker, on the same clock",
    )

    sub = command("convert", "turn text traces into binary ones or back")
    reads(sub)
    sub.add_argument("output", metavar="OUT", help="a .txt or .dlc file, or a directory")
    sub.add_argument("--to", choices=("txt", "dlc"), help="needed for a directory")

    sub = command("diff", "compare two runs")
    reads(sub)
    sub.add_argument("other", metavar="OTHER", help="the run to compare with RUN")
    sub.add_argument(
        "--fail-above",
        type=_percent,
        metavar="PERCENT",
        help="exit with 1 if an iteration of OTHER takes that much longer",
    )

    sub = command("example", "write a made-up run to try these commands on")
    sub.add_argument("output", metavar="DIRECTORY")
    sub.add_argument("--workers", type=count, default=2)
    sub.add_argument("--servers", type=count, default=1)
    sub.add_argument("--iterations", type=count, default=50)
    sub.add_argument("--mode", choices=("zmq", "mercury"), default="zmq")
    sub.add_argument("--seed", type=int, default=1)
    sub.add_argument("--binary", action="store_true", help="write .dlc files")
    return top


def _number(text: str) -> float:
    """nan: it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _pause(text: str) -> float:
    value = _number(text)
    if not 0.1 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds from 0.1 to 3600")
    return value


def _percent(text: str) -> float:
    value = _number(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of per cent, such as 5")
    return value


def _window(text: str) -> tuple[int, int]:
    begin, _, end = text.partition(":")
    if not (begin.isdigit() and end.isdigit() and int(begin) < int(end)):
        raise argparse.ArgumentTypeError(f"'{text}' does not have the form 10:50")
    return int(begin), int(end)


def main(argv: Sequence[str]) -> int:
    options = parser().parse_args(list(argv))
    try:
        importlib.import_module("numpy")
    except ImportError:
        print("mercury trace: needs NumPy: pip install numpy", file=sys.stderr)
        return FAILED
    from pslite_ext.command.trace import tasks

    task: Any = getattr(tasks, options.command)
    try:
        return int(task(options))
    except TraceError as error:
        if options.json:
            print_json({"error": str(error)})
        print(f"mercury trace: {error}", file=sys.stderr)
        return MISUSED if isinstance(error, UsageError) else FAILED
    except MemoryError:
        print(
            "mercury trace: not enough memory; export a window with --iterations, or analyse "
            "fewer files at once",
            file=sys.stderr,
        )
        return FAILED
