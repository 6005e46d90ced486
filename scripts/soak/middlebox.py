"""A TCP middlebox: takes connections for other hosts, makes them anew, and carries the bytes.

It can do to a connection, or to all between two hosts, what networks do: reset it, hold it, carry
nothing any more though it acknowledges all, lose its last bytes, flip a bit, send bytes twice.

One thread owns all sockets; `ask` runs a function on it. The thread enters the namespace in which
it listens, so it needs root.
"""

from __future__ import annotations

import ctypes
import os
import queue
import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

_CLONE_NEWNET = 0x40000000
_IP_TRANSPARENT = 19
_CHUNK = 1 << 16
_HELD_MAX = 1 << 18
_RECORDED_MAX = 1 << 16
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: a connection that is closed is reset
# Of a tensor or its header, not a lonely beat.
_LARGE = 1024


class Direction:
    """One way of a connection: what `source` says goes to `sink`."""

    def __init__(self, source: socket.socket, sink: socket.socket, way: tuple[str, str]) -> None:
        self.source, self.sink, self.way = source, sink, way
        self.held = bytearray()
        self.ended = False  # the source has said all
        self.told = False  # and the sink knows


class Connection:
    def __init__(self, near: socket.socket, far: socket.socket, way: tuple[str, str]) -> None:
        self.near, self.far = near, far
        self.connected = False
        self.out = Direction(near, far, way)
        self.back = Direction(far, near, (way[1], way[0]))
        self.said = bytearray()  # the first bytes of who connected
        self.port = 0

    def directions(self) -> tuple[Direction, Direction]:
        return self.out, self.back


class Middlebox:
    """`names`: who has which address. `before_first`: called when `name` first sends something."""

    def __init__(
        self, namespace: str, names: Mapping[str, str], before_first: Callable[[str], None]
    ) -> None:
        self._namespace = namespace
        self._names = names
        self._addresses = {name: address for address, name in names.items()}
        self._before_first = before_first
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._listening: dict[int, socket.socket] = {}
        self.connections: list[Connection] = []
        self._known: set[str] = set()
        # Between two hosts, by name; one way where it is a tuple.
        self._cut: set[frozenset[str]] = set()
        self._held: dict[frozenset[str], float] = {}  # until when
        self._swallowed: set[tuple[str, str]] = set()
        self._once: dict[tuple[str, str], str] = {}
        self.done: list[str] = []  # what was done once, when it has been
        self._stop = False
        self._died: BaseException | None = None
        self._entered: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="middlebox", daemon=True)

    def __enter__(self) -> Middlebox:
        self._thread.start()
        if (error := self._entered.get()) is not None:
            raise error
        return self

    def __exit__(self, *_: object) -> None:
        self._stop = True
        with suppress(OSError):  # it has died
            self._wake.send(b"!")
        self._thread.join()

    def ask(self, function: Callable[[], Any]) -> Any:
        """Runs it on the thread that owns the sockets; what it returns."""
        if threading.current_thread() is self._thread:
            return function()
        answer: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

        def run() -> None:
            try:
                answer.put((function(), None))
            except BaseException as error:
                answer.put((None, error))

        self._work.put(run)
        with suppress(OSError):  # it has died: seen below
            self._wake.send(b"!")
        while True:
            try:
                result, error = answer.get(timeout=0.5)
                break
            except queue.Empty:
                self.check()
        if error is not None:
            raise error
        return result

    def check(self) -> None:
        """Raises if nothing is carried any more, for a reason that is not the fault's."""
        if not self._thread.is_alive():
            raise RuntimeError(f"the middlebox has died: {self._died!r}") from self._died

    # --- what is done to connections -------------------------------------------------------------

    def listen(self, port: int) -> None:
        """From now on `port` of every host is reached through us."""
        if port in self._listening:
            return
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_IP, _IP_TRANSPARENT, 1)
        listener.bind(("0.0.0.0", port))
        listener.listen(128)
        listener.setblocking(False)
        self._listening[port] = listener
        self._selector.register(listener, selectors.EVENT_READ, None)

    def between(self, a: str, b: str) -> list[Connection]:
        return [c for c in self.connections if set(c.out.way) == {a, b}]

    def reset(self, a: str, b: str) -> int:
        """All connections between them; new ones are let through."""
        broken = self.between(a, b)
        for connection in broken:
            self._break(connection)
        return len(broken)

    def cut(self, a: str, b: str) -> None:
        """Resets them, and all that come."""
        self._cut.add(frozenset((a, b)))
        self.reset(a, b)

    def hold(self, a: str, b: str, seconds: float) -> None:
        """Carries nothing for so long, and reads nothing either; then goes on."""
        self._held[frozenset((a, b))] = time.monotonic() + seconds

    def swallow(self, a: str, b: str) -> None:
        """From now on, what `a` sends to `b` is acknowledged and lost."""
        self._swallowed.add((a, b))

    def once(self, a: str, b: str, what: str) -> None:
        """To the next large piece that `a` sends to `b`: lose (and hang up), flip a bit, repeat."""
        self._once[(a, b)] = what

    def never_mind(self, a: str, b: str) -> bool:
        """What should be done once is not done any more; whether it still was to be done."""
        return self._once.pop((a, b), None) is not None

    # --- the loop --------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            with open(self._namespace, "rb") as file:
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.setns(file.fileno(), _CLONE_NEWNET) != 0:
                    code = ctypes.get_errno()
                    raise OSError(code, os.strerror(code), self._namespace)
            self._woken.setblocking(False)
            self._selector.register(self._woken, selectors.EVENT_READ, None)
        except BaseException as error:
            self._entered.put(error)
            return
        self._entered.put(None)
        try:
            while not self._stop:
                self._turn()
        except BaseException as error:
            self._died = error
        finally:
            for connection in list(self.connections):
                self._break(connection)
            for listener in self._listening.values():
                listener.close()
            self._selector.close()
            self._wake.close()
            self._woken.close()

    def _turn(self) -> None:
        for key, mask in self._selector.select(self._patience()):
            if isinstance(key.data, Connection):
                if key.data in self.connections:
                    self._serve(key.data, key.fileobj, mask)
            elif key.fileobj is not self._woken:
                self._accept(key.fileobj)  # type: ignore[arg-type]
        with suppress(BlockingIOError):
            self._woken.recv(4096)
        while not self._work.empty():
            self._work.get()()
        self._go_on()

    def _patience(self) -> float | None:
        if not self._held:
            return None
        return max(0.0, min(self._held.values()) - time.monotonic())

    def _go_on(self) -> None:
        """With those that were held, now that it is time."""
        now = time.monotonic()
        for pair in [pair for pair, until in self._held.items() if until <= now]:
            del self._held[pair]
        for connection in list(self.connections):
            self._watch(connection)

    def _accept(self, listener: socket.socket) -> None:
        try:
            near, peer = listener.accept()
        except OSError:  # it has gone already
            return
        to, port = near.getsockname()
        way = (self._names.get(peer[0], "?"), self._names.get(to, "?"))
        near.setblocking(False)
        if frozenset(way) in self._cut or "?" in way:
            near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            near.close()
            return
        if way[0] not in self._known:
            self._known.add(way[0])
            self._before_first(way[0])
        far = socket.socket()
        far.setblocking(False)
        for side in (near, far):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(near, far, way)
        connection.port = port
        self.connections.append(connection)
        with suppress(BlockingIOError):
            far.connect((to, port))
        self._watch(connection)

    def _watch(self, connection: Connection) -> None:
        """Waits for what can be done next."""
        for side, reads, writes in (
            (connection.near, connection.out, connection.back),
            (connection.far, connection.back, connection.out),
        ):
            mask = 0
            if not connection.connected:
                mask = selectors.EVENT_WRITE if side is connection.far else 0
            elif frozenset(connection.out.way) not in self._held:
                if not reads.ended and len(reads.held) < _HELD_MAX:
                    mask |= selectors.EVENT_READ
                if writes.held:
                    mask |= selectors.EVENT_WRITE
            registered = side in self._selector.get_map()
            if mask and registered:
                if self._selector.get_key(side).events != mask:
                    self._selector.modify(side, mask, connection)
            elif mask:
                self._selector.register(side, mask, connection)
            elif registered:
                self._selector.unregister(side)

    def _serve(self, connection: Connection, side: Any, mask: int) -> None:
        reads, writes = connection.directions()
        if side is connection.far:
            reads, writes = writes, reads
            if not connection.connected:
                if side.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0:
                    self._break(connection)
                    return
                connection.connected = True
        try:
            if mask & selectors.EVENT_READ:
                self._take(connection, reads)
            if connection not in self.connections:  # lost, on purpose
                return
            if mask & selectors.EVENT_WRITE or reads.held or reads.ended:
                self._give(connection.out)
                self._give(connection.back)
        except BlockingIOError:
            pass
        except OSError:
            self._break(connection)
            return
        if connection in self.connections:
            if all(direction.told for direction in connection.directions()):
                self._close(connection)
            else:
                self._watch(connection)

    def _take(self, connection: Connection, direction: Direction) -> None:
        data = direction.source.recv(_CHUNK)
        if not data:
            direction.ended = True
            return
        if direction is connection.out and len(connection.said) < _RECORDED_MAX:
            connection.said += data
        if direction.way in self._swallowed:
            return
        what = self._once.get(direction.way)
        if what is not None and len(data) >= _LARGE:
            del self._once[direction.way]
            self.done.append(what)
            if what == "lose":
                self._close(connection)
                return
            if what == "flip":
                changed = bytearray(data)
                changed[len(data) * 2 // 3] ^= 0x10
                data = bytes(changed)
            elif what == "repeat":
                direction.held += data
        direction.held += data

    @staticmethod
    def _give(direction: Direction) -> None:
        while direction.held:
            try:
                sent = direction.sink.send(direction.held[:_CHUNK])
            except BlockingIOError:
                return
            del direction.held[:sent]
        if direction.ended and not direction.told:
            direction.told = True
            with suppress(OSError):
                direction.sink.shutdown(socket.SHUT_WR)

    def _break(self, connection: Connection) -> None:
        for side in (connection.near, connection.far):
            with suppress(OSError):
                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._close(connection)

    def _close(self, connection: Connection) -> None:
        if connection not in self.connections:
            return
        for side in (connection.near, connection.far):
            if side in self._selector.get_map():
                self._selector.unregister(side)
            side.close()
        self.connections.remove(connection)

    # --- strangers -------------------------------------------------------------------------------

    def heard(self) -> list[tuple[str, int, bytes]]:
        """How the open connections began: to whom, on which port, with what words."""
        return [(c.out.way[1], c.port, bytes(c.said)) for c in self.connections if c.said]

    def say(self, to: str, port: int, data: bytes, stays_s: float = 0.5) -> bool:
        """A stranger connects to `to`, says `data`, waits a little, and goes; whether he came."""

        def connect() -> socket.socket:
            return socket.create_connection((self._addresses[to], port), timeout=5)

        try:
            stranger = self.ask(connect)
        except OSError:
            return False
        with suppress(OSError), stranger:
            stranger.settimeout(stays_s)
            deadline = time.monotonic() + stays_s
            stranger.sendall(data)
            while time.monotonic() < deadline and stranger.recv(4096):
                pass
        return True
