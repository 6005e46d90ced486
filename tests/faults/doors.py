"""The control plane's door from outside: how to pass it, and somebody who listens in between.

The messages are those of pslite_ext/csrc/control/door_handshake.h.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

CHALLENGE_BYTES, WELCOME_BYTES = 56, 40
SAID_BYTES = 24
MORE, LARGE, COMMAND = 1, 2, 4


def receive(sock: socket.socket, size: int) -> bytes:
    """So many bytes, or fewer if the other end hangs up."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while len(data) < size and (more := sock.recv(size - len(data))):
            data += more
    return data


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def greeted(port: int, magic: bytes) -> bool:
    """Whether who listens there begins with `magic`."""
    with connect(port) as sock:
        return receive(sock, len(magic)) == magic


def hello(challenge: bytes, token: str) -> bytes:
    """What a node of the job answers to it."""
    key = hmac.digest(token.encode(), b"mercury door\n", "sha256")
    head = challenge[:6] + b"\0\0"
    host, guest = challenge[SAID_BYTES:], os.urandom(32)
    said = b"door hello" + host + guest + challenge[:SAID_BYTES] + head
    return head + guest + hmac.digest(key, said, "sha256")


def enter(port: int, token: str) -> socket.socket:
    """A connection that has passed, and speaks ZeroMQ's protocol from now on."""
    sock = connect(port)
    sock.sendall(hello(receive(sock, CHALLENGE_BYTES), token))
    assert len(receive(sock, WELCOME_BYTES)) == WELCOME_BYTES
    sock.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00NULL".ljust(22, b"\0") + bytes(32))
    ready = b"\x05READY\x0bSocket-Type" + struct.pack(">I", 6) + b"DEALER"
    sock.sendall(bytes([COMMAND, len(ready)]) + ready)
    return sock


def frame(size: int, flags: int = 0) -> bytes:
    """The beginning of a frame of that size."""
    return bytes([LARGE | flags]) + struct.pack(">Q", size)


def flood(sock: socket.socket, size: int) -> int:
    """So many bytes, or until the other end has had enough: how many went."""
    block, sent = bytes(1 << 20), 0
    with contextlib.suppress(OSError):
        while sent < size:
            sent += sock.send(block)
    return sent


class Listener:
    """Hands on what both sides say, and keeps it; or answers with what it once heard."""

    def __init__(self) -> None:
        self._to = 0
        self._haunts = False
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        self.asked: list[bytearray] = []
        self.answered: list[bytearray] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._door.close()

    def lead_to(self, port: int) -> None:
        self._to = port

    def haunt(self, now: bool) -> None:
        self._haunts = now

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                guest, _ = self._door.accept()
                if self._haunts:
                    threading.Thread(target=self._play, args=(guest,), daemon=True).start()
                    continue
                try:
                    host = connect(self._to)
                except OSError:  # it is not there yet
                    guest.close()
                    continue
                host.settimeout(None)
                for says, hears, kept in (
                    (guest, host, self.asked),
                    (host, guest, self.answered),
                ):
                    kept.append(bytearray())
                    arguments = (says, hears, kept[-1])
                    threading.Thread(target=self._pass_on, args=arguments, daemon=True).start()

    def _play(self, guest: socket.socket) -> None:
        with guest, contextlib.suppress(OSError):
            guest.sendall(bytes(max(self.answered, key=len)))
            while guest.recv(1 << 16):
                pass

    @staticmethod
    def _pass_on(says: socket.socket, hears: socket.socket, kept: bytearray) -> None:
        with contextlib.suppress(OSError):
            while data := says.recv(1 << 16):
                kept += data
                hears.sendall(data)
        with contextlib.suppress(OSError):
            hears.shutdown(socket.SHUT_WR)


@contextmanager
def listener() -> Iterator[Listener]:
    between = Listener()
    try:
        yield between
    finally:
        between.close()
