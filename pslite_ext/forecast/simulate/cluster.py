"""The machines: workers and servers, their links, racks, and where sums are made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Callable, Union

from pslite_ext.forecast.model import ModelError
from pslite_ext.forecast.model.job import number
from pslite_ext.forecast.simulate.clock import Clock
from pslite_ext.forecast.simulate.connection import Connection
from pslite_ext.forecast.simulate.levels import CatchingUp
from pslite_ext.forecast.simulate.link import (
    QUEUES,
    ByPriority,
    Fair,
    Hop,
    InOrder,
    JobsInTurn,
    Link,
    Queue,
    Rate,
    Trains,
)
from pslite_ext.forecast.simulate.reader import Reader

# Bytes per second; or that from each of some moments on: ((0, rate), (time, rate), ...).
RateSpec = Union[float, Sequence[tuple[float, float]]]
AGGREGATE = ("server", "rack", "switch")
PLACEMENT = ("striped", "whole")


@dataclass(frozen=True)
class Cluster:
    """Every node has a link out and a link in, both of its rate.

    `sharing` is how links into nodes and racks choose among packets; what a node sends over its
    own link is ordered by the job's policy; several jobs on a node take turns. Queues have no
    limit: "priority" stands for a network whose flow control holds back the less urgent at its
    sender.

    With `window_bytes`, flow control is simulated instead: each connection between a worker and a
    server orders what it has to send, and packets go while less than that is under way, so that a
    node's own link takes packets as they come; so do networks ("fifo").
    """

    worker_rates: Sequence[RateSpec]
    server_rates: Sequence[RateSpec] = ()
    latency_s: float = 0.0  # one way, node to node
    packet_bytes: float = 30e3
    sharing: str = "priority"
    aggregate: str = "server"
    placement: str = "striped"  # packets over the servers in turn; "whole": a tensor on one server
    racks: Sequence[int] = ()  # of each worker; none: all hosts hang on one switch
    # Between a rack and the servers, each way; None: all that its workers' links can carry.
    rack_rate: RateSpec | None = None
    connection_rate: float | None = None  # most that one worker and one server exchange, each way
    window_bytes: float | None = None  # packets go while less is under way from one to the other
    reaction_s: float = 0.0  # mean time after which a node's process takes what has arrived
    beside: bool = False  # each server is on the host of the worker with its number

    def __post_init__(self) -> None:
        if not self.worker_rates:
            raise ModelError("a cluster needs at least one worker")
        if not self.server_rates and self.aggregate != "switch":
            raise ModelError("a cluster needs at least one server, unless a switch aggregates")
        number("latency_s", self.latency_s)
        number("reaction_s", self.reaction_s)
        number("packet_bytes", self.packet_bytes, above_zero=True)
        for name, known in (
            ("sharing", tuple(QUEUES)),
            ("aggregate", AGGREGATE),
            ("placement", PLACEMENT),
        ):
            if getattr(self, name) not in known:
                raise ModelError(
                    f"{name} must be one of {', '.join(known)}, not {getattr(self, name)!r}"
                )
        if self.connection_rate is not None:
            number("connection_rate", self.connection_rate, above_zero=True)
        if self.window_bytes is not None:
            number("window_bytes", self.window_bytes, above_zero=True)
        if self.aggregate != "server" and (self.window_bytes is not None or self.reaction_s):
            raise ModelError("windows and reactions are those of sums on servers")
        if self.beside:
            if self.window_bytes is None:
                raise ModelError("hosts with a worker and a server need window_bytes")
            if len(self.server_rates) > len(self.worker_rates):
                raise ModelError(
                    f"servers beside workers need a host each: {len(self.server_rates)} servers "
                    f"are more than {len(self.worker_rates)} hosts"
                )
            if tuple(self.server_rates) != tuple(self.worker_rates[: len(self.server_rates)]):
                raise ModelError("servers beside workers have their hosts' rates")
        if self.racks and len(self.racks) != len(self.worker_rates):
            raise ModelError(
                f"{len(self.racks)} racks are given for {len(self.worker_rates)} workers"
            )
        if self.aggregate == "rack" and not self.racks:
            raise ModelError("aggregation in racks needs to know the rack of each worker")

    @classmethod
    def even(cls, workers: int, servers: int, bandwidth: RateSpec, **rest: object) -> Cluster:
        """All nodes alike."""
        for what, count in (("workers", workers), ("servers", servers)):
            if count < 0:
                raise ModelError(f"there cannot be {count} {what}")
        return cls((bandwidth,) * workers, (bandwidth,) * servers, **rest)  # type: ignore[arg-type]

    @classmethod
    def alike(cls, workers: int, servers: int, bandwidth: float, **rest: object) -> Cluster:
        """Workers that compute and send in step, one standing for all: its cost is that of one.

        A server's link carries a copy of each packet for every worker, so to one of them it is
        that many times slower. This is the worker that is served last. Not for policies that have a
        window: real workers are served last in turn, but this one waits for all others each time.
        """
        if workers < 1:
            raise ModelError(f"there cannot be {workers} workers")
        rate = number("bandwidth", bandwidth, above_zero=True)
        return cls((rate,), (rate / workers,) * servers, **rest)  # type: ignore[arg-type]


def _sum(specs: Iterable[RateSpec]) -> RateSpec:
    """What links of these rates carry together."""
    rates = [Rate.of(spec) for spec in specs]
    times = sorted({time for rate in rates for time in rate.times})
    return [(time, sum(rate.at(time) for rate in rates)) for time in times]


class ClusterLinks:
    """The links of a cluster, built for one simulation."""

    def __init__(
        self, cluster: Cluster, clock: Clock, by_priority: bool, several_jobs: bool = False
    ) -> None:
        def of_jobs(queue: Callable[[], Queue]) -> Callable[[], Queue]:
            by_urgency = queue in (Trains, ByPriority, CatchingUp)
            return (lambda: JobsInTurn(queue)) if several_jobs and by_urgency else queue

        def links(
            kind: str, rates: Sequence[RateSpec], queue: Callable[[], Queue], latency_s: float
        ) -> list[Link]:
            return [
                Link(clock, f"{kind} {index}", Rate.of(rate), latency_s, queue())
                for index, rate in enumerate(rates)
            ]

        latency_s = cluster.latency_s  # on the way in
        shared = of_jobs(QUEUES[cluster.sharing])
        windows = cluster.window_bytes is not None
        pushes: Callable[[], Queue] = InOrder if windows else of_jobs(Trains)
        self.worker_out = links("out of worker", cluster.worker_rates, pushes, 0.0)
        self.worker_in = links("into worker", cluster.worker_rates, shared, latency_s)
        # Where nothing is urgent, a server's connections to its workers share its link.
        ordered: Callable[[], Queue] = of_jobs(ByPriority) if by_priority else Fair
        answers = InOrder if windows else ordered
        servers = len(cluster.server_rates)
        self.beside = cluster.beside
        if self.beside:
            self.server_out, self.server_in = self.worker_out[:servers], self.worker_in[:servers]
        else:
            self.server_out = links("out of server", cluster.server_rates, answers, 0.0)
            self.server_in = links("into server", cluster.server_rates, shared, latency_s)
        # Of the processes: workers, then servers.
        self.readers: list[Reader] = []
        if cluster.reaction_s:
            count = len(cluster.worker_rates) + servers
            self.readers = [Reader(clock, cluster.reaction_s, seed) for seed in range(count)]
        # By worker, then by server.
        self.pushing: list[list[Connection]] = []
        self.answering: list[list[Connection]] = []
        if cluster.window_bytes is not None:
            for connections, queue in (
                (self.pushing, of_jobs(Trains if cluster.beside else CatchingUp)),
                (self.answering, ordered),
            ):
                connections += [
                    [
                        Connection(clock, cluster.window_bytes, latency_s, queue())
                        for _ in range(servers)
                    ]
                    for _ in cluster.worker_rates
                ]
        names = sorted(set(cluster.racks))
        self.rack = [names.index(rack) for rack in cluster.racks]  # of each worker
        rates = [
            _sum(rate for rate, rack in zip(cluster.worker_rates, cluster.racks) if rack == name)
            if cluster.rack_rate is None
            else cluster.rack_rate
            for name in names
        ]
        self.rack_out = links("out of rack", rates, shared, 0.0)
        self.rack_in = links("into rack", rates, shared, 0.0)
        limit = cluster.connection_rate
        pairs = len(cluster.worker_rates) * len(cluster.server_rates) if limit else 0
        self.connection_out = links("from worker", [limit or 0.0] * pairs, InOrder, 0.0)
        self.connection_in = links("to worker", [limit or 0.0] * pairs, InOrder, 0.0)

    def links(self) -> list[Link]:
        servers = () if self.beside else (self.server_in, self.server_out)
        every = (self.worker_out, *servers, self.worker_in, self.rack_out, self.rack_in)
        return [link for links in every for link in links]

    def _between(
        self, worker: int, server: int, connections: list[Link], racks: list[Link]
    ) -> list[Link]:
        """What lies between the two nodes' own links."""
        path = [connections[worker * len(self.server_in) + server]] if connections else []
        return [*path, racks[self.rack[worker]]] if self.rack else path

    def to_server(self, worker: int, server: int) -> tuple[Hop, ...]:
        reader = self._reader(len(self.worker_out) + server)
        if self.beside and worker == server:
            return reader
        between = self._between(worker, server, self.connection_out, self.rack_out)
        return (self.worker_out[worker], *between, self.server_in[server], *reader)

    def to_worker(self, server: int, worker: int) -> tuple[Hop, ...]:
        reader = self._reader(worker)
        if self.beside and worker == server:
            return reader
        between = self._between(worker, server, self.connection_in, self.rack_in)
        return (self.server_out[server], *between, self.worker_in[worker], *reader)

    def _reader(self, process: int) -> tuple[Hop, ...]:
        return (self.readers[process],) if self.readers else ()
