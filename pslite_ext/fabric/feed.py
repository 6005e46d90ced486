"""An operator's telemetry for the scheduler: lines of a file that grows, a pipe, or a Unix socket.

A line that makes no sense changes nothing, and the first of its kind is said; one that is cut off
waits for its rest. Nothing here waits for who writes: the job ends without him, too.
"""

from __future__ import annotations

import io
import os
import re
import socket
import stat
import sys
import threading
from collections.abc import Callable

from pslite_ext.errors import PsliteError

LINE_BYTES_MAX = 4096
_LOOK_S = 0.05
_VARIES = re.compile(r'"(\\.|[^"\\])*"|\d+')


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
        """Or a pipe, which nobody may have opened yet, or any more."""
        while not self._over.is_set():
            with open(os.open(self._path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as file:
                self._follow(file)

    def _follow(self, file: io.FileIO) -> None:
        """Until it is cut short, or another has its name."""
        while not self._over.is_set():
            if some := file.read(1 << 16):
                self._hear(some)
            elif self._begins_anew(file):
                self._rest = b""
                return self._say_first("it begins anew and is read from there", "this")
            else:
                self._over.wait(_LOOK_S)
        return None

    def _begins_anew(self, file: io.FileIO) -> bool:
        its = os.fstat(file.fileno())
        if stat.S_ISREG(its.st_mode) and its.st_size < file.tell():
            return True
        try:
            return not os.path.samestat(its, os.stat(self._path))
        except FileNotFoundError:
            return False  # whoever moved it is about to make the next

    def _read_socket(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.setblocking(False)
            while not (self._over.is_set() or self._connects(sock)):
                self._over.wait(_LOOK_S)
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

    def _connects(self, sock: socket.socket) -> bool:
        """Not while more wait to be accepted than the operator's program allows."""
        try:
            sock.connect(self._path)
        except BlockingIOError:
            return False
        return True

    def _hear(self, some: bytes) -> None:
        *lines, self._rest = (self._rest + some).split(b"\n")
        for line in filter(None, lines):
            try:
                self._take(line)
            except PsliteError as error:
                self._say_first(str(error))
        if len(self._rest) > LINE_BYTES_MAX:
            self._rest = b""
            self._say_first(f"a line has more than {LINE_BYTES_MAX} bytes")

    def _say_first(self, what: str, kinds: str = "such lines") -> None:
        """Of its kind: lines differ by what is quoted, by numbers, and by where the mistake is."""
        kind = _VARIES.sub("", what).rpartition(": ")[2]
        if kind not in self._told:
            self._told.add(kind)
            self._say(f"{what}; no more is said of {kinds}")

    def _say(self, what: str) -> None:
        print(f"mercury: MERCURY_FABRIC_FEED {self._path}: {what}", file=sys.stderr)
