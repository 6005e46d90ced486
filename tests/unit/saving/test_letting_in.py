"""What is given to a newcomer is what it takes, piece by piece, and nothing is left behind."""

from __future__ import annotations

import ctypes
import io
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pslite_ext.saving import letting_in
from pslite_ext.saving.letting_in import Given, Pieces, Taken

PIECE = 64
NEWCOMER = (3, 1)


class Servers:
    """The core, as far as it is used: values by key, and who waits for them."""

    def __init__(self) -> None:
        self.values: dict[int, bytes] = {}
        self.asked: set[int] = set()
        self.released: set[int] = set()
        self.most = 0
        self._changed = threading.Condition()

    def release(self, keys: list[int]) -> None:
        with self._changed:
            for key in keys:
                assert key in self.values  # else the one who gives would find it gone
                del self.values[key]
            self.released.update(keys)
            self._changed.notify_all()

    def say_admission(self, newcomer: Any, how_far: str) -> None:
        assert (newcomer, how_far) == (NEWCOMER, "ready")

    def give(self, key: int, value: bytes) -> None:
        with self._changed:
            assert key not in self.values
            self.values[key] = value
            self.most = max(self.most, len(self.values))
            self._changed.notify_all()

    def get(self, key: int) -> bytes:
        with self._changed:
            assert self._changed.wait_for(lambda: key in self.values, 20)
            return self.values[key]

    def wait_for_fewer_than(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.values) < count, 20)


class Work:
    def __init__(self, wait: Any) -> None:
        self.wait = wait


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Servers:
    made = Servers()

    class Tensor:
        def __init__(self, key: int, name: str, dtype: str, shape: list[int]) -> None:
            self._key, self._size = key, shape[0]

        def first_value(self, memory: Any) -> Work:
            _, address, size = memory
            assert size == self._size
            made.give(self._key, ctypes.string_at(address, size))
            return Work(lambda: None)

        def pull_memory(self, memory: Any, priority: int) -> Work:
            _, address, size = memory
            assert size == self._size
            assert priority < 0
            made.asked.add(self._key)

            def wait() -> None:
                value = made.get(self._key)
                assert len(value) == size
                ctypes.memmove(address, value, size)

            return Work(wait)

    monkeypatch.setattr(made, "Tensor", Tensor, raising=False)
    monkeypatch.setattr(letting_in, "_core", made)
    monkeypatch.setattr(letting_in, "PIECE_BYTES", PIECE)
    return made


def handed_over(words: bytes, data: bytes, cuts: random.Random) -> Taken:
    def write() -> None:
        given = Given(Pieces(NEWCOMER))
        given.write(len(words).to_bytes(8, "little") + words)
        at = 0
        while at < len(data):
            size = cuts.randint(1, 3 * PIECE)
            assert given.write(data[at : at + size]) == len(data[at : at + size])
            at += size
        given.end()

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        taken = Taken(NEWCOMER)
        writing.result()
    return taken


@pytest.mark.parametrize("size", [0, 1, PIECE - 12, PIECE, 5 * PIECE, 40 * PIECE + 7])
def test_all_of_it_and_nothing_left(servers: Servers, size: int) -> None:
    draw = random.Random(size)
    data = draw.randbytes(size)
    taken = handed_over(b'{"a": 1}', data, draw)
    assert taken.words() == {"a": 1}
    assert taken.read() == data
    assert not servers.values
    assert servers.released == servers.asked


def test_what_was_taken_is_a_file(servers: Servers) -> None:
    del servers
    draw = random.Random(1)
    data = draw.randbytes(10 * PIECE + 3)
    taken = handed_over(b"[]", data, draw)
    assert taken.words() == []
    ours, reference = io.BufferedReader(taken, 16), io.BytesIO(data)
    for _ in range(500):
        whence = draw.choice((io.SEEK_SET, io.SEEK_CUR, io.SEEK_END))
        ahead = draw.randint(0, len(data)) if whence == io.SEEK_SET else -draw.randint(0, 20)
        if whence == io.SEEK_CUR and reference.tell() + ahead < 0:
            continue
        assert ours.seek(ahead, whence) == reference.seek(ahead, whence)
        size = draw.randint(0, 4 * PIECE)
        assert ours.read(size) == reference.read(size)
        assert ours.tell() == reference.tell()


def test_servers_do_not_hold_all_of_it(servers: Servers) -> None:
    """Of a newcomer that keeps pace."""
    data = random.Random(2).randbytes(200 * PIECE)
    given = Given(Pieces(NEWCOMER))
    with ThreadPoolExecutor(1) as pool:
        taking = pool.submit(lambda: Taken(NEWCOMER).read())
        for at in range(0, len(data), PIECE):
            given.write(data[at : at + PIECE])
            servers.wait_for_fewer_than(80)
        given.end()
        assert taking.result() == data
    assert servers.most <= 100
