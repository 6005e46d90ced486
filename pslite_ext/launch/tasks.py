"""What is started where: a job as a list of tasks. Nothing here starts anything."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pslite_ext.launch.scheduler_words import GREETING
from pslite_ext.launch.shares import server_shares
from pslite_ext.quantity import bytes_per_second

SLOTS_MOST = 4096
UNIT_POLICIES = ("wfbp", "p3", "bytescheduler")  # with these, each worker sends for itself
# What a remote shell is given of our environment, beside --env.
PASSED = re.compile(
    r"^(MERCURY_|MXNET_|(OMP_NUM_THREADS|PYTHONPATH|PYTHONUNBUFFERED|LD_LIBRARY_PATH)$)"
)

# A name or an IPv4 address, an IPv6 address, or one in brackets, after which there may be a port.
PLACE = re.compile(
    r"(?P<name>[^-:\[\]][^:\[\]]*)(:(?P<port>\d{0,5}))?"
    r"|(?P<bare>[^-:\[\]]*:[^:\[\]]*:[^\[\]]*)"
    r"|\[(?P<bracketed>[^-\[\]][^\[\]]*)\](:(?P<after>\d{0,5}))?"
)
# Runs $command in a session of its own and ends that when our side closes the connection. What the
# command leaves behind is ended with it: ssh waits until nobody can print any more.
REMOTE = """\
cd {folder} || exit 1
exec 3<&0
setsid {command} < /dev/null &
child=$!
(cat <&3 > /dev/null; kill -TERM -$child; sleep 5; kill -KILL -$child) 2> /dev/null &
watcher=$!
wait $child
code=$?
kill $watcher 2> /dev/null
for patience in 1 1 1 1 1; do
    kill -TERM -- -$child 2> /dev/null || exit $code
    sleep $patience
done
kill -KILL -- -$child 2> /dev/null
exit $code
"""


class LaunchError(Exception):
    """The job cannot be started as asked; one line says why."""

    exit_code = 2


class CannotRunError(LaunchError):
    """The command is none: as a shell has it."""

    exit_code = 127


@dataclass(frozen=True)
class Host:
    name: str  # as ssh takes it: there may be a user before it
    port: int | None = None  # None: as ssh is configured
    speed: float | None = None  # of its link, in bytes a second
    slots: int | None = None  # for workers; None: it does not say
    alias_of: str = ""  # what ssh's configuration says that it is

    @property
    def address(self) -> str:
        return self.alias_of or self.name.rpartition("@")[2]


@dataclass(frozen=True)
class Task:
    role: str
    rank: int
    command: tuple[str, ...]
    env: Mapping[str, str]
    # What is written there, which then stays open: a script for a remote shell, which reads until
    # we close; to the scheduler, what others failed of.
    stdin: bytes | None = None

    @property
    def name(self) -> str:
        return self.role if self.role == "scheduler" else f"{self.role} {self.rank}"


def lines_of(path: Path, name: str) -> list[str]:
    """Of a file that errors call `name`."""
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise LaunchError(f"{name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise LaunchError(f"{name}: it is not UTF-8 text") from None


def read_hosts(path: Path) -> list[Host]:
    """One host a line: `name` or `name:port`; `link=10Gbps`, its link's speed; `slots=4`, how many
    workers it takes.

    A user may come before it, `user@name`. An IPv6 address with a port is `[fd00::1]:22`. What else
    follows a blank is ignored.
    """
    hosts: list[Host] = []
    for number, line in enumerate(lines_of(path, f"hostfile {path}"), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        try:
            hosts.append(_host(words))
        except ValueError as error:
            raise LaunchError(f"hostfile {path}:{number}: {error}") from None
    if not hosts:
        raise LaunchError(f"hostfile {path} names no host")
    unknown = [host.name for host in hosts if host.speed is None]
    if 0 < len(unknown) < len(hosts):
        raise LaunchError(f"hostfile {path}: {unknown[0]} has no link=SPEED, others have")
    return hosts


def _host(words: Sequence[str]) -> Host:
    user, at, place = words[0].rpartition("@")
    found = PLACE.fullmatch(place)
    given = (found["port"] or found["after"]) if found else None
    port = int(given) if given else None
    bad_port = port is not None and not 0 < port < 65536
    # What begins with a dash would be an option of ssh.
    if found is None or bad_port or user.startswith("-") or bool(at) != bool(user):
        raise ValueError(f"'{words[0]}' is not HOST or HOST:PORT")
    name = f"{user}{at}{found['bracketed'] or found['bare'] or found['name']}"
    said = dict(word.split("=", 1) for word in words[1:] if "=" in word)
    slots = said.get("slots")
    if slots is not None and not (slots.isdecimal() and 0 < int(slots) <= SLOTS_MOST):
        raise ValueError(f"slots={slots}: it is not a number of workers, 1 to {SLOTS_MOST}")
    return Host(
        name,
        port,
        bytes_per_second(said["link"]) if "link" in said else None,
        int(slots) if slots is not None else None,
    )


def remote_script(command: Sequence[str], env: Mapping[str, str], folder: str) -> bytes:
    exports = "".join(f"export {k}={shlex.quote(v)}\n" for k, v in sorted(env.items()))
    body = REMOTE.format(folder=shlex.quote(folder), command=shlex.join(command))
    return (exports + body).encode(errors="surrogateescape")  # as the environment has it


def ssh_task(role: str, rank: int, host: Host, script: bytes) -> Task:
    # The script, with the token in it, goes to the shell's input: a command line is for all to see.
    remote = f"bash -c 'eval \"$(head -c {len(script)})\"'"
    ssh = ["ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=accept-new"]
    if host.port is not None:
        ssh += ["-p", str(host.port)]
    return Task(role, rank, (*ssh, host.name, remote), {}, script)


def places(
    workers: int,
    servers: int | None,
    hosts: int,
    replicas: int = 0,
    slots: Sequence[int] = (),
) -> list[tuple[str, int, int]]:
    """Role, rank, and which of the hosts: servers first, then their replicas.

    Workers take the hosts in turn, or fill `slots` of each. Without a number of servers, each
    worker's host has one; if there is only one host, each worker.
    """
    filled = [host for host, count in enumerate(slots) for _ in range(count)]
    of_worker = filled[:workers] if slots else [rank % hosts for rank in range(workers)]
    if servers is None:
        beside = of_worker if hosts == 1 else [*dict.fromkeys(of_worker)]
        found = [("server", rank, host) for rank, host in enumerate(beside)]
        found += [("replica", rank, rank % hosts) for rank in range(replicas)]
    else:
        counted = [("server", rank) for rank in range(servers)]
        counted += [("replica", rank) for rank in range(replicas)]
        found = [(*node, position % hosts) for position, node in enumerate(counted)]
        if not slots:
            of_worker = [(len(found) + rank) % hosts for rank in range(workers)]
    return found + [("worker", rank, host) for rank, host in enumerate(of_worker)]


def _slots(workers: int, hosts: Sequence[Host]) -> list[int]:
    """Of each host, if any of them says; one of who does not."""
    if all(host.slots is None for host in hosts):
        return []
    slots = [host.slots or 1 for host in hosts]
    if workers > sum(slots):
        raise LaunchError(f"the hosts have slots for {sum(slots)} workers, -n is {workers}")
    return slots


def _sums_hosts(environ: Mapping[str, str]) -> bool:
    """Whether a host's workers are summed on it, as MercuryVan::SumsHosts says."""
    if environ.get("DMLC_PS_VAN_TYPE", "mercury") != "mercury":
        return False
    if int(environ.get("MERCURY_MIN_WORKERS", "").strip() or 0):
        return False
    return environ.get("MERCURY_POLICY", "priority") not in UNIT_POLICIES


def _shares(
    where: Sequence[tuple[str, int, int]], hosts: Sequence[Host], summed: bool
) -> dict[str, str]:
    """Of the servers, where the speeds of the hosts' links are known and make a difference."""
    speeds = [host.speed for host in hosts if host.speed is not None]
    shares = server_shares(where, speeds, summed) if speeds else None
    return {"MERCURY_SERVER_SHARES": ",".join(map(str, shares))} if shares else {}


def _as_torchrun(
    where: Sequence[tuple[str, int, int]], hosts: Sequence[Host], port: str
) -> dict[int, dict[str, str]]:
    """What torchrun would set for each worker, by rank: PyTorch's scripts read it."""
    places_of = {rank: place for role, rank, place in where if role == "worker"}
    master = hosts[places_of[0]].address if hosts else "127.0.0.1"
    # A file may name a host several times.
    at = {r: (hosts[p].address, hosts[p].port) if hosts else "" for r, p in places_of.items()}
    found: dict[int, dict[str, str]] = {}
    for rank, place in at.items():
        beside = [other for other, its in at.items() if its == place]
        found[rank] = {
            "RANK": str(rank),
            "WORLD_SIZE": str(len(at)),
            "LOCAL_RANK": str(beside.index(rank)),
            "LOCAL_WORLD_SIZE": str(len(beside)),
            "MASTER_ADDR": master,
            "MASTER_PORT": port,
        }
    return found


def plan(
    command: Sequence[str],
    workers: int,
    servers: int | None,
    job: Mapping[str, str],
    environ: Mapping[str, str],
    hosts: Sequence[Host] = (),
    folder: str = ".",
    torch_port: str = "",
    replicas: int = 0,
) -> list[Task]:
    """The scheduler here; servers, their replicas and workers here too, or on the hosts.

    `torch_port` is what workers are told to be free on worker 0's host.
    """
    where = places(workers, servers, max(1, len(hosts)), replicas, _slots(workers, hosts))
    job = {**job, "DMLC_NUM_SERVER": str(sum(role == "server" for role, _, _ in where))}
    base = {**_shares(where, hosts, _sums_hosts({**environ, **job})), **environ, **job}
    base["PYTHONUNBUFFERED"] = base.get("PYTHONUNBUFFERED", "1")
    passed = {k: v for k, v in base.items() if PASSED.match(k) or k in job}
    own = {"DMLC_ROLE": "scheduler", "MERCURY_LAUNCHED": "1"}
    # A scheduler that joins its job reads: so we know whether any did.
    tasks = [Task("scheduler", 0, tuple(command), {**base, **own}, f"{GREETING}\n".encode())]
    torch = _as_torchrun(where, hosts, torch_port) if torch_port else {}
    for role, rank, place in where:
        own = {"DMLC_ROLE": role, "DMLC_TASK_ID": str(rank)}
        if role == "worker":
            own.update(torch.get(rank, {}))
        if hosts:
            script = remote_script(command, {**passed, **own}, folder)
            tasks.append(ssh_task(role, rank, hosts[place], script))
        else:
            tasks.append(Task(role, rank, tuple(command), {**base, **own}))
    return tasks


def normal_command(command: Sequence[str]) -> list[str]:
    """A script is run with this Python, anything else as it is."""
    words = list(command)
    if words[:1] == ["--"]:
        del words[0]
    if words and words[0].endswith(".py"):
        words.insert(0, sys.executable)
    return words
