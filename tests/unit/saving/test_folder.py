"""Which checkpoints there are, and which are swept away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pslite_ext.saving import part_file
from pslite_ext.saving.folder import SHARED, Folder, Place, own


def at(step: int, run: int = 7, workers: int = 2) -> Place:
    return Place(step, workers, run)


def made(root: Path, parts: dict[str, list[Place]]) -> Folder:
    folder = Folder(root)
    for part, places in parts.items():
        for place in places:
            folder.room(place, part).write_bytes(b"x")
    return folder


def test_parts_of_two_runs_are_apart(tmp_path: Path) -> None:
    folder = made(tmp_path / "a" / "b", {SHARED: [at(5), at(10), at(10, 8)], own(0): [at(10, 8)]})
    (folder.root / "notes.txt").write_text("mine")
    (folder.root / "step-000000000005").mkdir()  # nobody's
    assert folder.places(SHARED) == [at(10, 8), at(10), at(5)]
    assert folder.places(own(0)) == [at(10, 8)]
    folder.remove([at(10), at(10, 8)], SHARED)
    assert folder.places(SHARED) == [at(5)]
    assert not folder.path(at(10), SHARED).parent.exists()  # it was the last there
    assert folder.path(at(10, 8), own(0)).exists()
    assert (folder.root / "notes.txt").exists()


def test_what_was_never_finished_goes(tmp_path: Path) -> None:
    folder = made(tmp_path, {own(0): [at(5)], own(1): [at(5)]})
    unfinished = part_file.temporary(folder.room(at(20), own(0)))
    unfinished.write_bytes(b"half")
    others = part_file.temporary(folder.room(at(10), own(1)))
    others.write_bytes(b"half")
    folder.sweep(own(0))
    assert not unfinished.parent.exists()
    assert others.exists()
    assert folder.places(own(0)) == folder.places(own(1)) == [at(5)]
    strangers = part_file.temporary(folder.room(at(30), own(7)))
    strangers.write_bytes(b"half")
    folder.sweep()
    assert folder.all_places() == [at(5)]
    assert not others.exists()


def test_workers_that_are_no_more_leave_nothing(tmp_path: Path) -> None:
    old, new = at(5, 1, 4), at(10, 2)
    ranks = {own(rank): [old] for rank in range(4)}
    folder = made(tmp_path, {**ranks, SHARED: [old], own(0): [old, new]})
    for part in (SHARED, own(3)):
        part_file.temporary(folder.path(old, part)).touch()
    folder.remove_whole([old])
    assert folder.all_places() == [new]
    notes = folder.room(new, own(0)).with_name("notes.txt")
    notes.touch()
    folder.remove_whole([new])
    assert [*notes.parent.iterdir()] == [notes], "others' files are not ours to remove"


def test_what_may_not_be_seen_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made(tmp_path, {SHARED: [at(5), at(10)]})
    hidden, stat = str(folder.path(at(10), SHARED)), os.stat

    def refused(path: str | Path, **options: bool) -> os.stat_result:
        if str(path) == hidden:
            raise PermissionError(13, "Permission denied", path)
        return stat(path, **options)

    monkeypatch.setattr(os, "stat", refused)
    assert folder.places(SHARED) == [at(5)]
