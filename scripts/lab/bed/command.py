"""`mercury lab`: a test bed that stays until it is taken down."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from pslite_ext.command_line import Parser
from scripts.lab.bed import namespaces
from scripts.lab.bed.bed import Bed
from scripts.lab.bed.namespaces import LabError, privilege_missing


def _rate(text: str) -> float | None:
    """Mbit/s as bit/s; `none`: not limited."""
    return None if text == "none" else float(text) * 1e6


def parser() -> argparse.ArgumentParser:
    top = Parser(prog="mercury lab", description=__doc__)
    top.add_argument("--bed", metavar="ID", help="which one, if there are several")
    commands = top.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="make a bed; prints its id")
    up.add_argument("hosts", nargs="+", metavar="HOST")
    up.add_argument("--rate", type=_rate, default=None, help="of each link, Mbit/s (default: none)")
    run = commands.add_parser("run", help="run a program on a host")
    run.add_argument("host")
    run.add_argument("program", nargs=argparse.REMAINDER, metavar="-- PROGRAM ...")
    rate = commands.add_parser("rate", help="change a host's rates, Mbit/s or none")
    rate.add_argument("host")
    rate.add_argument("up", type=_rate)
    rate.add_argument("down", type=_rate)
    for name, what in (("cut", "cut a host off"), ("mend", "bring it back")):
        commands.add_parser(name, help=what).add_argument("host")
    commands.add_parser("status", help="list beds, hosts and addresses")
    commands.add_parser("down", help="remove a bed and end what runs in it")
    return top


def _chosen(run: str | None) -> str:
    """The bed that is meant: the one named, or the only one that was left up."""
    kept = [r for r in namespaces.runs() if namespaces.read_record(r).get("kept")]
    if run is not None:
        if run not in kept:
            raise LabError(f"there is no bed '{run}'")
        return run
    if len(kept) != 1:
        which = f"there are {', '.join(kept)}: choose with --bed" if kept else "none is up"
        raise LabError(f"which bed? {which}")
    return kept[0]


def _status() -> None:
    for run in namespaces.runs():
        record = namespaces.read_record(run)
        owner = "kept" if record.get("kept") else f"of process {record.get('pid')}"
        if not namespaces.is_alive(record):
            owner += ", which is gone"
        print(f"{run}  {owner}")
        bed = Bed.attach(run)
        for host in bed.hosts:
            counters = bed.counters(host)
            print(
                f"  {host:12} {bed.address(host):12} "
                f"sent {counters.sent} received {counters.received} bytes"
            )


def _run(bed: Bed, host: str, program: Sequence[str]) -> int:
    words = list(program[1:] if program[:1] == ["--"] else program)
    if not words:
        raise LabError("run what? mercury lab run HOST -- PROGRAM ...")
    command = ["ip", "netns", "exec", bed.namespace(host), *words]
    sys.stdout.flush()
    os.execvp(command[0], command)


def _perform(asked: argparse.Namespace) -> int:
    if asked.command == "up":
        namespaces.remove_leftovers()
        with Bed(asked.hosts, asked.rate) as bed:
            print(bed.keep())
        return 0
    if asked.command == "status":
        _status()
        return 0
    run = _chosen(asked.bed)
    if asked.command == "down":
        namespaces.remove_run(run)
        return 0
    bed = Bed.attach(run)
    if asked.command == "run":
        return _run(bed, asked.host, asked.program)
    if asked.command == "rate":
        bed.set_rate(asked.host, asked.up, asked.down)
    elif asked.command == "cut":
        bed.cut(asked.host)
    else:
        bed.mend(asked.host)
    return 0


def main(argv: Sequence[str]) -> int:
    asked = parser().parse_args(argv)
    try:
        if (reason := privilege_missing()) is not None:
            raise LabError(reason)
        return _perform(asked)
    except LabError as error:
        print(f"mercury lab: {error}", file=sys.stderr)
        return 1
