"""What a command prints: a full disk behind stdout is one line on stderr, not a traceback.

Nor are Ctrl-C, a standard stream that is closed, and a limit on open files that is too low.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable


class UnwritableError(Exception):
    """Stdout takes no more. `code_of` reports it."""


def say(text: str) -> None:
    """Writes `text` and all that was printed before it. A pipe that was closed is raised as is."""
    try:
        if text:  # where Python does not buffer, writing nothing fails on a full disk, too
            sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable(error) from error


def _unwritable(error: OSError) -> UnwritableError:
    return UnwritableError(f"stdout cannot be written: {error.strerror}")


def code_of(name: str, run: Callable[[], int]) -> int:
    """What a command comes to if it is interrupted, its reader has gone or stdout is full, too."""
    code = 0
    try:
        try:
            code = run()
        except OSError as error:
            if error.filename is None and error.errno in (errno.ENOSPC, errno.EIO):  # in a `print`
                raise _unwritable(error) from error
            raise
        finally:
            say("")
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _forget_output()
        return 141
    except UnwritableError as error:
        _forget_output()
        print(f"{name}: {error}", file=sys.stderr)
        return code or 2
    except OSError as error:
        if error.filename is None and error.errno == errno.ENOENT:  # os.getcwd has no name for it
            print(f"{name}: the current folder is gone: change to another one", file=sys.stderr)
            return 2
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        print(f"{name}: {error.strerror}: raise the limit, as by `ulimit -n 4096`", file=sys.stderr)
        return 2


def escape_what_stdout_lacks() -> None:
    """A character that its encoding does not have: Python does that on stderr, not on stdout."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def open_missing_streams() -> None:
    """One that our caller has closed (`>&-`): without it, a file of ours would get its number."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest that is free
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _forget_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
