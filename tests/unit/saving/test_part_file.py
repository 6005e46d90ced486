"""What is read is what was written, or is said to be damaged; nothing is half there."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pslite_ext.saving import part_file
from pslite_ext.saving.part_file import DamagedError


def write(path: Path, data: bytes) -> None:
    def dump(file: Any) -> None:
        for begin in range(0, len(data), 777):
            file.write(data[begin : begin + 777])

    part_file.write(path, dump)


@pytest.mark.parametrize("size", [0, 1, 5000, 3 << 20])
def test_it_comes_back(tmp_path: Path, size: int) -> None:
    data = random.Random(size).randbytes(size)
    path = tmp_path / "part"
    write(path, data)
    with part_file.read(path) as file:
        assert file.read() == data
        assert file.seek(0, 2) == size
        file.seek(size // 2)
        assert file.read(10) == data[size // 2 :][:10]
    assert [p.name for p in tmp_path.iterdir()] == ["part"]


def test_what_numpy_writes_and_reads(tmp_path: Path) -> None:
    arrays = {"a": np.arange(1000), "b/c": np.zeros((3, 0), np.float32)}
    part_file.write(tmp_path / "part", lambda file: np.savez(file, **arrays))
    with part_file.read(tmp_path / "part") as file, np.load(file) as found:
        assert {*found.files} == {*arrays}
        assert all(np.array_equal(found[name], arrays[name]) for name in arrays)


@pytest.mark.parametrize("seed", range(40))
def test_every_damage_is_seen(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    path = tmp_path / "part"
    write(path, draw.randbytes(draw.randrange(300)))
    whole = path.read_bytes()
    damaged = bytearray(whole)
    kind = draw.randrange(3)
    if kind == 0:
        damaged[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
    elif kind == 1:
        del damaged[draw.randrange(len(whole)) :]
    else:
        at = draw.randrange(len(whole) + 1)
        damaged[at:at] = draw.randbytes(draw.randrange(1, 20))
    path.write_bytes(damaged)
    if bytes(damaged) == whole:
        return
    with pytest.raises(DamagedError):
        part_file.read(path)


def test_a_full_disk_is_called_so_whatever_the_writer_makes_of_it(tmp_path: Path) -> None:
    path = tmp_path / "part"
    part_file.temporary(path).symlink_to("/dev/full")

    def dump(file: Any) -> None:
        try:
            file.write(bytes(1 << 20))
        except OSError:
            raise RuntimeError("unexpected pos") from None

    with pytest.raises(OSError, match="No space left on device"):
        part_file.write(path, dump)


def test_what_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "part"
    write(path, b"first")

    def fails(file: Any) -> None:
        file.write(b"second")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        part_file.write(path, fails)
    with part_file.read(path) as file:
        assert file.read() == b"first"
    assert [p.name for p in tmp_path.iterdir()] == ["part"]
