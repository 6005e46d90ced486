"""The `mercury` command: one subcommand a task, each imported only when it is asked for."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from pslite_ext.command.output import UnwritableError, say

# name -> (module, function, what it does)
COMMANDS = {
    "launch": ("launch", "main", "start a job's processes and watch them"),
    "trace": ("command.trace.command", "main", "read, check, analyse and show traces"),
    "sim": ("command.sim.command", "main", "predict iterations; replay traces; plan clusters"),
    "fabric": ("command.fabric", "main", "plan MLfabric's transfers for a batch of updates"),
    "profile": ("command.profile", "main", "measure the layer times of a gluon model, for sim"),
    "doctor": ("command.doctor", "main", "check that this machine can run a job"),
    "lab": ("command.lab", "main", "a test bed: hosts with link speeds on this machine"),
    "settings": ("command.main", "settings", "list all settings"),
    "version": ("command.main", "version", "print the version"),
}


def usage() -> str:
    lines = ["usage: mercury COMMAND ...", "", "commands:"]
    lines += [f"  {name:10} {what}" for name, (_, _, what) in COMMANDS.items()]
    lines += ["", "`mercury COMMAND --help` tells more."]
    return "\n".join(lines)


def settings(argv: Sequence[str]) -> int:
    from pslite_ext.config import TABLE, markdown

    if list(argv) == ["--markdown"]:
        say(markdown())
        return 0
    if argv:
        print("usage: mercury settings [--markdown]", file=sys.stderr)
        return 0 if argv[0] in ("-h", "--help") else 2
    for setting in TABLE:
        default = "required" if setting.default is None else f"default {setting.default or 'unset'}"
        say(f"{setting.name}  ({default}; {setting.allowed})\n    {setting.meaning}\n")
    return 0


def version(_argv: Sequence[str]) -> int:
    from pslite_ext import __version__

    say(f"mercury-ps {__version__}\n")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        try:
            return _run(words)
        finally:
            say("")
    except BrokenPipeError:
        _forget_output()
        return 141
    except UnwritableError as error:
        _forget_output()
        print(f"{' '.join(['mercury', *words[:1]])}: {error}", file=sys.stderr)
        return 2


def _run(words: Sequence[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        say(usage() + "\n")
        return 0 if words else 2
    if words[0] not in COMMANDS:
        print(f"mercury: there is no command '{words[0]}'\n\n{usage()}", file=sys.stderr)
        return 2
    module, function, _ = COMMANDS[words[0]]
    return int(getattr(importlib.import_module(f"pslite_ext.{module}"), function)(words[1:]))


def _forget_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
