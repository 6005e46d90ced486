"""A job among ranks that torchrun has started: where they meet, and a server on each host.

The ranks' own store hands the job's address and a random token out. Each host's first worker
starts a server beside it, rank 0 the scheduler, too. These hear by their standard input that the
worker has ended, and end with the job. If one of them ends before the job has begun, the store
tells all ranks.
"""

from __future__ import annotations

import ipaddress
import json
import secrets
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from pslite_ext.config import (
    TABLE,
    TOKEN_SETTINGS,
    SettingError,
    Settings,
    address_towards,
    resolve,
    wanted_van,
)
from pslite_ext.errors import PeerLostError, WaitTimeoutError
from pslite_ext.launch.command import free_port
from pslite_ext.launch.tasks import LaunchError
from pslite_ext.torch.started import Started
from pslite_ext.trace_settings import of_restart

TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
LOOPBACK = "127.0.0.1"
# Of a network that nobody has (RFC 5737): the way there is the way to anywhere.
ANYWHERE = "192.0.2.1"
METRICS = "MERCURY_METRICS_PORT"
FAILED = "failed"
_children: list[Started] = []
_failure: _Failure | None = None


@dataclass(frozen=True)
class Meeting:
    """What all ranks have before there is a job: a store of torch.distributed."""

    store: Any
    rank: int
    workers: int


def is_under_torchrun(environ: Mapping[str, str]) -> bool:
    return all(environ.get(name, "").strip() for name in TORCHRUN)


def meet(environ: Mapping[str, str]) -> Meeting:
    """By the process group that is there already, or by torchrun's variables."""
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        store = dist.distributed_c10d._get_default_store()
        return Meeting(store, dist.get_rank(), dist.get_world_size())
    if not is_under_torchrun(environ):
        raise SettingError(
            "this process is in no job: start it with torchrun, which sets "
            f"{', '.join(TORCHRUN)}, or with mercury launch -n N -- python SCRIPT"
        )
    try:
        return Meeting(*next(dist.rendezvous("env://", timeout=_patience(environ))))
    except RuntimeError as error:
        at = f"{environ['MASTER_ADDR']}:{environ['MASTER_PORT']}"
        raise WaitTimeoutError(f"the ranks' store at {at} was not reached: {error}") from None


def leaders(said: Sequence[str]) -> list[int]:
    """The ranks that are first on their hosts, by what each has said: its local rank or its host"""
    return [
        rank
        for rank, local in enumerate(said)
        if local == "0" or (local.startswith("@") and local not in said[:rank])
    ]


def scheduler_address(master: str, hosts: int) -> str:
    """Rank 0's address, as all others see it."""
    if hosts == 1 or master == "localhost":
        return LOOPBACK  # nobody else need get in
    address = resolve("MASTER_ADDR", master) if master else LOOPBACK
    # A name may lead a host only to itself, or be a service's, which is nobody's address.
    if _is_ours(address) and (master == address or not _is_loopback(address)):
        return address
    try:
        return address_towards(ANYWHERE, 9)
    except SettingError:
        return address


def start_job(environ: Mapping[str, str], meeting: Meeting) -> dict[str, str]:
    """The environment of this worker in the new job, whose other parts have been started."""
    store, rank = meeting.store, meeting.rank
    # A job that torchrun starts again meets anew.
    about = f"mercury {environ.get('TORCHELASTIC_RESTART_COUNT', '0')}: "
    store.set(f"{about}worker {rank}", environ.get("LOCAL_RANK", "").strip() or f"@{_host()}")
    everybody = [f"{about}worker {r}" for r in range(meeting.workers)]
    leads = leaders([text.decode() for text in _get(store, everybody, environ)])
    global _failure
    _failure = _Failure(meeting, f"{about}{FAILED}")
    scheduler = f"{about}worker 0's scheduler"
    if rank == 0:
        with _failure.told_to_all(scheduler):
            job = _new_job(environ, meeting.workers, len(leads))
            _start("the scheduler", rank, {**environ, **job, "DMLC_ROLE": "scheduler"})
        store.set(scheduler, json.dumps(job))
    job = json.loads(_get(store, [scheduler], environ)[0])
    if FAILED in job:
        raise PeerLostError(job[FAILED])
    if rank in leads:
        number = str(leads.index(rank))
        server = {"DMLC_ROLE": "server", "DMLC_TASK_ID": number}
        with _failure.told_to_all():
            _start(f"server {number}", rank, {**environ, **job, **server})
    own = {"DMLC_ROLE": "worker", "DMLC_TASK_ID": str(rank)}
    return {**environ, **job, **own}


class _Failure:
    """Why the job cannot begin: whoever sees it first tells all ranks, by their store."""

    def __init__(self, meeting: Meeting, key: str) -> None:
        self._store = meeting.store
        self._rank = meeting.rank
        self._key = key

    def tell(self, why: str, also: str = "") -> None:
        with suppress(RuntimeError):  # the rank that holds the store has ended
            self._store.set(self._key, why)
            if also:
                self._store.set(also, json.dumps({FAILED: why}))

    @contextmanager
    def told_to_all(self, also: str = "") -> Iterator[None]:
        """What is raised; `also`: a key that others wait for."""
        try:
            yield
        except Exception as error:
            self.tell(f"worker {self._rank} could not start its part of the job: {error}", also)
            raise

    def look(self) -> None:
        with suppress(RuntimeError):
            if self._store.check([self._key]):
                raise PeerLostError(self._store.get(self._key).decode())


def look() -> None:
    """While the job is starting: raises if something that was started for it has ended."""
    if _failure is None:
        return
    for why in filter(None, (child.end() for child in _children)):
        _failure.tell(why)
        raise PeerLostError(why)
    _failure.look()


def forked() -> None:
    """In a child of this process: who waits for this process's end does not wait for the child."""
    for child in _children:
        child.forget()


def _new_job(environ: Mapping[str, str], workers: int, hosts: int) -> dict[str, str]:
    master = environ.get("MASTER_ADDR", "").strip()
    host = scheduler_address(master, hosts)
    try:
        port = free_port(host)
    except LaunchError:
        raise SettingError(
            f"MASTER_ADDR is '{master}': rank 0 cannot listen on {host}; set it to an address of "
            "rank 0's host"
        ) from None
    job = {
        "DMLC_PS_VAN_TYPE": wanted_van(environ) or "mercury",
        "DMLC_NUM_WORKER": str(workers),
        "DMLC_NUM_SERVER": str(hosts),
        "DMLC_PS_ROOT_URI": host,
        "DMLC_PS_ROOT_PORT": str(port),
    }
    if not any(environ.get(name, "").strip() for name in TOKEN_SETTINGS):
        job["MERCURY_JOB_TOKEN"] = secrets.token_hex(32)
    restarts = environ.get("TORCHELASTIC_RESTART_COUNT", "0").strip()
    if (traces := environ.get("MERCURY_TRACE_DIR", "").strip()) and restarts != "0":
        job["MERCURY_TRACE_DIR"] = of_restart(traces, restarts)
    return job


def _start(name: str, rank: int, environ: Mapping[str, str]) -> None:
    Settings.from_environment(environ)  # what is wrong is raised here
    name = f"{name}, which worker {rank} started,"
    _children.append(Started(name, {**environ, METRICS: "0"}))


def _get(store: Any, keys: list[str], environ: Mapping[str, str]) -> list[bytes]:
    """What others have said, when they have."""
    try:
        store.wait(keys, _patience(environ))
    except RuntimeError:
        missing = [key.partition(": ")[2] for key in keys if not store.check([key])]
        raise WaitTimeoutError(
            f"the job cannot begin without {', '.join(missing)}: has every rank come to "
            "mercury.wrap, or whatever else joins the job?"
        ) from None
    return [store.get(key) for key in keys]


def _patience(environ: Mapping[str, str]) -> timedelta:
    setting = next(s for s in TABLE if s.name == "MERCURY_START_TIMEOUT_S")
    return timedelta(seconds=int(setting.read(environ)))


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback


def _is_ours(address: str) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        try:
            sock.bind((address, 0))
        except OSError:
            return False
    return True


def _host() -> str:
    return f"{socket.gethostname()} {Path('/proc/sys/kernel/random/boot_id').read_text().strip()}"
