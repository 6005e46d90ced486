"""The file that holds a worker's Prophet profile between two runs.

Nothing that is wrong with it ends a run: it is said once, and a profile is learnt anew.
"""

from __future__ import annotations

import sys
from pathlib import Path

HEADING = "# Prophet profile"


def _warn(path: str, what: str) -> None:
    print(f"mercury: MERCURY_PROPHET_PROFILE is '{path}', which {what}", file=sys.stderr)


def read(path: str) -> str:
    """The profile; "" if there is none yet."""
    if not path:
        return ""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        _warn(path, f"cannot be read ({error}): a profile is learnt anew")
        return ""
    if not text.startswith(HEADING):
        _warn(path, "is not a Prophet profile: one is learnt anew, and the file is left alone")
        return ""
    return text


def write(path: str, text: str) -> None:
    """Replaces a profile; anything else is left alone."""
    if not path or not text:
        return
    file = Path(path)
    try:
        if file.exists() and not file.read_bytes().startswith(HEADING.encode()):
            return
        draft = file.with_name(file.name + ".draft")
        draft.write_text(text, encoding="utf-8")
        draft.replace(file)
    except OSError as error:
        _warn(path, f"cannot be written: {error.strerror}")
