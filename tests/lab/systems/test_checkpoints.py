"""Checkpoints beside a server: how often, how much, and what a kill would have cost."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

from pslite_ext.saving import part_file
from scripts.lab.systems.checkpoints import Written, serve, written


class Training:
    """Has so many versions; one more each time that somebody looks."""

    def __init__(self, versions: int) -> None:
        self._versions, self._version = versions, 0
        self._done = Event()

    def model(self) -> tuple[Any, int]:
        self._version += 1
        if self._version >= self._versions:
            self._done.set()
        return np.full(3, self._version, np.float32), self._version

    def serve(self) -> None:
        assert self._done.wait(60)


@pytest.mark.parametrize("every", [1, 7])
def test_a_checkpoint_whenever_there_are_so_many_versions(every: int, tmp_path: Path) -> None:
    serve(Training(40), tmp_path / "made", every)
    found = written(tmp_path / "made")
    last = np.load(tmp_path / "made" / "model.npy")
    # Each look is a version, and so is the one after writing.
    assert 40 // (every + 1) - 1 <= found.checkpoints <= 42 // every
    assert every < found.most_lost <= every + 2
    assert found.bytes == found.checkpoints * (tmp_path / "made" / "model.npy").stat().st_size
    assert last[0] == last[2] > 0
    assert {file.name for file in (tmp_path / "made").iterdir()} == {
        "model.npy",
        "checkpoints.json",
    }


def test_none_is_written_before_its_time(tmp_path: Path) -> None:
    serve(Training(10), tmp_path, 1000)
    found = written(tmp_path)
    assert (found.checkpoints, found.bytes) == (0, 0)
    assert found.most_lost >= 10


def test_who_cannot_write_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(part_file, "write", full)
    with pytest.raises(OSError, match="no space left"):
        serve(Training(1), tmp_path, 1)


def test_what_was_written_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "checkpoints.json").write_text('{"checkpoints": 2, "bytes": 8, "most_lost": 3}')
    assert written(tmp_path) == Written(2, 8, 3)
