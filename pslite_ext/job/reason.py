"""In a line, why a process has ended: what the others of its job are told."""

from __future__ import annotations

import re

_WHERE = re.compile(r'Traceback \(most recent |Stack trace|\s*\[bt\] |\s*File ".*", line \d')


def gist(text: str) -> str:
    """The line of an error's text that says what is wrong; "" if none does.

    Texts of MXNet begin or end with where in its sources it was, as Python's tracebacks do.
    """
    said = [line for line in text.splitlines() if line.strip() and not _WHERE.match(line)]
    flush = [line for line in said if not line[0].isspace()]
    return (flush or said or [""])[0].strip()


def why(error: BaseException) -> str:
    """The kind of error and the gist of its text."""
    kind, line = type(error).__name__, gist(str(error))
    return line if line.startswith(f"{kind}: ") else f"{kind}: {line}" if line else kind
