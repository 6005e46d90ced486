"""What a launcher and its scheduler say to each other while a job starts, runs and fails.

A line of JSON each. The launcher writes on the scheduler's standard input how a process of the job
has ended; the scheduler writes on its standard error, behind a mark that no log begins with, who
the job failed of, and at its end, whom the job went on without. Other lines are for people.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pslite_ext.errors import FAILED_ELSEWHERE, PsliteError

_MARK = "\x1e"  # a record separator, as RFC 7464 has it
_ROLES = ("worker", "server", "replica")
RANK_MAX = 1 << 20
GREETING = json.dumps({"reads": "standard error"})  # of a launcher that does


@dataclass(frozen=True)
class Ending:
    role: str
    rank: int
    code: int

    @property
    def how(self) -> str:
        return how_it_ended(self.code)

    @property
    def failed(self) -> bool:
        """Of its own: that fails the job."""
        return self.code not in (0, FAILED_ELSEWHERE)


def how_it_ended(code: int) -> str:
    """By the code that `Popen.returncode` has."""
    return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"


def ending(role: str, rank: int, code: int) -> str:
    return json.dumps({"role": role, "rank": rank, "code": code})


def greets(line: bytes) -> bool:
    return line == GREETING.encode()


def heard(line: bytes) -> Ending | None:
    """None: the line is none of ours."""
    try:
        said = json.loads(line)
        found = Ending(said["role"], said["rank"], said["code"])
    except (ValueError, LookupError, TypeError):
        return None
    whole = type(found.rank) is int and type(found.code) is int and 0 <= found.rank < RANK_MAX
    return found if found.role in _ROLES and whole else None


def failure(error: PsliteError) -> str:
    """What the scheduler says of the job's failure; "" if it knows of nobody."""
    named = error.failure.culprit if error.failure is not None else None
    if named is None:
        return ""
    return f"{_MARK}{json.dumps({'culprit': named})}"


def _said(line: str) -> Any:
    """Raises one of three errors for what we have not said."""
    return json.loads(line[len(_MARK) :]) if line.startswith(_MARK) else {}


def without(names: Sequence[str]) -> str:
    """Whom the scheduler has lost, in a job that goes on, as the launcher names processes."""
    return f"{_MARK}{json.dumps({'without': list(names)})}"


def done_without(line: str) -> list[str] | None:
    """The same; None: that line says something else."""
    try:
        return [str(name) for name in _said(line)["without"]]
    except (ValueError, LookupError, TypeError):
        return None


def culprit(line: str) -> str | None:
    """Who is to blame, as the launcher names processes; None: that line is for people."""
    if not line.startswith(_MARK):
        return None
    try:
        role, rank = _said(line)["culprit"]
    except (ValueError, LookupError, TypeError):
        return ""
    return f"{role} {max(rank, 0)}" if role in _ROLES and type(rank) is int else ""
