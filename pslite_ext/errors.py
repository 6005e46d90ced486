"""Every error of the core as a Python exception; docs/errors.md says what each means.

`from_status` is the only place where a status of the core becomes an exception. What is raised may
have one more base: inside MXNet, every error is an MXNetError (mxnet_plugins/errors.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

# The exit code of a process whose job failed for what another process did: look at that one.
FAILED_ELSEWHERE = 69


@dataclass(frozen=True)
class Failure:
    """What the core says of a failure. Programs look at this; the text is for people."""

    code: int
    number: int = 0  # the same in all that failed of one thing in this process; 0: not of the core
    culprit: tuple[str, int] | None = None  # role and rank; -1 is the rank of a role's only one
    about: tuple[str, int] | None = None  # "tensor" or "model", and its key


ROLES = ("server", "worker", "scheduler", "replica")  # as the core numbers them
SUBJECTS = ("", "tensor", "model")


class PsliteError(Exception):
    """The base of all errors of this package. `code` is the core's number for it."""

    code = 7
    failure: Failure | None = None  # None: of Python's own making


class InvalidArgumentError(PsliteError, ValueError):
    """What was asked for makes no sense, or workers disagree about it."""

    code = 1


class CorruptError(PsliteError, OSError):
    """What was received is not what its sender sent, or is no message of ours."""

    code = 2


class PeerLostError(PsliteError, ConnectionError):
    """Another node died, fell silent, or failed; the text names it."""

    code = 3


class WaitTimeoutError(PsliteError, TimeoutError):
    """Something did not happen in the time that a setting allows."""

    code = 4


class ExhaustedError(PsliteError, MemoryError):
    """A limit was reached: memory, a cap that was set, file descriptors."""

    code = 5


class ClosedError(PsliteError, ConnectionError):
    """This process is not, or no longer, part of a job."""

    code = 6


class InternalError(PsliteError, RuntimeError):
    """A bug, in mercury-ps or in what it is built on."""

    code = 7


BY_CODE: dict[int, type[PsliteError]] = {e.code: e for e in PsliteError.__subclasses__()}


_raised = dict(BY_CODE)


def raise_also_as(base: type[Exception]) -> None:
    """From here on, whatever is raised for a status is a `base`, too."""
    _raised.update((code, with_base(error, base)) for code, error in BY_CODE.items())


def with_base(error: type[PsliteError], base: type[Exception]) -> type[PsliteError]:
    """`error` with one more base, by the same name; a process without that base can unpickle it."""
    traits = {"__module__": error.__module__, "__reduce__": lambda self: (error, self.args)}
    return type(error.__name__, (error, base), traits)


_told: set[int] = set()


def told() -> frozenset[int]:
    """The numbers of the failures that the core has raised in this process so far.

    Several operations may fail of one thing, each in its own time: who heard of it once knows.
    """
    return frozenset(_told)


def from_status(failure: Failure, text: str) -> PsliteError:
    """The exception for a status of the core."""
    _told.add(failure.number)
    error = _raised.get(failure.code, _raised[InternalError.code])(text)
    error.failure = failure
    return error


def refuse(text: str) -> NoReturn:
    """Of a call that makes no sense, before the core has seen it."""
    raise_status(Failure(InvalidArgumentError.code), text)


def raise_status(failure: Failure, text: str) -> NoReturn:
    """Raises the exception for a status of the core."""
    raise from_status(failure, text)


def reworded(error: PsliteError, text: str, kind: type[PsliteError] | None = None) -> PsliteError:
    """The same failure in other words, and perhaps of another kind."""
    its = (kind or type(error))(text)
    its.failure = error.failure
    return its


def follows(error: BaseException | None, failure: Failure | None) -> bool:
    """Whether the failure led to this exception."""
    while failure is not None and error is not None:
        its = error.failure if isinstance(error, PsliteError) else None
        if its is not None and its.number == failure.number:
            return True
        error = error.__cause__ or error.__context__
    return False
