"""What the soak does to a job: a table. Each fault is at a random place, at a random moment."""

from __future__ import annotations

import functools
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from scripts.soak.job import DisturbedJob
from scripts.soak.verdict import Promise

SURVIVES = Promise(may_end=False, may_go_on=True, within_s=0)
ENDS = Promise(may_end=True, may_go_on=False, within_s=15)
ENDS_SILENTLY = Promise(may_end=True, may_go_on=False, within_s=30)
EITHER = Promise(may_end=True, may_go_on=True, within_s=15)


@dataclass(frozen=True)
class Fault:
    name: str
    says: str  # for the table
    promise: Promise
    # Disturbs the job; returns who may be named. What is random comes from the generator.
    strike: Callable[[DisturbedJob, random.Random], list[str]]


def spoken(name: str) -> str:
    """As our messages call a node."""
    return "the scheduler" if name.startswith("scheduler") else name.replace("_", " ")


def _anybody(job: DisturbedJob, draw: random.Random) -> str:
    return draw.choice(job.names)


def _link(job: DisturbedJob, draw: random.Random) -> tuple[str, str]:
    """Two that talk to each other, in either order: a server and a worker, or one and the
    scheduler."""
    servers = [name for name in job.names if name.startswith("server")]
    workers = [name for name in job.names if name.startswith("worker")]
    pairs = [(server, worker) for server in servers for worker in workers]
    pairs += [("scheduler_0", name) for name in servers + workers]
    a, b = draw.choice(pairs)
    return (a, b) if draw.random() < 0.5 else (b, a)


def _tensor_link(job: DisturbedJob, draw: random.Random) -> tuple[str, str]:
    """One on which tensors travel, so that something large will come."""
    while True:
        a, b = _link(job, draw)
        if not (a.startswith("scheduler") or b.startswith("scheduler")):
            return a, b


def _kill(job: DisturbedJob, draw: random.Random) -> list[str]:
    victim = _anybody(job, draw)
    job.signal(victim, signal.SIGKILL, gone=True)
    return [spoken(victim)]


def _stop(job: DisturbedJob, draw: random.Random) -> list[str]:
    victim = _anybody(job, draw)
    job.signal(victim, signal.SIGSTOP, gone=True)
    return [spoken(victim)]


def _pause(job: DisturbedJob, draw: random.Random) -> list[str]:
    victim = _anybody(job, draw)
    job.signal(victim, signal.SIGSTOP)
    time.sleep(draw.uniform(0.1, 2.0))
    job.signal(victim, signal.SIGCONT)
    return [spoken(victim)]


def _both(a: str, b: str) -> list[str]:
    return [spoken(a), spoken(b)]


def _cut(job: DisturbedJob, draw: random.Random) -> list[str]:
    a, b = _link(job, draw)
    job.box.ask(lambda: job.box.cut(a, b))
    return _both(a, b)


def _reset(job: DisturbedJob, draw: random.Random) -> list[str]:
    a, b = _link(job, draw)
    job.box.ask(lambda: job.box.reset(a, b))
    return _both(a, b)


def _hold_for_ever(job: DisturbedJob, draw: random.Random) -> list[str]:
    a, b = _link(job, draw)
    job.box.ask(lambda: job.box.hold(a, b, 1e6))
    return _both(a, b)


def _delay(job: DisturbedJob, draw: random.Random) -> list[str]:
    a, b = _link(job, draw)
    seconds = draw.uniform(0.1, 2.0)
    job.box.ask(lambda: job.box.hold(a, b, seconds))
    time.sleep(seconds)
    return _both(a, b)


def _swallow(job: DisturbedJob, draw: random.Random) -> list[str]:
    a, b = _link(job, draw)
    for way in ((a, b), (b, a)):
        job.box.ask(functools.partial(job.box.swallow, *way))
    return _both(a, b)


def _swallow_one_way(job: DisturbedJob, draw: random.Random) -> list[str]:
    a, b = _link(job, draw)
    job.box.ask(lambda: job.box.swallow(a, b))
    return _both(a, b)


def _once(what: str) -> Callable[[DisturbedJob, random.Random], list[str]]:
    def strike(job: DisturbedJob, draw: random.Random) -> list[str]:
        a, b = _tensor_link(job, draw)
        job.box.ask(lambda: job.box.once(a, b, what))
        return _both(a, b)

    return strike


def _replay(job: DisturbedJob, draw: random.Random) -> list[str]:
    """Somebody recorded how a connection began, and says the same again."""
    open_now = job.box.ask(
        lambda: [(c.out.way[1], c.port, bytes(c.said)) for c in job.box.connections]
    )
    to, port, said = draw.choice([heard for heard in open_now if heard[2]])
    job.box.say(to, port, said)
    return []


def _garbage(job: DisturbedJob, draw: random.Random) -> list[str]:
    victim = _anybody(job, draw)
    for port in job.ports(victim):
        kind = draw.randrange(3)
        if kind == 0:
            job.box.say(victim, port, draw.randbytes(draw.randrange(1, 100_000)))
        elif kind == 1:
            job.box.say(victim, port, b"GET / HTTP/1.1\r\nHost: parameter-server\r\n\r\n")
        else:
            job.box.say(victim, port, b"", stays_s=4)
    return []


FAULTS = (
    Fault("kill", "a process is killed", ENDS, _kill),
    Fault("stop", "a process is stopped for good", ENDS_SILENTLY, _stop),
    Fault("pause", "a process is stopped, and goes on after at most 2 s", SURVIVES, _pause),
    Fault("cut", "two nodes cannot reach each other: connections are reset", ENDS, _cut),
    Fault("reset", "all connections between two nodes are reset, once", EITHER, _reset),
    Fault("silence", "between two nodes nothing moves any more", ENDS_SILENTLY, _hold_for_ever),
    Fault("delay", "between two nodes nothing moves for at most 2 s", SURVIVES, _delay),
    Fault(
        "swallow",
        "what two nodes send each other is acknowledged, and lost",
        ENDS_SILENTLY,
        _swallow,
    ),
    Fault("swallow one way", "the same, in one direction", ENDS_SILENTLY, _swallow_one_way),
    Fault("lose", "the last bytes are lost, and the connection ends", EITHER, _once("lose")),
    Fault("flip", "a bit is flipped", EITHER, _once("flip")),
    Fault("repeat", "bytes come twice", EITHER, _once("repeat")),
    Fault("replay", "a stranger says what he has recorded", SURVIVES, _replay),
    Fault("garbage", "a stranger says anything, or nothing", SURVIVES, _garbage),
)
