"""The `mercury` command: one subcommand a task, each imported only when it is asked for."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from types import ModuleType

from pslite_ext.command.lab import is_here
from pslite_ext.command.output import code_of, escape_what_stdout_lacks, open_missing_streams, say
from pslite_ext.command_line import Parser, suggestion

# name -> (module, function, what it does). Beside `main` its parser is called `parser`, beside any
# other function `FUNCTION_parser`.
COMMANDS = {
    "launch": ("launch", "main", "start a job's processes and watch them"),
    "join": ("launch.join", "main", "add a worker to a job that runs"),
    "trace": ("command.trace.command", "main", "read, check, analyse and show traces"),
    "sim": ("command.sim.command", "main", "predict iterations; replay traces; plan clusters"),
    "fabric": ("command.fabric", "main", "plan MLfabric's transfers for a batch of updates"),
    "profile": ("command.profile", "main", "measure the layer times of a gluon model, for sim"),
    "doctor": ("command.doctor", "main", "check that this machine can run a job"),
    "dump": ("command.dump", "main", "ask a job's processes what they are doing"),
    "lab": ("command.lab", "main", "a test bed: hosts with link speeds on this machine"),
    "settings": ("command.main", "settings", "list all settings"),
    "completion": ("command.completion", "main", "make a shell complete these commands"),
    "version": ("command.main", "version", "print the version"),
}


def commands() -> list[str]:
    """Those that there are here: the lab is in the source tree alone."""
    return [name for name in COMMANDS if name != "lab" or is_here()]


def usage() -> str:
    lines = ["usage: mercury [--version] COMMAND ...", "", "commands:"]
    lines += [f"  {name:10} {COMMANDS[name][2]}" for name in commands()]
    lines += ["", "For more: `mercury COMMAND --help`."]
    return "\n".join(lines)


def settings_parser() -> argparse.ArgumentParser:
    result = Parser(prog="mercury settings", description="List all settings.")
    result.add_argument("--markdown", action="store_true", help="as docs/settings.md")
    return result


def settings(argv: Sequence[str]) -> int:
    from pslite_ext.config import TABLE, markdown

    if settings_parser().parse_args(list(argv)).markdown:
        say(markdown())
        return 0
    for setting in TABLE:
        default = "required" if setting.default is None else f"default {setting.default or 'unset'}"
        say(f"{setting.name}  ({default}; {setting.allowed})\n    {setting.meaning}\n")
    return 0


def version_parser() -> argparse.ArgumentParser:
    return Parser(prog="mercury version", description="Print the version.")


def version(argv: Sequence[str]) -> int:
    from pslite_ext import __version__

    version_parser().parse_args(list(argv))
    say(f"mercury-ps {__version__}\n")
    return 0


def _unknown(word: str) -> str:
    """What to say of a command that there is not."""
    tasks = (
        *("stats", "check", "report", "live", "plot"),
        *("export", "convert", "diff", "example"),
    )
    if word in tasks:
        return f"mercury: there is no command '{word}'; did you mean 'mercury trace {word}'?"
    what = "option" if word.startswith("-") else "command"
    known = ("--help", "--version") if what == "option" else commands()
    return f"mercury: there is no {what} '{word}'{suggestion(word, known)}"


def parser_of(name: str) -> argparse.ArgumentParser:
    module, function, _ = COMMANDS[name]
    makes = "parser" if function == "main" else f"{function}_parser"
    made: argparse.ArgumentParser = getattr(_module(module), makes)()
    return made


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"pslite_ext.{name}")


def main(argv: Sequence[str] | None = None) -> int:
    open_missing_streams()
    escape_what_stdout_lacks()
    words = list(sys.argv[1:] if argv is None else argv)
    return code_of(" ".join(["mercury", *words[:1]]), lambda: _run(words))


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        say(usage() + "\n")
        return 0 if words else 2
    if words[0] == "--version":
        words[0] = "version"
    if words[0] not in commands():
        print(f"{_unknown(words[0])} (`mercury --help` lists all)", file=sys.stderr)
        return 2
    module, function, _ = COMMANDS[words[0]]
    return int(getattr(_module(module), function)(words[1:]))
