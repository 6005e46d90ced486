"""A job of real processes, each on a host of its own, behind a middlebox."""

from __future__ import annotations

import itertools
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from pslite_ext.launch.supervise import Child
from scripts.lab.bed import namespaces
from scripts.soak import leaks
from scripts.soak.crossing import Crossing
from scripts.soak.middlebox import Middlebox
from scripts.soak.verdict import Process

ROOT = Path(__file__).resolve().parent.parent.parent
TRAINING = str(ROOT / "scripts" / "soak" / "training.py")
REPLICAS = 2  # one follows the server, and one is in reserve
FABRIC_TRAINING = str(ROOT / "scripts" / "soak" / "fabric_training.py")
SCHEDULER_PORT = 9091
_LOOK_S = 0.05
# Shared memory lies in a folder of the job's: `ip netns exec` gives each its own mounts.
_SHARES = 'mount --bind "$0" /dev/shm && exec "$@"'


class NotStarted(RuntimeError):
    """The job did not get going before anything was done to it."""


def _listening(pid: int) -> list[int]:
    """The ports on which a process listens, in its own namespace."""
    sockets = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            sockets.add(os.readlink(fd).removeprefix("socket:[").removesuffix("]"))
        except OSError:
            continue
    lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    rows = [line.split() for line in lines]
    return sorted(
        int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A" and row[9] in sockets
    )


class DisturbedJob:
    """Enter it, wait until it trains (`begin`), disturb it, and wait for what comes of it."""

    def __init__(
        self,
        folder: Path,
        van: str,
        workers: int,
        servers: int,
        settings: Mapping[str, str],
        command: tuple[str, ...] = (),
        fabric: bool = False,
    ) -> None:
        """`command`: before each process's own. `fabric`: under MLfabric, and with two replicas."""
        self._folder = folder
        self._fabric = fabric
        self._van, self._workers, self._servers = van, workers, servers
        self._settings = dict(settings)
        self._command = command
        self.names = ["scheduler_0"]
        self.names += [f"server_{i}" for i in range(servers)]
        self._replicas = [f"replica_{i}" for i in range(REPLICAS if fabric else 0)]
        self.names += self._replicas
        self.names += [f"worker_{i}" for i in range(workers)]
        self._children: dict[str, Child] = {}
        self._ended_at: dict[str, float] = {}
        self._gone: set[str] = set()  # killed or stopped by us
        self._stack = ExitStack()
        self._stop = folder / "stop"
        self._private = [folder / "tmp", folder / "shm"]  # where only the job puts files
        self._run = ""
        self._token = secrets.token_hex(16)

    def __enter__(self) -> DisturbedJob:
        for private in self._private:
            private.mkdir()
        with ExitStack() as stack:
            self._bed = stack.enter_context(Crossing(self.names))
            self._run = self._bed.run()
            self.box = stack.enter_context(
                Middlebox(self._bed.namespace_file(), self._bed.names(), self._listen_for)
            )
            self.box.ask(lambda: self.box.listen(SCHEDULER_PORT))
            for name in self.names:
                self._start(name)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._gone:
            self._children[name].send_signal(signal.SIGKILL)
        self._stack.close()

    def _start(self, name: str) -> None:
        role, _, rank = name.partition("_")
        env = {k: v for k, v in os.environ.items() if not k.startswith(("DMLC_", "MERCURY_"))}
        env.update(
            DMLC_ROLE=role,
            DMLC_TASK_ID=rank,
            DMLC_PS_VAN_TYPE=self._van,
            DMLC_PS_ROOT_URI=self._bed.address("scheduler_0"),
            DMLC_PS_ROOT_PORT=str(SCHEDULER_PORT),
            DMLC_NODE_HOST=self._bed.address(name),
            DMLC_NUM_WORKER=str(self._workers),
            DMLC_NUM_SERVER=str(self._servers),
            DMLC_NUM_REPLICA=str(len(self._replicas)),
            MERCURY_JOB_TOKEN=self._token,
            OMP_NUM_THREADS="1",
            PYTHONUNBUFFERED="1",
            TMPDIR=str(self._private[0]),
            **self._settings,
        )
        if self._fabric:
            mode = self._settings["MERCURY_FABRIC_MODE"]
            script = [FABRIC_TRAINING, str(self._stop), str(self._progress(name))]
            script += [str(self._workers), mode]
        elif role == "worker":
            script = [TRAINING, str(self._stop), str(self._progress(name))]
            script += ["may-lose"] * ("MERCURY_MIN_WORKERS" in self._settings)
        else:  # what `import mxnet` does there, without importing it
            script = ["-c", "import sys; from pslite_ext.job.serving import main; sys.exit(main())"]
        argv = [sys.executable, *script]
        program = ["ip", "netns", "exec", self._bed.namespace(name)]
        program += ["sh", "-c", _SHARES, str(self._private[1]), *self._command, *argv]
        log = self._folder / f"{name}.log"
        self._children[name] = self._bed.processes.start(program, env, log=log)

    def _listen_for(self, name: str) -> None:
        """Before what `name` says is carried on: all its ports can be reached from now on."""
        for port in self.ports(name):
            self.box.listen(port)

    def ports(self, name: str) -> list[int]:
        try:
            return _listening(self._children[name].pid)
        except OSError:  # it has ended
            return []

    def links(self) -> list[tuple[str, str]]:
        """Between nodes that talk to each other: under MLfabric, all do."""
        servers = [name for name in self.names if name.startswith("server")]
        workers = [name for name in self.names if name.startswith("worker")]
        if self._fabric:
            others = [*servers, *self._replicas, *workers]
            pairs = list(itertools.combinations(others, 2))
        else:
            others = servers + workers
            pairs = [(server, worker) for server in servers for worker in workers]
        return pairs + [("scheduler_0", name) for name in others]

    def _progress(self, name: str) -> Path:
        return self._folder / f"{name}.steps"

    def steps(self, without: Sequence[str] = ()) -> int:
        """How many all workers have done; `without`: but these."""
        done = []
        for i in range(self._workers):
            if f"worker {i}" in without:
                continue
            try:
                done.append(int(self._progress(f"worker_{i}").read_text() or 0))
            except OSError:
                done.append(0)
        return min(done)

    def begin(self, steps: int, within_s: float) -> None:
        if not self._wait(lambda: self.steps() >= steps or self._over(), within_s) or self._over():
            raise NotStarted(self.report())

    def signal(self, name: str, number: int, gone: bool = False) -> None:
        if gone:
            self._gone.add(name)
        self._children[name].send_signal(number)

    def finish(self) -> None:
        """It may end: the workers stop after the same step."""
        self._stop.touch()

    def outcome(
        self, struck_at: float, within_s: float, goes_on_after: int, without: Sequence[str] = ()
    ) -> list[Process]:
        """Waits until all have ended, or the time is over, or training is seen to go on, by others
        than `without`.

        Then the job is asked to finish, and gets as much time again.
        """
        went_on = self.steps(without) + goes_on_after
        self._wait(lambda: self._over() or self.steps(without) >= went_on, within_s)
        if not self._over() and self.steps(without) >= went_on:
            self.finish()
            self._wait(self._over, within_s)
        return [
            Process(
                name,
                self._children[name].poll() if name in self._ended_at else None,
                self._output(name),
                self._ended_at.get(name, time.monotonic()) - struck_at,
            )
            for name in self.names
            if name not in self._gone
        ]

    def _wait(self, reached: Callable[[], bool], within_s: float) -> bool:
        deadline = time.monotonic() + within_s
        while not reached():
            self.box.check()
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_S)
        return True

    def _over(self) -> bool:
        """Whether all have ended that we have not stopped ourselves."""
        for name, child in self._children.items():
            if name not in self._ended_at and child.poll() is not None:
                self._ended_at[name] = time.monotonic()
        return all(name in self._ended_at for name in self.names if name not in self._gone)

    def left(self) -> list[str]:
        """What the job has left behind, once all have ended by themselves."""
        own = {c.pid: name for name, c in self._children.items() if name not in self._gone}
        return leaks.lasting(lambda: leaks.processes(own) + leaks.files(self._private))

    def left_after(self) -> list[str]:
        """What is left when it has been taken down as well."""
        own = {child.pid: name for name, child in self._children.items()}
        return leaks.lasting(
            lambda: (
                leaks.processes(own)
                + [f"namespace {name}" for name in namespaces.namespaces_of(self._run)]
            )
        )

    def _output(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def report(self) -> str:
        return "\n".join(
            f"--- {name}: {child.poll()}\n{self._output(name)[-4000:]}"
            for name, child in self._children.items()
        )
