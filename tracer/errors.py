"""What goes wrong with traces, in one line: where, what, and what to do about it."""

from __future__ import annotations


class TraceError(Exception):
    """A trace cannot be read, written or analysed. The text is for the user as it is."""


class UsageError(TraceError):
    """What was asked for cannot be: another choice of words would help, and nothing else."""


class MissingExtraError(TraceError):
    """An optional package is not installed."""

    def __init__(self, what: str, package: str) -> None:
        super().__init__(
            f"{what} needs {package}, which is not installed; run: pip install {package}"
        )
