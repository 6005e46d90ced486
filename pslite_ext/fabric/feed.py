"""An operator's telemetry for the scheduler: lines from a file that grows, or from a Unix socket.

A line that makes no sense is said once and changes nothing; one that is cut off waits for its rest.
"""

from __future__ import annotations

import os
import socket
import stat
import sys
import threading
from collections.abc import Callable

from pslite_ext.errors import PsliteError

LINE_BYTES_MAX = 4096
_LOOK_S = 0.05


class Feed:
    """Reads in a thread of its own until it is closed. What `take` raises is said, not raised."""

    def __init__(self, path: str, take: Callable[[bytes], None]) -> None:
        self._path = path
        self._take = take
        self._over = threading.Event()
        self._rest = b""
        self._told: set[str] = set()
        self._thread = threading.Thread(target=self._read, daemon=True, name="mercury-feed")
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def _read(self) -> None:
        try:
            if stat.S_ISSOCK(os.stat(self._path).st_mode):
                self._read_socket()
            else:
                self._read_file()
        except OSError as error:
            self._say(f"{error.strerror or error}; rates are measured from here on")

    def _read_file(self) -> None:
        with open(self._path, "rb") as file:
            while not self._over.is_set():
                if some := file.read(1 << 16):
                    self._hear(some)
                else:
                    self._over.wait(_LOOK_S)

    def _read_socket(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.connect(self._path)
            sock.settimeout(_LOOK_S)
            while not self._over.is_set():
                try:
                    some = sock.recv(1 << 16)
                except socket.timeout:
                    continue
                if not some:
                    return self._say("it has ended; rates are measured from here on")
                self._hear(some)
            return None

    def _hear(self, some: bytes) -> None:
        *lines, self._rest = (self._rest + some).split(b"\n")
        for line in filter(None, lines):
            try:
                self._take(line)
            except PsliteError as error:
                self._say(str(error))
        if len(self._rest) > LINE_BYTES_MAX:
            self._rest = b""
            self._say(f"a line has more than {LINE_BYTES_MAX} bytes")

    def _say(self, what: str) -> None:
        if what not in self._told:
            self._told.add(what)
            print(f"mercury: MERCURY_FABRIC_FEED {self._path}: {what}", file=sys.stderr)
