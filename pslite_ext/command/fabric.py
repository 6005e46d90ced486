"""`mercury fabric`: what MLfabric's scheduler would do with a batch, how fast, and what it did."""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from pslite_ext.command.arguments import count
from pslite_ext.command.output import say
from tracer.errors import TraceError
from tracer.fabric import NAME, in_words, read

T = TypeVar("T")
FAILED = 2
BATCH_MIB_MOST = 64  # some 400,000 updates; nothing endless is read
EXIT_CODES = (
    "exit codes: 0 all well; 2 wrong usage or input, or stdout cannot be written; 130 interrupted"
)
SEARCH = "look for a better plan near the rules' one, for some milliseconds"
# Of |U| = 10, 100, 500, 1000, in ms: MLfabric, Section 10.
PUBLISHED_MS = {10: 5, 100: 30, 500: 440, 1000: 1460}


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="mercury fabric",
        description="Plan what MLfabric would send when (docs/fabric-plan.md has the format), or "
        "see what a job did.",
        epilog=EXIT_CODES,
    )
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    sub = commands.add_parser(
        "plan", help="the plan of one batch, as JSON", description="Plan one batch."
    )
    sub.add_argument("batch", metavar="BATCH.json")
    sub.add_argument("--explain", action="store_true", help="in words, with the reasons")
    sub.add_argument("--search", action="store_true", help=SEARCH)
    sub = commands.add_parser(
        "tree",
        help="how the model gets back to a batch's workers, in words",
        description="Say by which tree each worker of a batch gets the model: as many bytes as its "
        "update has, from when that is available. The aggregators pass it on.",
    )
    sub.add_argument("batch", metavar="BATCH.json")
    sub = commands.add_parser(
        "time", help="how long plans take on this machine", description="Time random batches."
    )
    sub.add_argument("sizes", metavar="UPDATES", type=count, nargs="*", help="10 100 500 1000")
    sub.add_argument("--aggregators", type=count, default=8, metavar="N", help="default 8")
    sub.add_argument("--repeat", type=count, default=7, metavar="N", help="batches (default 7)")
    sub.add_argument("--search", action="store_true", help=SEARCH)
    sub = commands.add_parser(
        "history",
        help="what a job did: fates, delays, links",
        description="Say what a job under MLfabric did, by what its scheduler recorded.",
    )
    sub.add_argument("trace", metavar="TRACE", help=f"the job's --trace-dir, or its {NAME}")
    instead = sub.add_mutually_exclusive_group()
    instead.add_argument(
        "--chrome", metavar="FILE", help="who sent to whom when, for ui.perfetto.dev, instead"
    )
    instead.add_argument(
        "--html", metavar="FILE", help="a page with pictures, instead (needs matplotlib)"
    )
    return top


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    if args.command == "history":
        return _tell(args)
    return _time(args) if args.command == "time" else _answer(args)


def _tell(args: argparse.Namespace) -> int:
    try:
        if args.chrome:
            from tracer.export.fabric_chrome import write_chrome

            write_chrome(args.trace, args.chrome)
        elif args.html:
            from tracer.report.fabric import write_report

            write_report(read(args.trace), args.html)
        else:
            say(in_words(read(args.trace)))
    except TraceError as error:
        print(f"mercury fabric history: {error}", file=sys.stderr)
        return FAILED
    return 0


def _answer(args: argparse.Namespace) -> int:
    """What the core says of one batch."""
    from pslite_ext import _core
    from pslite_ext.errors import InvalidArgumentError

    name = f"mercury fabric {args.command}: {args.batch!r}"
    try:
        batch = _read(Path(args.batch))
        if args.command == "tree":
            text = _interruptible(partial(_core.fabric_tree, batch))
        else:
            text = _interruptible(partial(_core.fabric_plan, batch, args.search, args.explain))
    except InvalidArgumentError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return FAILED
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        print(f"{name} cannot be read: {reason}", file=sys.stderr)
        return FAILED
    say(text)
    return 0


def _interruptible(compute: Callable[[], T]) -> T:
    """In a thread that nobody waits for at exit: the core does not look for a Ctrl-C."""
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(compute())
        except BaseException as error:
            result.set_exception(error)

    Thread(target=run, daemon=True, name="mercury-plan").start()
    return result.result()


def _read(path: Path) -> bytes:
    most = BATCH_MIB_MOST << 20
    with path.open("rb") as file:
        batch = file.read(most + 1)
    if len(batch) > most:
        raise ValueError(f"it is larger than {BATCH_MIB_MOST} MiB")
    return batch


def random_batch(updates: int, aggregators: int, seed: int) -> dict[str, Any]:
    """As the paper times them: |U| / 2 hosts, deadlines from U(1, 2|U|)."""
    draw = random.Random(seed)
    hosts = max(1, updates // 2)
    rates = (1e9, 2.5e9, 3.3e9, 5e9, 1e10)

    def profile() -> list[list[float]]:
        return [[0.0, draw.choice(rates)]]

    placement = {f"w{u}": f"h{u % hosts}" for u in range(updates)}
    names = [f"a{a}" for a in range(aggregators)]
    placement |= {name: f"h{draw.randrange(hosts)}" for name in names} | {"server": "s"}
    return {
        "hosts": {f"h{h}": {"in": profile(), "out": profile()} for h in range(hosts)}
        | {"s": {"in": [[0, 1e10]], "out": [[0, 1e10]]}},
        "placement": placement,
        "server": "server",
        "aggregators": names,
        "replica": None,
        "mode": "async",
        "delay_bound": 2 * updates,
        "version": 2 * updates,
        "momentum": 0.9,
        "updates": [
            {
                "id": f"g{u}",
                "worker": f"w{u}",
                "bytes": 100_000_000,
                "available_s": 0,
                "version": draw.randint(1, 2 * updates),
                "norm": 1,
            }
            for u in range(updates)
        ],
    }


def _time(args: argparse.Namespace) -> int:
    from pslite_ext import _core

    def spent_ms(batch: bytes) -> float:
        before = time.perf_counter()
        _core.fabric_plan(batch, args.search)
        return 1e3 * (time.perf_counter() - before)

    say("updates  median ms  least ms  paper's ms\n")
    for updates in args.sizes or PUBLISHED_MS:
        spent = []
        for seed in range(args.repeat):
            batch = json.dumps(random_batch(updates, args.aggregators, seed)).encode()
            spent.append(_interruptible(partial(spent_ms, batch)))
        published = PUBLISHED_MS.get(updates, "-")
        line = f"{updates:7}  {statistics.median(spent):9.2f}  {min(spent):8.2f}  {published:>10}"
        say(line + "\n")
    return 0
