"""What the soak does to a job: a table. Each fault is at a random place, at a random moment."""

from __future__ import annotations

import functools
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scripts.soak.job import DisturbedJob
from scripts.soak.verdict import Promise, spoken

# What docs/operations.md says, with T as it is by default.
_T_S = 10.0
_BEATS_S = 3.0  # three heartbeats
_AGAIN_S = 2.0  # to connect again
# For what comes between the moment at which somebody knows and that at which all have ended.
GRACE_S = 5.0
# A fault that strikes once waits for something to strike.
STRIKES_WITHIN_S = 10.0


def _ends(documented_s: float, may_go_on: bool = False, kind: str = "") -> Promise:
    return Promise(True, may_go_on, documented_s + GRACE_S, kind)


SURVIVES = Promise(may_end=False, may_go_on=True, within_s=0)
ENDS_BY_KILL = _ends(_BEATS_S)
ENDS = _ends(_T_S)
ENDS_SILENTLY = _ends(_T_S + _BEATS_S)
RESET = _ends(_AGAIN_S + _BEATS_S, may_go_on=True)
EITHER = _ends(_T_S, may_go_on=True)
CORRUPT = _ends(_T_S, may_go_on=True, kind="Corrupt")


@dataclass(frozen=True)
class Strike:
    culprits: list[str]  # who is to be named
    happened: bool = True  # there was something to strike
    receiver: str = ""  # of bytes for which their sender is to be named

    @property
    def hit(self) -> list[str]:
        """All that may be lost for it."""
        return self.culprits + [self.receiver] * bool(self.receiver)


@dataclass(frozen=True)
class Fault:
    name: str
    says: str  # for the table
    promise: Promise
    # Disturbs the job. What is random comes from the generator.
    strike: Callable[[DisturbedJob, random.Random], Strike]
    waits: bool = False  # until there is something to strike

    def goes_on_without(self, culprits: Sequence[str], servers: int) -> bool:
        """Whether a job that may lose nodes must survive it."""
        of = {name.split()[0] for name in culprits}
        last = servers == 1 and "server" in of and "worker" not in of  # whom it does without, then
        return self.promise in (ENDS_BY_KILL, ENDS, ENDS_SILENTLY, RESET) and not last


def _anybody(job: DisturbedJob, draw: random.Random) -> str:
    return draw.choice(job.names)


def _link(job: DisturbedJob, draw: random.Random) -> tuple[str, str]:
    """Two that talk to each other, in either order."""
    a, b = draw.choice(job.links())
    return (a, b) if draw.random() < 0.5 else (b, a)


def _tensor_link(job: DisturbedJob, draw: random.Random) -> tuple[str, str]:
    """One on which tensors travel, so that something large will come."""
    while True:
        a, b = _link(job, draw)
        if not (a.startswith("scheduler") or b.startswith("scheduler")):
            return a, b


def _kill(job: DisturbedJob, draw: random.Random) -> Strike:
    victim = _anybody(job, draw)
    job.signal(victim, signal.SIGKILL, gone=True)
    return Strike([spoken(victim)])


def _stop(job: DisturbedJob, draw: random.Random) -> Strike:
    victim = _anybody(job, draw)
    job.signal(victim, signal.SIGSTOP, gone=True)
    return Strike([spoken(victim)])


def _pause(job: DisturbedJob, draw: random.Random) -> Strike:
    victim = _anybody(job, draw)
    job.signal(victim, signal.SIGSTOP)
    time.sleep(draw.uniform(0.1, 2.0))
    job.signal(victim, signal.SIGCONT)
    return Strike([spoken(victim)])


def _both(a: str, b: str, happened: bool = True) -> Strike:
    return Strike([spoken(a), spoken(b)], happened)


def _until(happened: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + STRIKES_WITHIN_S
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _cut(job: DisturbedJob, draw: random.Random) -> Strike:
    a, b = _link(job, draw)
    job.box.ask(lambda: job.box.cut(a, b))
    return _both(a, b)


def _reset(job: DisturbedJob, draw: random.Random) -> Strike:
    a, b = _link(job, draw)
    return _both(a, b, _until(lambda: job.box.ask(lambda: job.box.reset(a, b)) > 0))


def _hold_for_ever(job: DisturbedJob, draw: random.Random) -> Strike:
    a, b = _link(job, draw)
    job.box.ask(lambda: job.box.hold(a, b, 1e6))
    return _both(a, b)


def _delay(job: DisturbedJob, draw: random.Random) -> Strike:
    a, b = _link(job, draw)
    seconds = draw.uniform(0.1, 2.0)
    job.box.ask(lambda: job.box.hold(a, b, seconds))
    time.sleep(seconds)
    return _both(a, b)


def _swallow(job: DisturbedJob, draw: random.Random) -> Strike:
    a, b = _link(job, draw)
    for way in ((a, b), (b, a)):
        job.box.ask(functools.partial(job.box.swallow, *way))
    return _both(a, b)


def _swallow_one_way(job: DisturbedJob, draw: random.Random) -> Strike:
    a, b = _link(job, draw)
    job.box.ask(lambda: job.box.swallow(a, b))
    return _both(a, b)


def _once(what: str) -> Callable[[DisturbedJob, random.Random], Strike]:
    def strike(job: DisturbedJob, draw: random.Random) -> Strike:
        a, b = _tensor_link(job, draw)
        job.box.ask(lambda: job.box.once(a, b, what))
        happened = _until(lambda: what in job.box.done)
        if not happened:  # nor shall it later, when nobody counts on it
            happened = not job.box.ask(lambda: job.box.never_mind(a, b))
        # Bytes that are not what they should be are their sender's, as far as anybody can see.
        if what == "lose":
            return _both(a, b, happened)
        return Strike([spoken(a)], happened, receiver=spoken(b))

    return strike


def _replay(job: DisturbedJob, draw: random.Random) -> Strike:
    """Somebody recorded how a connection began, and says the same again."""
    if not _until(lambda: bool(job.box.ask(job.box.heard))):
        return Strike([], False)
    to, port, said = draw.choice(job.box.ask(job.box.heard))
    return Strike([], job.box.say(to, port, said))


def _garbage(job: DisturbedJob, draw: random.Random) -> Strike:
    victim = _anybody(job, draw)
    heard = False
    for port in job.ports(victim):
        kind = draw.randrange(3)
        if kind == 0:
            heard |= job.box.say(victim, port, draw.randbytes(draw.randrange(1, 100_000)))
        elif kind == 1:
            heard |= job.box.say(victim, port, b"GET / HTTP/1.1\r\nHost: parameter-server\r\n\r\n")
        else:
            heard |= job.box.say(victim, port, b"", stays_s=4)
    return Strike([], heard)


FAULTS = (
    Fault("kill", "a process is killed", ENDS_BY_KILL, _kill),
    Fault("stop", "a process is stopped for good", ENDS, _stop),
    Fault("pause", "a process is stopped, and goes on after at most 2 s", SURVIVES, _pause),
    Fault("cut", "two nodes cannot reach each other: connections are reset", ENDS, _cut),
    Fault("reset", "all connections between two nodes are reset, once", RESET, _reset, True),
    Fault("silence", "between two nodes nothing moves any more", ENDS_SILENTLY, _hold_for_ever),
    Fault("delay", "between two nodes nothing moves for at most 2 s", SURVIVES, _delay),
    Fault(
        "swallow",
        "what two nodes send each other is acknowledged, and lost",
        ENDS_SILENTLY,
        _swallow,
    ),
    Fault("swallow one way", "the same, in one direction", ENDS_SILENTLY, _swallow_one_way),
    Fault("lose", "the last bytes are lost, and the connection ends", RESET, _once("lose"), True),
    Fault("flip", "a bit is flipped", CORRUPT, _once("flip"), True),
    Fault("repeat", "bytes come twice", EITHER, _once("repeat"), True),
    Fault("replay", "a stranger says what he has recorded", SURVIVES, _replay),
    Fault("garbage", "a stranger says anything, or nothing", SURVIVES, _garbage),
)
