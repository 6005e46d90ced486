"""Plain asynchronous training: a server that adds each update as it comes, and answers with the
model. No order, no bound, no sums on the way: TCP shares the links.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections import Counter
from typing import Any

import numpy as np

from scripts.lab.systems.racer import race, told
from scripts.lab.systems.rendezvous import await_port, place
from scripts.lab.workloads.race import BYTES, first_vector

PORT = 9097
_VERSION = struct.Struct("<q")


def receive(sock: socket.socket, into: memoryview) -> bool:
    """False: the other side has closed."""
    while into.nbytes:
        got = sock.recv_into(into)
        if got == 0:
            return False
        into = into[got:]
    return True


class Server:
    def __init__(self) -> None:
        self._model = first_vector(told())
        self._version = 0
        self._lock = threading.Lock()

    def serve(self, address: str, workers: int) -> None:
        with socket.create_server((address, PORT), backlog=workers) as door:
            all_are_there = threading.Barrier(workers)
            threads: list[threading.Thread] = []
            while len(threads) < workers:
                sock, _ = door.accept()
                if not sock.recv(1):  # only a look whether somebody listens
                    continue
                threads.append(threading.Thread(target=self._serve, args=(sock, all_are_there)))
                threads[-1].start()
        for thread in threads:
            thread.join()

    def _serve(self, sock: socket.socket, all_are_there: threading.Barrier) -> None:
        update = np.empty_like(self._model)
        all_are_there.wait()
        with sock:
            while True:
                with self._lock:
                    model, version = self._model.copy(), self._version
                sock.sendall(_VERSION.pack(version))
                sock.sendall(model)
                if not receive(sock, memoryview(update).cast("B")):
                    return
                with self._lock:
                    self._model += update
                    self._version += 1


class Pushed:
    together, applied = False, True

    def __init__(self) -> None:
        self.rank, self.workers, _ = place()
        server = os.environ["DMLC_PS_ROOT_URI"]
        await_port(server, PORT)
        self._sock = socket.create_connection((server, PORT))
        self._sock.sendall(b"w")
        self._model: Any = np.empty(BYTES // 4, np.float32)
        self._version = -1
        self._delays: Counter[int] = Counter()

    def get(self) -> Any:
        head = bytearray(_VERSION.size)
        if not receive(self._sock, memoryview(head)):
            raise SystemExit("the server has gone")
        receive(self._sock, memoryview(self._model).cast("B"))
        (version,) = _VERSION.unpack(head)
        if self._version >= 0:
            self._delays[version - self._version] += 1  # at most: others may have come between
        self._version = version
        return self._model

    def push(self, update: Any) -> None:
        self._sock.sendall(update)

    def figures(self) -> dict[str, Any]:
        return {"delays": {str(delay): count for delay, count in self._delays.items()}}

    def leave(self) -> None:
        self._sock.close()


def main() -> None:
    role = os.environ["DMLC_ROLE"]
    if role == "server":
        Server().serve(os.environ["DMLC_NODE_HOST"], place()[1])
    elif role == "worker":
        race(Pushed())


if __name__ == "__main__":
    main()
