"""How commands give their results: as JSON, and as files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from tracer.errors import TraceError


@contextlib.contextmanager
def whole_file(path: str | Path) -> Iterator[IO[bytes]]:
    """Opens `path` for writing under a name of its own; it gets its name when it is complete.

    A device or a pipe is written to as it is, and a link stays one.
    """
    special = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    # Of a pipe, what the link /dev/stdout says is no name.
    target = Path(path if special else os.path.realpath(path))
    part = target if special else target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            yield file
        if not special:
            os.replace(part, target)
    except BrokenPipeError:
        raise  # its reader has seen enough
    except OSError as error:
        raise TraceError(
            f"{target}: cannot be written: {error.strerror or error}; "
            "choose another place or make room"
        ) from error
    finally:
        if not special:
            with contextlib.suppress(OSError):
                part.unlink()


@contextlib.contextmanager
def whole_directory(path: str | Path) -> Iterator[Path]:
    """A directory to write into. If that fails, nothing is left that was not there before."""
    folder = Path(path)
    made = [one for one in (folder, *folder.parents) if not os.path.exists(one)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TraceError(
            f"{folder}: cannot be made a directory: {error.strerror or error}; choose another place"
        ) from error
    try:
        yield folder
    except BaseException:
        if made:
            shutil.rmtree(made[-1], ignore_errors=True)
        raise


def json_text(value: Any, indent: int | None = 2) -> str:
    """Without indentation, as short as can be."""
    separators = (",", ":") if indent is None else None
    try:
        text = json.dumps(value, indent=indent, separators=separators, allow_nan=False)
    except ValueError:
        text = json.dumps(_plain(value), indent=indent, separators=separators, allow_nan=False)
    return text + "\n"


def print_json(value: Any) -> None:
    print(json_text(value), end="")


def write_json(path: str | Path, value: Any) -> None:
    with whole_file(path) as file:
        file.write(json_text(value).encode())


def _plain(value: Any) -> Any:
    """JSON knows neither nan nor infinity."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
