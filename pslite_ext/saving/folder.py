"""Where checkpoints are: a folder for each step, in it a part that all workers share, and each
worker's own.

    FOLDER/step-000000000200-of-2-1a2b3c4d/shared.mercury  worker-0.mercury  worker-1.mercury

The name says how many workers wrote it, and in which run of the job: parts of two runs that came to
the same step never go together. Each part has one writer. The folder may be one for all workers or
one on each host: a part that is not seen is not there.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pslite_ext.saving import part_file

SHARED = "shared"
RUNS = 1 << 32  # a run's number is below
_PLACE = re.compile(r"step-(\d{12})-of-(\d+)-([0-9a-f]{8})")
_PART = re.compile(r"\.?(shared|worker-\d+)\.mercury(\.part)?")  # whole or not


class Place(NamedTuple):
    """By step: the newest is the largest."""

    step: int
    workers: int
    run: int

    def __str__(self) -> str:
        return f"step-{self.step:012d}-of-{self.workers}-{self.run:08x}"


def own(rank: int) -> str:
    return f"worker-{rank}"


class Folder:
    def __init__(self, root: Path) -> None:
        """Made if it is not there; raises an OSError if it cannot be had."""
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        os.scandir(root).close()

    def why_unwritable(self) -> OSError | None:
        try:
            tempfile.TemporaryFile(dir=self.root).close()
        except OSError as error:
            return error
        return None

    def path(self, place: Place, part: str) -> Path:
        return self.root / str(place) / f"{part}.mercury"

    def room(self, place: Place, part: str) -> Path:
        """The same, to be written."""
        path = self.path(place, part)
        path.parent.mkdir(exist_ok=True)
        return path

    def places(self, part: str) -> list[Place]:
        """Where that part is, as far as we may see, the newest first; nobody has looked into
        them."""
        found = (place for place in self.all_places() if os.path.exists(self.path(place, part)))
        return sorted(found, reverse=True)

    def all_places(self) -> list[Place]:
        return [place for place, _ in self._all()]

    def remove(self, places: Iterable[Place], part: str) -> None:
        for place in places:
            self._remove(self.path(place, part))

    def remove_whole(self, places: Iterable[Place]) -> None:
        """Every part, whoever wrote it or had begun to."""
        for place in places:
            for path in list((self.root / str(place)).glob("*")):
                if _PART.fullmatch(path.name):
                    self._remove(path)

    def sweep(self, part: str = "*") -> None:
        """Removes what was never finished, of that part or of all."""
        unfinished = part_file.temporary(Path(f"{part}.mercury")).name
        for _, folder in list(self._all()):
            for path in list(folder.glob(unfinished)):
                with suppress(OSError):
                    path.unlink()
            with suppress(OSError):
                folder.rmdir()  # if it is empty

    def _all(self) -> Iterator[tuple[Place, Path]]:
        for path in self.root.iterdir():
            if found := _PLACE.fullmatch(path.name):
                yield Place(int(found[1]), int(found[2]), int(found[3], 16)), path

    @staticmethod
    def _remove(path: Path) -> None:
        with suppress(OSError):
            path.unlink()
        with suppress(OSError):
            path.parent.rmdir()  # if it was the last
