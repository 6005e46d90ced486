"""Which checkpoints there are, which are kept, and which are swept away."""

from __future__ import annotations

from pathlib import Path

from pslite_ext.saving import part_file
from pslite_ext.saving.folder import SHARED, Folder, own


def made(root: Path, parts: dict[str, list[int]]) -> Folder:
    folder = Folder(root)
    for part, steps in parts.items():
        for step in steps:
            folder.place(step, part).write_bytes(b"x")
    return folder


def test_the_newest_are_kept(tmp_path: Path) -> None:
    folder = made(tmp_path / "a" / "b", {SHARED: [5, 10, 15], own(0): [5, 10, 15], own(1): [5, 10]})
    (folder.root / "notes.txt").write_text("mine")
    folder.keep_newest(SHARED, 2)
    folder.keep_newest(own(0), 2)
    assert folder.steps(SHARED) == folder.steps(own(0)) == [15, 10]
    assert folder.steps(own(1)) == [10, 5]
    folder.keep_newest(own(1), 1)
    assert not folder.path(5, SHARED).parent.exists()  # it was the last there
    assert (folder.root / "notes.txt").exists()


def test_what_a_run_that_died_has_left_goes(tmp_path: Path) -> None:
    folder = made(tmp_path, {own(0): [5, 10, 15], own(1): [5, 15], SHARED: []})
    unfinished = part_file.temporary(folder.place(20, own(0)))
    unfinished.write_bytes(b"half")
    others = part_file.temporary(folder.place(10, own(1)))
    others.write_bytes(b"half")
    folder.drop_after(own(0), 10)
    assert folder.steps(own(0)) == [10, 5]
    assert folder.steps(own(1)) == [15, 5]  # is not this one's to remove
    assert not unfinished.parent.exists()
    assert others.exists()
