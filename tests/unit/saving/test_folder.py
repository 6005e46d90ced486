"""Which checkpoints there are, and which are swept away."""

from __future__ import annotations

from pathlib import Path

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


def test_workers_that_are_no_more_leave_nothing(tmp_path: Path) -> None:
    old, new = at(5, 1, 4), at(10, 2)
    ranks = {own(rank): [old] for rank in range(4)}
    folder = made(tmp_path, {**ranks, own(0): [old, new]})
    folder.remove_strangers([old], 2)
    assert folder.places(own(1)) == [old]
    assert folder.places(own(2)) == folder.places(own(3)) == []
