"""A plain TCP stream from one host to another: background load, and the bed's own yardstick.

tcp_stream.py sink PORT           reads all that comes; prints the bytes got once a report interval
tcp_stream.py source HOST PORT    sends until it is ended
"""

from __future__ import annotations

import socket
import sys
import time
from contextlib import suppress

REPORT_S = 0.1


def sink(port: int) -> None:
    buffer = bytearray(1 << 20)
    with socket.create_server(("", port)) as server:
        print("listening", flush=True)
        connection, _ = server.accept()
        total = 0
        due = time.monotonic() + REPORT_S
        while got := connection.recv_into(buffer):
            total += got
            now = time.monotonic()
            if now >= due:
                print(f"{now:.6f} {total}", flush=True)
                due = now + REPORT_S


def source(host: str, port: int) -> None:
    block = bytes(256 * 1024)
    # An error says that the sink has ended, and so does the stream.
    with socket.create_connection((host, port)) as connection, suppress(ConnectionError):
        while True:
            connection.sendall(block)


if __name__ == "__main__":
    if sys.argv[1] == "sink":
        sink(int(sys.argv[2]))
    else:
        source(sys.argv[2], int(sys.argv[3]))
