"""Where checkpoints are: a folder for each step, in it a part that all workers share, and each
worker's own.

    FOLDER/step-000000000200/shared.mercury  worker-0.mercury  worker-1.mercury ...

Each part has one writer. The folder may be one for all workers or one on each host: a part that is
not seen is not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pslite_ext.saving import part_file

SHARED = "shared"
_STEP = re.compile(r"step-(\d{12})")


def own(rank: int) -> str:
    return f"worker-{rank}"


class Folder:
    def __init__(self, root: Path) -> None:
        """Made if it is not there; raises an OSError if that cannot be."""
        self.root = root
        root.mkdir(parents=True, exist_ok=True)

    def path(self, step: int, part: str) -> Path:
        return self.root / f"step-{step:012d}" / f"{part}.mercury"

    def place(self, step: int, part: str) -> Path:
        """The same, to be written."""
        path = self.path(step, part)
        path.parent.mkdir(exist_ok=True)
        return path

    def steps(self, part: str) -> list[int]:
        """Of which there is that part, the newest first; nobody has looked into them."""
        return sorted((s for s, path in self._all() if self.path(s, part).exists()), reverse=True)

    def keep_newest(self, part: str, count: int) -> None:
        for step in self.steps(part)[count:]:
            self._remove(self.path(step, part))

    def drop_after(self, part: str, step: int) -> None:
        """What an earlier run has saved later than that, and what was never finished."""
        for number, folder in list(self._all()):
            unfinished = part_file.temporary(self.path(number, part))
            if unfinished.exists():
                self._remove(unfinished)
            if number > step and self.path(number, part).exists():
                self._remove(self.path(number, part))
            with suppress(OSError):
                folder.rmdir()  # if it is empty

    def _all(self) -> Iterator[tuple[int, Path]]:
        for path in self.root.iterdir():
            if found := _STEP.fullmatch(path.name):
                yield int(found[1]), path

    @staticmethod
    def _remove(path: Path) -> None:
        with suppress(OSError):
            path.unlink()
        with suppress(OSError):
            path.parent.rmdir()  # if it was the last
