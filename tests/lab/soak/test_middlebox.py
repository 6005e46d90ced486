"""The middlebox: carries bytes as they are, and does to connections what it is asked."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.soak.crossing import Crossing
from scripts.soak.middlebox import Middlebox

PORT = 5000
# Answers each connection with how many bytes came, or with how it broke.
LISTENER = """
import socket, sys, zlib
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[1], 5000))
s.listen()
print("listening", flush=True)
while True:
    c, _ = s.accept()
    n, crc = 0, 0
    try:
        while data := c.recv(65536):
            n, crc = n + len(data), zlib.crc32(data, crc)
        print(n, crc, flush=True)
        c.sendall(b"%d" % n)
    except OSError as error:
        print(type(error).__name__, flush=True)
    c.close()
"""
SENDER = """
import socket, sys
try:
    c = socket.create_connection((sys.argv[1], 5000), 20)
    c.sendall(bytes(int(sys.argv[2])))
    c.shutdown(1)
    print("answered", c.recv(100).decode())
except OSError as error:
    print(type(error).__name__)
"""


class Two:
    """A talks to b, through the middle."""

    def __init__(self, bed: Crossing, box: Middlebox) -> None:
        self.bed, self.box = bed, box
        self.heard: list[str] = []
        program = [sys.executable, "-c", LISTENER, bed.address("b")]
        bed.start("b", program, told=self.heard.append)
        self.wait_heard(1)
        box.ask(lambda: box.listen(PORT))

    def wait_heard(self, lines: int) -> None:
        deadline = time.monotonic() + 30
        while len(self.heard) < lines:
            assert time.monotonic() < deadline, self.heard
            time.sleep(0.02)

    def send(self, count: int) -> list[str]:
        told: list[str] = []
        program = [sys.executable, "-c", SENDER, self.bed.address("b"), str(count)]
        child = self.bed.start("a", program, told=told.append)
        child.wait(30)
        deadline = time.monotonic() + 10
        while not told and time.monotonic() < deadline:
            time.sleep(0.02)
        return told


@pytest.fixture
def two(privileged: None) -> Iterator[Two]:
    firsts: list[str] = []
    with (
        Crossing(["a", "b"]) as bed,
        Middlebox(bed.namespace_file(), bed.names(), firsts.append) as box,
    ):
        yield Two(bed, box)


def test_what_it_carries_and_what_it_breaks(two: Two) -> None:
    assert two.send(3_000_000) == ["answered 3000000"]
    whole = two.heard[1]
    two.box.ask(lambda: two.box.once("a", "b", "flip"))
    assert two.send(3_000_000) == ["answered 3000000"]
    assert two.heard[2] != whole  # as many bytes, not the same
    two.box.ask(lambda: two.box.once("a", "b", "repeat"))
    answer = two.send(3_000_000)[0]
    assert int(answer.split()[1]) > 3_000_000
    assert two.box.done == ["flip", "repeat"]
    two.box.ask(lambda: two.box.swallow("a", "b"))
    assert two.send(100_000) == ["answered 0"]
    two.box.ask(lambda: two.box.cut("a", "b"))
    assert two.send(10)[0] in ("ConnectionResetError", "BrokenPipeError")


def test_a_stranger_is_heard_as_he_is(two: Two, tmp_path: Path) -> None:
    two.box.say("b", PORT, b"hello", stays_s=0.1)
    two.wait_heard(2)
    assert two.heard[1].startswith("5 ") or "Error" in two.heard[1]
