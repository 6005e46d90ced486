"""Whatever a store raises is an MXNetError, and still what pslite_ext.errors says it is.

Three ways lead to a script: a call of the core fails (`raise_status`), a store refuses a call (the
classes below), and an operation fails after it was queued, so that MXNet's engine raises it at the
next read: then its text begins with a name by which MXNet finds the exception.
"""

from __future__ import annotations

from functools import partial

from mxnet.base import MXNetError, register_error

from pslite_ext import _core, errors


class InvalidArgumentError(errors.InvalidArgumentError, MXNetError):  # type: ignore[misc]
    """A call that makes no sense."""


class WrongTypeError(InvalidArgumentError, TypeError):
    """A call with an object of another type than it can take."""


def as_mxnet(error: errors.PsliteError) -> errors.PsliteError:
    """The same error as an MXNetError: of what knows nothing of MXNet, such as the settings."""
    known = isinstance(error, MXNetError)
    kind = errors.with_base(type(error), MXNetError)
    return error if known else errors.reworded(error, str(error), kind)


def _of_engine(code: int, prefix: str, text: str) -> errors.PsliteError:
    number, _, rest = text.removeprefix(prefix).strip().partition(" ")
    # Of very many, the engine's text is all that is left.
    known = _core.engine_failure(int(number))
    return known or errors.from_status(errors.Failure(code), rest)


def install() -> None:
    """Makes MXNet's engine and the core raise these; to be called before a job is joined."""
    errors.raise_also_as(MXNetError)
    for code in errors.BY_CODE:
        name = f"mercury.error_{code}"  # as process/mxnet_engine.cc puts it in front of the text
        register_error(name, partial(_of_engine, code, f"{name}:"))
