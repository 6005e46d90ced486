"""A checkpoint of one worker alone, without a job, and what a newcomer leaves to the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pslite_ext import _core
from pslite_ext.saving import checkpoint, letting_in, part_file
from pslite_ext.saving.checkpoint import Checkpoint
from pslite_ext.saving.exchange import Seat
from pslite_ext.saving.folder import SHARED, Folder, Place, own


class Front:
    """A number that is trained."""

    def __init__(self) -> None:
        self.number = 0

    def capture_shared(self) -> int:
        return self.number

    def capture_own(self) -> int:
        return self.number

    def dump(self, state: int, file: Any) -> None:
        file.write(str(state).encode())

    def load(self, file: Any) -> int:
        return int(file.read())

    def restore(self, shared: int, mine: int | None) -> None:
        self.number = shared

    def parts(self) -> Iterator[int]:
        yield self.number

    def load_parts(self, files: Iterator[Any]) -> int:
        return sum(map(self.load, files))

    def standing(self) -> dict[str, Any]:
        return {}

    def stand(self, standing: Any) -> None:
        assert standing == {}

    def missing(self) -> str:
        return ""


@pytest.fixture(autouse=True)
def as_if_in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "_folders", set())


def trained(folder: Path, steps: int) -> None:
    front = Front()
    saved = Checkpoint(folder, front, Seat(0, 1, 1), 1, 2)
    for _ in range(steps):
        front.number += 1
        saved.step()
    saved.wait()
    checkpoint._folders.clear()


@pytest.mark.parametrize("part", [own(0), SHARED])
def test_it_goes_on_from_the_one_before_what_is_damaged(tmp_path: Path, part: str) -> None:
    trained(tmp_path, 3)
    found = Folder(tmp_path)
    newest = found.places(part)[0]
    assert newest.step == 3
    found.path(newest, part).write_bytes(b"damaged")
    front = Front()
    assert Checkpoint(tmp_path, front, Seat(0, 1, 1), 1, 2).steps == front.number == 2


def test_a_newcomer_leaves_what_another_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the place of worker 0, which the one that lets it in writes for."""
    place = Place(5, 2, 7)
    folder = Folder(tmp_path)
    unfinished = {part: part_file.temporary(folder.room(place, part)) for part in (own(0), SHARED)}
    for path in unfinished.values():
        path.touch()
    words = {"alike": [5, 2], "run": 7, "saves": 1, "by_all": [], "steps": 5}
    taken = {**words, "front": {}, "standing": ""}
    monkeypatch.setattr(_core, "outside", lambda: (0, 1))
    monkeypatch.setattr(letting_in, "take", lambda newcomer: (taken, iter(())))
    monkeypatch.setattr(letting_in, "enter", lambda newcomer, standing: None)
    assert Checkpoint(tmp_path, Front(), Seat(0, 2, 2), 5, 2).steps == 6
    assert not unfinished[own(0)].exists()
    assert unfinished[SHARED].exists()
