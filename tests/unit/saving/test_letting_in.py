"""What is given to a newcomer is what it takes, part by part, and nothing is left behind."""

from __future__ import annotations

import ctypes
import io
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO

import pytest

from pslite_ext.errors import InternalError, PeerLostError
from pslite_ext.saving import letting_in
from pslite_ext.saving.letting_in import Given, Newcomer, Pieces, Taken

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


def handed_over(parts: list[bytes], cuts: random.Random) -> list[BinaryIO]:
    def write() -> None:
        given = Given(Pieces(NEWCOMER))
        for part in parts:
            at = 0
            while at < len(part):
                size = cuts.randint(1, 3 * PIECE)
                assert given.write(part[at : at + size]) == len(part[at : at + size])
                at += size
            given.end_part()
        given.end()

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        taken = [*Taken(NEWCOMER).parts]
        writing.result()
    return taken


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, 5 * PIECE, 40 * PIECE + 7])
@pytest.mark.parametrize("count", [1, 2, 20])
def test_all_of_it_and_nothing_left(servers: Servers, size: int, count: int) -> None:
    draw = random.Random(size)
    parts = [b"first", *(draw.randbytes(size) for _ in range(count)), b"last"]
    taken = handed_over(parts, draw)
    assert [file.read() for file in taken] == [part for part in parts if part]
    assert not servers.values
    assert servers.released == servers.asked


def test_one_that_may_not_be_let_in_is_lost_alone(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a sum still has copies of who had its place before."""
    done_without: list[str] = []

    def refuse(_newcomer: Newcomer) -> None:
        raise InternalError("sums have copies of who was there before")

    def wait(_newcomer: Newcomer, _what: str, _within_s: float = 0.0) -> bool:
        if done_without:
            raise PeerLostError("it is gone")
        return True

    calls: dict[str, Any] = {
        "say_admission": lambda *_: None,
        "wait_admission": wait,
        "standing": lambda: "",
        "let_in": refuse,
        "do_without": lambda _newcomer, why: done_without.append(why),
        "check": lambda: None,
    }
    for name, call in calls.items():
        monkeypatch.setattr(servers, name, call, raising=False)
    assert not letting_in.give(NEWCOMER, {"steps": 1}, iter(()))
    assert done_without == ["sums have copies of who was there before; start it again"]


def test_a_part_is_a_file(servers: Servers) -> None:
    del servers
    draw = random.Random(1)
    data = draw.randbytes(10 * PIECE + 3)
    (ours,) = handed_over([data], draw)
    reference = io.BytesIO(data)
    for _ in range(500):
        whence = draw.choice((io.SEEK_SET, io.SEEK_CUR, io.SEEK_END))
        ahead = draw.randint(0, len(data)) if whence == io.SEEK_SET else -draw.randint(0, 20)
        if whence == io.SEEK_CUR and reference.tell() + ahead < 0:
            continue
        assert ours.seek(ahead, whence) == reference.seek(ahead, whence)
        size = draw.randint(0, 4 * PIECE)
        assert ours.read(size) == reference.read(size)
        assert ours.tell() == reference.tell()


def test_a_part_is_there_before_the_next_one_is_given(servers: Servers) -> None:
    """So that it is loaded meanwhile. What has been asked for ahead is given, too."""
    del servers
    given, parts = Given(Pieces(NEWCOMER)), Taken(NEWCOMER).parts
    for number in range(5):
        given.write(bytes([number]))
        given.end_part()
        given.write(bytes(letting_in.AHEAD * PIECE))
        given.end_part()
        if number:
            assert next(parts).read() == bytes(letting_in.AHEAD * PIECE)
        assert next(parts).read() == bytes([number])


def test_servers_do_not_hold_all_of_it(servers: Servers) -> None:
    """Of a newcomer that keeps pace."""
    data = random.Random(2).randbytes(200 * PIECE)
    given = Given(Pieces(NEWCOMER))
    with ThreadPoolExecutor(1) as pool:
        taking = pool.submit(lambda: [file.read() for file in Taken(NEWCOMER).parts])
        for at in range(0, len(data), PIECE):
            given.write(data[at : at + PIECE])
            servers.wait_for_fewer_than(80)
        given.end_part()
        given.end()
        assert taking.result() == [data]
    assert servers.most <= 100
