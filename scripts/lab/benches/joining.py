"""How long many nodes need to find each other, and what each then holds; no tensors, no MXNet.

    python -m scripts.lab.benches.joining NODES SYSTEM

prints the rows of one job as JSON. All its nodes are forks of this process, which has loaded the
core: what is asked is not how fast a machine starts Pythons. `run` gives each job a network of its
own, where nothing else is counted.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

from pslite_ext import _core
from pslite_ext.config import Settings
from scripts.lab.bed.namespaces import LabError, privilege_missing
from scripts.lab.benches.case import Row

ROOT = Path(__file__).resolve().parents[3]
NODES = (50, 100, 200)
VANS = {"zmq": "zmq", "mercury-mercury": "mercury"}  # by the names that results have
SETTLE_S, IDLE_S = 8.0, 5.0  # until all connections are made, and how long is listened then
TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Holding:
    """What a process holds."""

    memory_kb: int  # of its own: not shared with its parent
    sockets: int
    threads: int

    @staticmethod
    def of(pid: int) -> Holding:
        process = Path("/proc") / str(pid)
        rollup = (process / "smaps_rollup").read_text()
        own = sum(int(kb) for kb in re.findall(r"^Private_\w+:\s+(\d+) kB", rollup, re.MULTILINE))
        links = [os.readlink(link) for link in (process / "fd").iterdir()]
        sockets = sum(link.startswith("socket:") for link in links)
        return Holding(own, sockets, len([*(process / "task").iterdir()]))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _loopback_bytes() -> int:
    found = re.search(r"^\s*lo:\s*(\d+)", Path("/proc/net/dev").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


class Node:
    """A fork: joins when it is told to, says when it has, leaves when it is told to."""

    def __init__(self, role: str, environment: dict[str, str], others: Sequence[Node]) -> None:
        told, self._tell = os.pipe()
        self._said, say = os.pipe()
        self.role = role
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            for node in others:
                os.close(node._tell)
                os.close(node._said)
            os.close(self._tell)
            code = 1
            try:
                code = _live(role, environment, told, say)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(told)
        os.close(say)

    def tell(self) -> None:
        os.write(self._tell, b"x")

    def joined_at(self) -> float:
        line = os.read(self._said, 4096)
        if not line:
            raise RuntimeError(f"a {self.role} did not join")
        return float(json.loads(line))

    def wait(self) -> None:
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        if status != 0:
            raise RuntimeError(f"a {self.role} ended with {status:#x}")

    def kill(self) -> None:
        os.close(self._tell)
        os.close(self._said)
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


def _live(role: str, environment: dict[str, str], told: int, say: int) -> int:
    os.read(told, 1)
    _core.start(Settings.from_environment(environment).options())
    os.write(say, json.dumps(time.monotonic()).encode())
    if role == "worker":
        os.read(told, 1)
    else:
        _core.serve()
    _core.finish()
    return 0


@contextmanager
def _nodes(count: int, van: str) -> Iterator[list[Node]]:
    workers = count // 2
    servers = count - workers
    common = {
        "PATH": os.environ.get("PATH", ""),
        "DMLC_PS_ROOT_URI": "127.0.0.1",
        "DMLC_PS_ROOT_PORT": str(_free_port()),
        "DMLC_NODE_HOST": "127.0.0.1",
        "DMLC_NUM_WORKER": str(workers),
        "DMLC_NUM_SERVER": str(servers),
        "DMLC_PS_VAN_TYPE": van,
    }
    roles = ["scheduler"] + ["server"] * servers + ["worker"] * workers
    nodes: list[Node] = []
    try:
        for role in roles:
            nodes.append(Node(role, {**common, "DMLC_ROLE": role}, nodes))
        yield nodes
    finally:
        for node in nodes:
            node.kill()


def measure(
    count: int, system: str, settle_s: float = SETTLE_S, idle_s: float = IDLE_S
) -> list[Row]:
    with _nodes(count, VANS[system]) as nodes:
        began = time.monotonic()
        for node in nodes:
            node.tell()
        joined_s = max(node.joined_at() for node in nodes) - began
        time.sleep(settle_s)
        before, idle_from = _loopback_bytes(), time.monotonic()
        time.sleep(idle_s)
        control = (_loopback_bytes() - before) / (time.monotonic() - idle_from) / count
        holding: dict[str, list[Holding]] = {node.role: [] for node in nodes}
        for node in nodes:
            holding[node.role].append(Holding.of(node.pid))
        left_from = time.monotonic()
        for node in nodes:
            if node.role == "worker":
                node.tell()
        for node in nodes:
            node.wait()
        left_s = time.monotonic() - left_from
    what = f"{count} nodes, no tensors"
    setting = f"{count // 2} workers, {count - count // 2} servers, loopback"
    figures = [("to join", "s", joined_s), ("to leave", "s", left_s)]
    figures.append(("control while idle, a node", "B/s", control))
    for role, held in holding.items():
        figures += [
            (f"memory, {role}", "MiB", max(h.memory_kb for h in held) / 1024),
            (f"sockets, {role}", "", max(h.sockets for h in held)),
            (f"threads, {role}", "", max(h.threads for h in held)),
        ]
    return [
        Row("joining", what, system, metric, unit, setting, [value])
        for metric, unit, value in figures
    ]


def run(systems: Sequence[str], repeats: int = 1) -> list[Row]:
    """Raises CalledProcessError, or TimeoutExpired, with what a job has said; LabError if it
    cannot be measured here."""
    if (reason := privilege_missing()) is not None:
        raise LabError(f"it needs a network of its own, but {reason}")
    rows: dict[tuple[str, str, str], Row] = {}
    for repeat in range(1, repeats + 1):
        for count, system in product(NODES, (van for van in VANS if van in systems)):
            print(f"joining: {count} nodes; {system}; {repeat} of {repeats}", flush=True)
            job = f"ip link set lo up && exec {sys.executable} -m {__spec__.name} {count} {system}"
            output = subprocess.run(
                ["unshare", "--net", "sh", "-c", job],
                cwd=ROOT,
                check=True,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
            ).stdout
            for fields in json.loads(output):
                row = Row(**fields)
                place = row.what, row.system, row.metric
                rows.setdefault(place, replace(row, values=[])).values.extend(row.values)
    return [*rows.values()]


def main() -> int:
    count, system = sys.argv[1:]
    print(json.dumps([asdict(row) for row in measure(int(count), system)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
