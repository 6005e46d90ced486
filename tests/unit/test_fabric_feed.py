"""An operator's feed: whole lines, from a file or a socket; what is wrong is said once."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pslite_ext.errors import InvalidArgumentError
from pslite_ext.fabric.feed import LINE_BYTES_MAX, Feed


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_file_that_grows(tmp_path: Path) -> None:
    path = tmp_path / "feed"
    path.write_bytes(b"one\n\ntw")
    heard: list[bytes] = []
    feed = Feed(str(path), heard.append)
    wait_until(lambda: heard == [b"one"])
    with path.open("ab") as file:
        file.write(b"o\nthree\n")
    wait_until(lambda: heard == [b"one", b"two", b"three"])
    feed.close()


def test_a_file_that_begins_anew(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "feed"
    path.write_bytes(b"the first\ncut o")
    heard: list[bytes] = []
    feed = Feed(str(path), heard.append)
    wait_until(lambda: heard == [b"the first"])
    path.write_bytes(b"cut\n")
    wait_until(lambda: heard[1:] == [b"cut"])
    path.rename(tmp_path / "feed.1")
    path.write_bytes(b"another of its name\n")
    wait_until(lambda: heard[2:] == [b"another of its name"])
    feed.close()
    assert capfd.readouterr().err.count("it begins anew and is read from there") == 1


def test_a_socket_that_ends(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "feed")
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(path)
        door.listen()
        feed = Feed(path, heard.append)
        operator, _ = door.accept()
        operator.sendall(b"one\ntwo\n")
        wait_until(lambda: len(heard) == 2)
        operator.close()
    said = ""

    def has_said() -> bool:
        nonlocal said
        said += capfd.readouterr().err
        return "rates are measured from here on" in said

    wait_until(has_said)
    feed.close()


def test_a_named_pipe(tmp_path: Path) -> None:
    """Whoever writes may come late, go, and come again, or never."""
    path = tmp_path / "feed"
    os.mkfifo(path)
    heard: list[bytes] = []
    feed = Feed(str(path), heard.append)
    for line in (b"one", b"two"):
        with path.open("wb") as pipe:
            pipe.write(line + b"\n")
        wait_until(lambda line=line: heard[-1:] == [line])  # type: ignore[misc]
    feed.close()
    Feed(str(path), heard.append).close()
    assert heard == [b"one", b"two"]


def test_a_socket_that_nobody_accepts(tmp_path: Path) -> None:
    path = str(tmp_path / "feed")
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(path)
        door.listen(0)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as first:
            first.connect(path)  # no more can wait
            Feed(path, heard.append).close()
            feed = Feed(path, heard.append)
            door.accept()[0].close()
            operator, _ = door.accept()
        operator.sendall(b"one\n")
        wait_until(lambda: heard == [b"one"])
        feed.close()
        operator.close()


def test_what_makes_no_sense_is_said_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "feed"
    path.write_bytes(b"bad 9\nbad 10\n" + b"x" * (LINE_BYTES_MAX + 1) + b"\ngood\n")
    heard: list[bytes] = []

    def take(line: bytes) -> None:
        if line.startswith(b"bad"):
            number = line[4:].decode()
            raise InvalidArgumentError(f'host{number}: there is no host "h{number}" in this job')
        heard.append(line)

    feed = Feed(str(path), take)
    wait_until(lambda: heard[-1:] == [b"good"])
    feed.close()
    said = capfd.readouterr().err
    assert said.count("there is no host") == 1
    assert f'MERCURY_FABRIC_FEED {path}: host9: there is no host "h9" in this job; no more' in said
