"""Stands for a process that is forked from one which has imported what takes seconds.

    forked.py SOCKET SCRIPT [WORD ...]

Whoever starts a Python with a script can start this instead: it has the script's output, gets its
signals and ends as it does, and the other way round. It imports next to nothing.
"""

import json
import os
import signal
import socket
import sys
import time

WAIT_S, WAITS = 0.05, 2400


def connected(path: str) -> socket.socket:
    """Once it listens, which it does when it has imported all."""
    for _ in range(WAITS):
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(path)
        except OSError:
            server.close()
            time.sleep(WAIT_S)
        else:
            return server
    raise SystemExit(f"forked: nobody listens at {path}")


def main() -> None:
    path, script, *words = sys.argv[1:]
    server = connected(path)
    asked = {"script": script, "words": words, "env": dict(os.environ), "folder": os.getcwd()}
    said = json.dumps(asked).encode() + b"\n"
    sent = socket.send_fds(server, [said], [0, 1, 2])
    server.sendall(said[sent:])
    told = server.makefile()
    child = json.loads(told.readline())["started"]

    def forward(number: int, _frame: object) -> None:
        os.kill(child, number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, forward)
    line = told.readline()
    code = json.loads(line)["code"] if line else 1
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
