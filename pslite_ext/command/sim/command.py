"""`mercury sim`: predict, sweep, required-bandwidth, replay, cluster, scale, plan."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Any, Callable

from pslite_ext.command.arguments import count
from pslite_ext.command_line import Parser
from pslite_ext.quantity import QuantityError
from pslite_ext.wire_words import PLAIN, WORDS
from tracer.output import print_json

FAILED = 2
EXIT_CODES = "exit codes: 0 all well; 2 wrong usage or input; 130 interrupted"
NODE = "another rate for one node, such as worker1:1Gbps or server0:5Gbps; repeatable"
JOB = "a model's name (such as vgg16 or resnet50), or a JSON file: docs/model.md"


def parser() -> argparse.ArgumentParser:
    top = Parser(
        prog="mercury sim",
        description="Predict training iterations: other bandwidths, policies, machines. "
        f"JOB is {JOB}.",
        epilog=EXIT_CODES,
    )
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    sub = _command(commands, "predict", "one iteration: when each layer is sent and computed")
    _job(sub)
    _network(sub)
    sub.add_argument("--bandwidth", required=True, metavar="RATE", help="such as 10Gbps")
    sub.add_argument("--policy", default="mercury", help="default mercury; 'all' compares them")
    sub.add_argument("--rows", type=count, default=40, help="rows of the table (default 40)")

    sub = _command(commands, "sweep", "speed against bandwidth, for all policies")
    _job(sub)
    _network(sub)
    sub.add_argument("--from", dest="low", default="1Gbps", metavar="RATE", help="default 1Gbps")
    sub.add_argument("--to", dest="high", default="100Gbps", metavar="RATE", help="100Gbps")
    sub.add_argument("--points", type=count, default=100, help="default 100")
    _policies(sub)

    sub = _command(commands, "required-bandwidth", "the bandwidth that keeps computation going")
    sub.add_argument("jobs", metavar="JOB", nargs="+", help=JOB)
    _shape(sub)
    _network(sub)
    sub.add_argument(
        "--target", type=float, default=0.99, help="t_oracle / t_iter to exceed (default 0.99)"
    )
    _policies(sub)

    sub = _command(commands, "replay", "a captured run under other conditions")
    sub.add_argument("traces", metavar="RUN", help="a directory of trace files")
    sub.add_argument("--bandwidth", metavar="RATE", help="default: as the trace shows")
    sub.add_argument("--latency", metavar="TIME", help="one way; default: as the trace shows")
    sub.add_argument("--policy", help="default: as recorded")
    sub.add_argument("--workers", type=count, help="default: as recorded")
    sub.add_argument("--servers", type=count, help="default: as recorded")
    sub.add_argument("--aggregate", choices=("server", "switch"), default="server")
    _slow(sub)
    sub.add_argument(
        "--forward-share",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="take this share of computation for forward, which starts layer by layer (default 0)",
    )

    sub = _command(commands, "cluster", "jobs on unequal machines, in racks, sharing links")
    sub.add_argument("jobs", metavar="JOB", nargs="+", help=f"{JOB}; several share the workers")
    _shape(sub)
    _network(sub)
    sub.add_argument("--bandwidth", required=True, metavar="RATE", help="such as 10Gbps")
    sub.add_argument("--policy", default="mercury", help="default mercury")
    sub.add_argument("--iterations", type=count, default=5, help="default 5")
    sub.add_argument("--node", action="append", default=[], metavar="NODE:RATE", help=NODE)
    sub.add_argument(
        "--change", action="append", default=[], metavar="TIME:RATE", help="of all other links"
    )
    _slow(sub)
    sub.add_argument("--jitter", type=float, default=0.0, help="of computation: sigma of its log")
    sub.add_argument("--seed", type=int, default=0, help="of the jitter (default 0)")
    sub.add_argument("--racks", type=count, metavar="N", help="deal the workers into N racks")
    sub.add_argument("--rack-bandwidth", metavar="RATE", help="constant; default: its workers' sum")
    sub.add_argument("--aggregate", choices=("server", "rack", "switch"), default="server")
    sub.add_argument(
        "--sharing",
        choices=("priority", "fair", "fifo"),
        help="how links into nodes choose (default priority; with --window: fifo)",
    )
    sub.add_argument(
        "--window",
        metavar="SIZE",
        help="packets go while less is under way from one node to another",
    )
    sub.add_argument("--beside", action="store_true", help="servers are on the workers' hosts")
    sub.add_argument(
        "--reaction", metavar="TIME", help="until a process takes what has arrived, on average"
    )

    sub = _command(commands, "scale", "iteration time for one to thousands of workers, simulated")
    _job(sub)
    _network(sub, machines=False)
    sub.add_argument("--bandwidth", required=True, metavar="RATE", help="such as 10Gbps")
    sub.add_argument("--most", type=count, metavar="N", help="workers (default: up to 4096)")
    sub.add_argument("--servers", type=count, help="default: as many as hosts")
    sub.add_argument("--aggregate", choices=("server", "switch"), default="server")
    _policies(sub)

    sub = _command(commands, "plan", "how many servers are worth it, and what limits then")
    _job(sub)
    _network(sub, machines=False)
    sub.add_argument("--bandwidth", required=True, metavar="RATE", help="such as 10Gbps")
    sub.add_argument("-n", "--workers", type=count, required=True)
    sub.add_argument("--policy", default="mercury", help="default mercury")
    sub.add_argument(
        "--worth",
        type=float,
        default=1.0,
        metavar="PERCENT",
        help="fewer servers are enough if an iteration takes at most so much longer (default 1)",
    )
    return top


def _command(commands: Any, name: str, says: str) -> argparse.ArgumentParser:
    sub: argparse.ArgumentParser = commands.add_parser(
        name, help=says, description=f"Predict {says}.", epilog=EXIT_CODES
    )
    sub.add_argument("--json", action="store_true", help="print the result as JSON")
    sub.add_argument("--csv", metavar="FILE", help="write the table as CSV")
    sub.add_argument("--plot", metavar="FILE", help="draw it: a .svg or .png file")
    sub.add_argument("--quiet", action="store_true", help="no progress on stderr")
    return sub


def _job(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("job", metavar="JOB", help=JOB)
    _shape(sub)


def _shape(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--compute", metavar="TIME", help="scale the computation of an iteration")
    sub.add_argument("--steps", type=count, metavar="N", help="gradients appear in N groups")
    sub.add_argument("--wire", choices=WORDS, default=PLAIN, help="as what gradients travel")


def _network(sub: argparse.ArgumentParser, machines: bool = True) -> None:
    if machines:
        sub.add_argument("--workers", type=count, default=2, help="default 2")
        sub.add_argument("--servers", type=count, help="default: as many as hosts")
    sub.add_argument(
        "--per-host",
        type=count,
        default=1,
        metavar="N",
        help="workers that share a host, and are summed on it (default 1)",
    )
    sub.add_argument("--latency", metavar="TIME", default="0s", help="one way (default 0s)")
    sub.add_argument(
        "--startup", metavar="TIME", default="0s", help="before a message, where a policy has any"
    )
    sub.add_argument("--partition", metavar="SIZE", help="where policies cut tensors")
    sub.add_argument("--credit", metavar="SIZE", help="of bytescheduler, byteps: most on the way")
    sub.add_argument("--packet", metavar="SIZE", help="of mercury and fifo")
    sub.add_argument("--bucket", metavar="SIZE", help="of ring (default 25MB)")


def _slow(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--slow-worker",
        action="append",
        default=[],
        metavar="WORKER:FACTOR",
        help="it computes so many times as long, such as 1:2.0; repeatable",
    )


def _policies(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--policies", metavar="A,B,...", help="default: all")


def main(argv: Sequence[str]) -> int:
    options = parser().parse_args(list(argv))
    try:
        importlib.import_module("numpy")
    except ImportError:
        return _fail(options, "needs NumPy: pip install numpy")
    from pslite_ext.command.sim.answer import show
    from pslite_ext.forecast.model import ModelError, model_name
    from tracer.errors import TraceError

    if getattr(options, "policy", None):
        options.policy = model_name(options.policy)
    module = importlib.import_module(f"pslite_ext.command.sim.{options.command.replace('-', '_')}")
    answer: Callable[[argparse.Namespace], Any] = module.answer
    try:
        show(answer(options), options)
    except (ModelError, QuantityError, TraceError) as error:
        return _fail(options, str(error))
    except MemoryError:
        return _fail(options, "not enough memory: ask for fewer workers, iterations or points")
    except OverflowError as error:
        return _fail(options, f"a number is too large ({error}): give smaller ones")
    return 0


def _fail(options: argparse.Namespace, says: str) -> int:
    if options.json:
        print_json({"error": says})
    print(f"mercury sim: {says}", file=sys.stderr)
    return FAILED
