"""All-reduce up and down a binary tree over TCP, in pieces that follow one another.

Workers on one host sum among themselves first, so that the tree's edges are between hosts; a piece
goes down while later ones still come up.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from scripts.lab.systems.plain_async import receive
from scripts.lab.systems.racer import Summed, race
from scripts.lab.systems.rendezvous import await_port, place

PORT = 9100  # of rank 0; the others' follow
PIECE = 16384  # elements


def parents(addresses: Sequence[str]) -> list[int | None]:
    """Each rank's parent, of workers at these addresses."""
    first = {address: rank for rank, address in reversed([*enumerate(addresses)])}
    hosts = [*dict.fromkeys(addresses)]
    found: list[int | None] = []
    for rank, address in enumerate(addresses):
        host = hosts.index(address)
        if first[address] != rank:
            found.append(first[address])
        else:
            found.append(first[hosts[(host - 1) // 2]] if host > 0 else None)
    return found


class Tree:
    def __init__(self, rank: int, addresses: Sequence[str], port: int = PORT) -> None:
        above = parents(addresses)
        parent = above[rank]
        self._parent: socket.socket | None = None
        self._children: list[socket.socket] = []
        with socket.create_server((addresses[rank], port + rank)) as door:
            if parent is not None:
                await_port(addresses[parent], port + parent)
                self._parent = socket.create_connection((addresses[parent], port + parent))
                self._parent.sendall(b"c")
            while len(self._children) < above.count(rank):
                sock, _ = door.accept()
                if sock.recv(1):  # not only a look whether somebody listens
                    self._children.append(sock)
        for sock in (*self._children, *filter(None, [self._parent])):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def all_reduce(self, vector: Any) -> None:
        pieces = [vector[at : at + PIECE] for at in range(0, len(vector), PIECE)]
        summed = threading.Semaphore(0)
        up = threading.Thread(target=self._up, args=(pieces, summed))
        up.start()
        for piece in pieces:
            if self._parent is None:
                summed.acquire()
            else:
                self._receive(self._parent, piece)
            for child in self._children:
                child.sendall(piece)
        up.join()

    def _up(self, pieces: Sequence[Any], summed: threading.Semaphore) -> None:
        part = np.empty(PIECE, np.float32)
        for piece in pieces:
            for child in self._children:
                self._receive(child, part[: len(piece)])
                piece += part[: len(piece)]
            if self._parent is not None:
                self._parent.sendall(piece)
            summed.release()

    def _receive(self, sock: socket.socket, into: Any) -> None:
        if not receive(sock, memoryview(into).cast("B")):
            raise SystemExit("a neighbour in the tree has gone")


def main() -> None:
    tree = Tree(place()[0], os.environ["LAB_WORKERS"].split(","))
    race(Summed(tree.all_reduce))


if __name__ == "__main__":
    main()
