"""What carrying a flood costs the kernel alone: blocking sockets, nothing summed, nothing checked.

As many bytes go from every worker to every server, and come back, as of a store's tensors. What a
store's processes need beyond this is the store's own.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading

from scripts.lab.systems.rendezvous import await_port
from scripts.lab.workloads.job_config import Config
from scripts.lab.workloads.measurement import say, usage

PORT = 9300
AT_ONCE = 64 << 10  # bytes of a call, as of a store's packets
COOLDOWN = 1  # rounds, as of a flood


class Marks:
    """Says when so many bytes are back that measuring begins, and ends."""

    def __init__(self, begin: int, end: int) -> None:
        self._marks = {begin: "begin", end: "end"}
        self._back = 0
        self._lock = threading.Lock()

    def count(self, size: int) -> None:
        with self._lock:
            before, self._back = self._back, self._back + size
            for mark, event in self._marks.items():
                if before < mark <= self._back:
                    say(event, **usage())


def receive(sock: socket.socket, block: memoryview) -> bool:
    """All of it; False: the other side has closed."""
    return sock.recv_into(block, 0, socket.MSG_WAITALL) == block.nbytes


def _send(sock: socket.socket, calls: int) -> None:
    block = bytes(AT_ONCE)
    for _ in range(calls):
        sock.sendall(block)


def _receive(sock: socket.socket, calls: int, marks: Marks) -> None:
    block = memoryview(bytearray(AT_ONCE))
    for _ in range(calls):
        if not receive(sock, block):
            raise SystemExit("a server has gone")
        marks.count(AT_ONCE)


def work(config: Config, servers: int, address: str) -> None:
    sockets: list[socket.socket] = []
    with socket.create_server((address, PORT)) as door:
        while len(sockets) < servers:
            sock, _ = door.accept()
            if sock.recv(1):  # not only a look whether somebody listens
                sockets.append(sock)
    say("started", **usage())
    share = config.tensors["count"] * config.tensors["bytes"] // servers
    calls = -(-share // AT_ONCE)  # of a round, to each server
    round_bytes = calls * AT_ONCE * servers
    rounds = config.warmup + config.rounds + COOLDOWN
    marks = Marks(config.warmup * round_bytes, (config.warmup + config.rounds) * round_bytes)
    threads = []
    for sock in sockets:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threads.append(threading.Thread(target=_send, args=(sock, rounds * calls)))
        threads.append(threading.Thread(target=_receive, args=(sock, rounds * calls, marks)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say("result", flood_bytes=config.rounds * round_bytes)
    for sock in sockets:
        sock.close()


def _give_back(sock: socket.socket) -> None:
    block = memoryview(bytearray(AT_ONCE))
    while receive(sock, block):
        sock.sendall(block)


def serve(workers: list[str]) -> None:
    threads = []
    for address in workers:
        await_port(address, PORT)
        sock = socket.create_connection((address, PORT))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(b"s")
        threads.append(threading.Thread(target=_give_back, args=(sock,)))
        threads[-1].start()
    for thread in threads:
        thread.join()


def main() -> None:
    role, workers = os.environ["DMLC_ROLE"], os.environ["LAB_WORKERS"].split(",")
    if role == "worker":
        own = os.environ["DMLC_NODE_HOST"]
        work(Config(**json.loads(sys.argv[1])), int(os.environ["DMLC_NUM_SERVER"]), own)
    elif role == "server":
        serve(workers)


if __name__ == "__main__":
    main()
