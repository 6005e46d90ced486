"""What the runner runs: cases, each one way to measure one system, and what comes of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scripts.lab.bed.bed import LoopbackBed
from scripts.lab.bed.disturbance import Disturbance
from scripts.lab.systems.job import Outcome, host_names
from scripts.lab.systems.system import System
from scripts.lab.workloads.job_config import Config

TCP_SHARE = 0.956  # of a link's rate is left for data by the headers of full frames: 1448 / 1514
START_S = 9.0  # a job's processes take to import MXNet and find each other, about


class Figure(NamedTuple):
    value: float
    unit: str


Figures = dict[str, Figure]


@dataclass(frozen=True)
class Setting:
    """Hosts and links: the same for all systems that are compared."""

    workers: int = 2
    servers: int = 2
    rate: float | None = 1e9  # bits per second, each host, each way; None: not limited
    loopback: bool = False  # one address range of one host, as jobs on one machine have it
    beside: bool = False  # servers live on the workers' hosts
    classes: bool = False  # what is marked as signalling passes first
    per_host: int = 1  # workers that share a host, and its link

    @property
    def hosts(self) -> int:
        """That workers are on."""
        return self.workers // self.per_host

    def link_s(self, size: float) -> float:
        """How long so many bytes take one way, headers left out."""
        assert self.rate is not None
        return size * 8 / self.rate

    @property
    def bandwidth(self) -> float:
        """Bytes of data a second that a link carries."""
        assert self.rate is not None
        return self.rate / 8 * TCP_SHARE

    def load(self, servers: bool = True) -> float:
        """What the busiest link carries each way, in times the gradient's bytes; at least, if the
        system has no servers: what a ring of the hosts sends."""
        n, m = self.hosts, self.servers
        if not servers:
            return 2 * (n - 1) / n
        if not self.beside:
            return max(1.0, n / m)
        # The host with most servers, so many: its worker sends to the others, they to all others.
        most = -(-m // n)
        return (m + most * (n - 2)) / m

    def places(self) -> dict[str, str]:
        """By process, its host."""
        names = host_names(self.workers, self.servers, self.beside)
        at = {name: name for name in names}
        first = [f"worker{i - i % self.per_host}" for i in range(self.workers)]
        at.update({f"worker{i}": host for i, host in enumerate(first)})
        beside = self.servers if self.beside else 0
        hosts = first[:: self.per_host]
        return {**at, **{f"server{i}": hosts[i % self.hosts] for i in range(beside)}}

    def __str__(self) -> str:
        if self.loopback:
            link = "loopback"
        elif self.rate is None:
            link = "unlimited"
        else:
            link = f"{self.rate / 1e6:g} Mbit/s"
        servers = f"{self.servers} servers{' beside them' if self.beside else ''}"
        workers = f"{self.workers} workers"
        if self.per_host > 1:
            workers = f"{self.hosts} hosts of {self.per_host} workers"
        return f"{workers}, {servers}, {link}"


USUAL = Setting()


@dataclass(frozen=True)
class Case:
    bench: str
    what: str  # the same for all systems that are compared
    system: System
    setting: Setting
    config: Config
    measure: Callable[[Outcome], Figures]
    seconds: float  # that the measured part takes, about
    env: dict[str, str] = field(default_factory=dict)
    timeout_s: float = 300
    memory_bytes: float = 0  # that must be available
    disturbance: Disturbance | None = None  # changes the bed while the job runs
    hear: Callable[[dict[str, Any]], None] | None = None  # what a process says, when it does
    watched: bool = False  # the links are looked at meanwhile
    zero: Callable[[Outcome], float] | None = None  # where charts of throughput begin
    # Of a race: seconds, gradients that had been made, how good the model was.
    curve: Callable[[], Sequence[Sequence[float]]] | None = None
    # Instead of one job of `config`: what becomes of several, by what they are.
    run: Callable[[LoopbackBed], dict[str, Figures]] | None = None
    again: Callable[[int], Case] | None = None  # for a repeat (0, 1, ...) with draws of its own

    def __str__(self) -> str:
        return f"{self.bench}: {self.what}; {self.setting}; {self.system.name}"

    @property
    def estimate_s(self) -> float:
        # More processes than cores start one after the other.
        processes = 1 + self.setting.workers + self.setting.servers
        return START_S * max(1.0, processes / 5) + self.seconds


@dataclass
class Row:
    """One figure of one case, over all repeats."""

    bench: str
    what: str
    system: str
    metric: str
    unit: str
    setting: str
    values: list[float]
    # Not stored: when the run of it began, and whether what a gain compares was measured in one.
    run: str = ""
    by_turns: bool = True

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def spread(self) -> float:
        return max(self.values) - min(self.values)


@dataclass(frozen=True)
class Failure:
    bench: str
    what: str
    setting: str
    system: str
    reason: str


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
