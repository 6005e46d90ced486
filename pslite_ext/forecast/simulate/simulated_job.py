"""One job on a cluster: its workers' computation, what they send, and where it is summed.

A worker's iteration is backward, then forward; layer l's forward starts when its sum is in and
layer l-1's is done, and the last one starts the next iteration. A sum is due when all workers of
the job have sent their part of the same iteration.
"""

from __future__ import annotations

import heapq
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pslite_ext.forecast.model import Job, ModelError, Options
from pslite_ext.forecast.model.job import Array, number
from pslite_ext.forecast.simulate.clock import Clock
from pslite_ext.forecast.simulate.cluster import Cluster, ClusterLinks
from pslite_ext.forecast.simulate.layout import Layout, Shares
from pslite_ext.forecast.simulate.levels import Level, LevelledTrain
from pslite_ext.forecast.simulate.link import JOB_BITS, Hop, Packet, Train, pass_on
from pslite_ext.forecast.simulate.scheme import scheme

MOMENTS = ("bp_end", "push_start", "push_end", "pull_end", "fp_end")  # of a Timeline
NEVER = -1.0  # an iteration's time until it ends
JITTER_MOST = 10.0
BP_END, PUSH_START, PUSH_END, PULL_END, FP_END = range(len(MOMENTS))


@dataclass(frozen=True)
class SimulatedJob:
    """A job to simulate, on which workers (all, unless told), for how many iterations.

    Of `options`, the sizes of pieces, the credit and the startup time count; what the model's
    other options stand for, the cluster has.
    """

    job: Job
    policy: str = "mercury"
    options: Options = field(default_factory=Options)
    workers: Sequence[int] | None = None
    iterations: int = 1
    start_s: float = 0.0
    slowness: Sequence[float] = ()  # of each worker: its compute times are multiplied by this
    jitter: float = 0.0  # standard deviation of the logarithm of a factor drawn each iteration
    seed: int = 0
    # When each gradient is ready, as recorded, instead of `job`'s times: iterations x workers x
    # layers. Further iterations and workers use the recorded ones again.
    ready_s: Array | None = None
    shares: Shares | None = None  # of each layer: (server, bytes); None: as the cluster places them
    update_s: Sequence[float] = ()  # of each layer: from the last copy to confirmation, or sum
    search_s: Sequence[float] = ()  # of each layer: from a request to its answer


@dataclass(eq=False)
class SimulatedWorker:
    """One worker's place in its iteration."""

    number: int  # within the job
    host: int  # within the cluster
    iteration: int = -1
    waiting: list[tuple[int, int]] = field(default_factory=list)  # a heap of (urgency, piece)
    in_flight: int = 0  # pieces handed on and not acknowledged
    arrived: dict[int, int] = field(default_factory=dict)  # in flight -> packets at their servers
    missing: list[int] = field(default_factory=list)  # of each layer: packets not yet in; -1: done
    fp_next: int = 0
    computing: bool = False
    factor: float = 1.0
    start: float = 0.0


class JobRun:
    def __init__(
        self, run: SimulatedJob, name: int, cluster: Cluster, fabric: ClusterLinks, clock: Clock
    ) -> None:
        self.run, self.cluster, self.fabric, self.clock = run, cluster, fabric, clock
        self.scheme = scheme(run.policy, run.options)
        _check(run, cluster, self.scheme.streams)
        hosts = range(len(cluster.worker_rates)) if run.workers is None else run.workers
        self.workers = [SimulatedWorker(index, host) for index, host in enumerate(hosts)]
        servers = len(cluster.server_rates)
        whole = cluster.placement == "whole"
        self.layout = Layout.of(
            run.job, self.scheme, cluster.packet_bytes, servers, whole, run.shares
        )
        ready = run.job.bp_end[None, None, :] if run.ready_s is None else run.ready_s
        self.ready_s: list[list[list[float]]] = ready.tolist()
        self.after_pull_s: list[float] = run.job.after_pull_s.tolist()
        self.layers = len(run.job)
        self.update_s = list(run.update_s) or [0.0] * self.layers
        self.search_s = list(run.search_s) or [0.0] * self.layers
        self.copies = len(self.workers)  # that make a packet's sum
        if cluster.aggregate == "rack":
            self.rack_size = [0] * len(fabric.rack_out)
            for worker in self.workers:
                self.rack_size[fabric.rack[worker.host]] += 1
            self.copies = sum(1 for size in self.rack_size if size)
        self.flow = name << JOB_BITS  # flows of different jobs are different
        self.random = random.Random(run.seed)
        # Copies in, by iteration, of each packet (or piece); and of each rack's.
        packets = len(self.layout.packet_size)
        self.sums: dict[int, list[int]] = defaultdict(lambda: [0] * packets)
        self.rack_sums: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0] * packets)
        # Of each piece's packets for each server, by iteration.
        self.levels: dict[int, dict[tuple[int, int], Level]] = defaultdict(dict)
        # Of the latest iteration, relative to its start: [what][worker][layer]
        self.times = np.zeros((len(MOMENTS), len(self.workers), self.layers))
        self.iteration_s = np.full((run.iterations, len(self.workers)), NEVER)
        self.pushed = 0.0  # bytes that arrived where they are summed
        self.pulled = 0.0  # bytes of sums that arrived at workers
        for worker in self.workers:
            clock.at(run.start_s, self._begin, worker)

    # The worker's computation

    def _begin(self, worker: SimulatedWorker) -> None:
        worker.iteration += 1
        worker.start = now = self.clock.now
        worker.missing = list(self.layout.layer_packets)
        worker.fp_next = 0
        slowness = self.run.slowness[worker.number] if self.run.slowness else 1.0
        drawn = self.random.gauss(0.0, self.run.jitter) if self.run.jitter else 0.0
        worker.factor = slowness * float(np.exp(drawn))
        self.sums.pop(worker.iteration - 2, None)  # every worker has left that one
        self.levels.pop(worker.iteration - 2, None)
        for rack in range(len(self.fabric.rack_out)):
            self.rack_sums.pop((worker.iteration - 2, rack), None)
        of_iteration = self.ready_s[worker.iteration % len(self.ready_s)]
        ends = of_iteration[worker.number % len(of_iteration)]
        for layer in range(self.layers - 1, -1, -1):
            self.clock.at(now + ends[layer] * worker.factor, self._ready, (worker, layer))

    def _note(self, what: int, worker: SimulatedWorker, layer: int) -> None:
        self.times[what, worker.number, layer] = self.clock.now - worker.start

    def _ready(self, of: tuple[SimulatedWorker, int]) -> None:
        worker, layer = of
        self._note(BP_END, worker, layer)
        pieces = self.layout.pieces[layer]
        if not pieces:
            self._note(PUSH_START, worker, layer)
            self._note(PUSH_END, worker, layer)
            self._layer_is_in(worker, layer)
        elif self.scheme.window is None:
            for piece in pieces:
                self._hand_on(worker, piece)
        else:
            for piece in pieces:
                urgency = layer if self.scheme.by_priority else -layer
                heapq.heappush(worker.waiting, (urgency, piece))
            self.clock.at(self.clock.now, self._pump, worker)  # after all that is ready now

    def _layer_is_in(self, worker: SimulatedWorker, layer: int) -> None:
        self._note(PULL_END, worker, layer)
        worker.missing[layer] = -1
        self._forward(worker)

    def _forward(self, worker: SimulatedWorker) -> None:
        layer = worker.fp_next
        if not worker.computing and layer < self.layers and worker.missing[layer] == -1:
            worker.computing = True
            took = self.after_pull_s[layer] * worker.factor
            self.clock.at(self.clock.now + took, self._forward_ended, worker)

    def _forward_ended(self, worker: SimulatedWorker) -> None:
        worker.computing = False
        self._note(FP_END, worker, worker.fp_next)
        worker.fp_next += 1
        if worker.fp_next < self.layers:
            self._forward(worker)
            return
        self.iteration_s[worker.iteration, worker.number] = self.clock.now - worker.start
        if worker.iteration + 1 < self.run.iterations:
            self._begin(worker)

    # From the worker to where it is summed

    def _pump(self, worker: SimulatedWorker) -> None:
        assert self.scheme.window is not None
        while worker.waiting and worker.in_flight < self.scheme.window:
            worker.in_flight += 1
            self._hand_on(worker, heapq.heappop(worker.waiting)[1])

    def _hand_on(self, worker: SimulatedWorker, piece: int) -> None:
        if self.scheme.startup_s and not self.scheme.holds_link:
            self.clock.at(self.clock.now + self.scheme.startup_s, self._send, (worker, piece))
        else:
            self._send((worker, piece))

    def _send(self, of: tuple[SimulatedWorker, int]) -> None:
        worker, piece = of
        layout, where = self.layout, self.cluster.aggregate
        packets = layout.packets[piece]
        layer = layout.packet_layer[packets[0]]
        priority = layer if self.scheme.by_priority and self.scheme.streams else 0
        arrive = {"server": self._at_server, "rack": self._at_rack, "switch": self._at_switch}
        at_sum = arrive[where]
        link = self.fabric.worker_out[worker.host]
        iteration, flow = worker.iteration, self.flow + worker.number

        def make(index: int) -> Packet:
            path: tuple[Hop, ...] = (link,)
            if where == "server":
                path = self.fabric.to_server(worker.host, layout.packet_server[index])
            info = (worker, iteration, index)
            packet = Packet(layout.packet_size[index], priority, flow, path, at_sum, info)
            if not self.fabric.pushing:  # the link itself takes it from its train
                packet.hop = 1
            if index == packets.start:
                if self.scheme.holds_link:
                    packet.hold_s = self.scheme.startup_s
                if piece == layout.pieces[layer].start:
                    packet.began = self._push_began
            return packet

        if not self.fabric.pushing:
            link.feed(Train(priority, packets, make, flow))
            return
        # All begin at different servers: else everybody's first packets would meet at server 0.
        servers = len(self.cluster.server_rates)
        for turn in range(servers):
            server = (worker.host + turn) % servers
            to_it = [index for index in packets if layout.packet_server[index] == server]
            if to_it:
                level = self._level(iteration, piece, server)
                train = LevelledTrain(priority, to_it, make, flow, level)
                self.fabric.pushing[worker.host][server].send(train)

    def _level(self, iteration: int, piece: int, server: int) -> Level:
        levels = self.levels[iteration]
        if (piece, server) not in levels:
            levels[piece, server] = Level(len(self.workers))
        return levels[piece, server]

    def _push_began(self, packet: Packet) -> None:
        worker, _, index = packet.info
        self._note(PUSH_START, worker, self.layout.packet_layer[index])

    # Sums

    def _arrived(self, packet: Packet) -> tuple[SimulatedWorker, int, int]:
        worker, iteration, index = packet.info
        self.pushed += packet.size
        self._note(PUSH_END, worker, self.layout.packet_layer[index])
        return worker, iteration, index

    def _complete(self, iteration: int, index: int, copies: int) -> bool:
        counts = self.sums[iteration]
        counts[index] += 1
        return counts[index] == copies

    def _at_rack(self, packet: Packet) -> None:
        worker, iteration, index = self._arrived(packet)
        rack = self.fabric.rack[worker.host]
        counts = self.rack_sums[iteration, rack]
        counts[index] += 1
        if counts[index] == self.rack_size[rack]:
            path = (
                self.fabric.rack_out[rack],
                self.fabric.server_in[self.layout.packet_server[index]],
            )
            info = (worker, iteration, index)
            flow = self.flow + rack
            pass_on(Packet(packet.size, packet.priority, flow, path, self._racks_at_server, info))

    def _racks_at_server(self, packet: Packet) -> None:
        _, iteration, index = packet.info
        if not self._complete(iteration, index, self.copies):
            return
        out = self.fabric.server_out[self.layout.packet_server[index]]
        for rack, size in enumerate(self.rack_size):
            if size:
                path = (out, self.fabric.rack_in[rack])
                info = (rack, index)
                flow = self.flow + rack
                pass_on(Packet(packet.size, packet.priority, flow, path, self._back_at_rack, info))

    def _back_at_rack(self, packet: Packet) -> None:
        rack, index = packet.info
        for worker in self.workers:
            if self.fabric.rack[worker.host] == rack:
                self._sum_to(worker, (self.fabric.worker_in[worker.host],), packet.priority, index)

    def _at_switch(self, packet: Packet) -> None:
        _, iteration, index = self._arrived(packet)
        if self._complete(iteration, index, self.copies):
            for worker in self.workers:
                self._sum_to(worker, (self.fabric.worker_in[worker.host],), packet.priority, index)

    def _at_server(self, packet: Packet) -> None:
        worker, iteration, index = self._arrived(packet)
        if self.fabric.pushing:
            piece, server = self.layout.packet_piece[index], self.layout.packet_server[index]
            self._level(iteration, piece, server).came(worker.number)
        if self.scheme.streams:
            if self._complete(iteration, index, self.copies):
                took = self.update_s[self.layout.packet_layer[index]]
                if took:
                    self.clock.at(self.clock.now + took, self._stream, packet)
                else:
                    self._stream(packet)
            return
        piece = self.layout.packet_piece[index]
        if self.scheme.window is not None:
            self._piece_arrives(worker, piece)
        copies = self.copies * len(self.layout.packets[piece])
        if self._complete(iteration, piece, copies):
            done = self.clock.now + self.update_s[self.layout.packet_layer[index]]
            self.clock.at(done, self._confirm, piece)

    def _piece_arrives(self, worker: SimulatedWorker, piece: int) -> None:
        """Its own pieces make room, not their sums: those wait for others, who may wait for it."""
        count = worker.arrived.pop(piece, 0) + 1
        if count < len(self.layout.packets[piece]):
            worker.arrived[piece] = count
        else:
            self.clock.at(self.clock.now + self.cluster.latency_s, self._acknowledged, worker)

    def _acknowledged(self, worker: SimulatedWorker) -> None:
        worker.in_flight -= 1
        self._pump(worker)

    # From the sum back to the worker

    def _stream(self, packet: Packet) -> None:
        index = packet.info[2]
        server = self.layout.packet_server[index]
        first = server % len(self.workers)
        for worker in self.workers[first:] + self.workers[:first]:
            self._server_to(worker, server, packet.priority, index)

    def _server_to(self, worker: SimulatedWorker, server: int, priority: int, index: int) -> None:
        path = self.fabric.to_worker(server, worker.host)
        self._sum_to(worker, path, priority, index, server)

    def _sum_to(
        self,
        worker: SimulatedWorker,
        path: tuple[Hop, ...],
        priority: int,
        index: int,
        server: int | None = None,
    ) -> None:
        size = self.layout.packet_size[index]
        flow = self.flow + worker.number
        packet = Packet(size, priority, flow, path, self._received, (worker, index))
        if self.fabric.answering and server is not None:
            self.fabric.answering[worker.host][server].send(packet)
        else:
            pass_on(packet)

    def _received(self, packet: Packet) -> None:
        worker, index = packet.info
        self.pulled += packet.size
        layer = self.layout.packet_layer[index]
        worker.missing[layer] -= 1
        if not worker.missing[layer]:
            self._layer_is_in(worker, layer)

    def _confirm(self, piece: int) -> None:
        """Every worker learns that the sum is made; where it asks, its request takes as long."""
        layer = self.layout.packet_layer[self.layout.packets[piece][0]]
        asked_s = 2 * self.cluster.latency_s + self.search_s[layer] if self.scheme.asks else 0.0
        for worker in self.workers:
            if asked_s:
                self.clock.at(self.clock.now + asked_s, self._answer, (worker, piece))
            else:
                self._answer((worker, piece))

    def _answer(self, of: tuple[SimulatedWorker, int]) -> None:
        worker, piece = of
        for index in self.layout.packets[piece]:
            self._server_to(worker, self.layout.packet_server[index], 0, index)


def _check(run: SimulatedJob, cluster: Cluster, streams: bool) -> None:
    hosts = range(len(cluster.worker_rates))
    workers = list(hosts if run.workers is None else run.workers)
    if not workers or len(set(workers)) != len(workers) or not {*workers} <= {*hosts}:
        raise ModelError(f"a job's workers must be different ones of 0..{len(hosts) - 1}")
    if run.iterations < 1:
        raise ModelError("a run needs at least one iteration")
    if cluster.aggregate != "server" and not streams:
        raise ModelError(f"policy '{run.policy}' keeps its sums on servers, not in a network")
    number("start_s", run.start_s)
    number("jitter", run.jitter, most=JITTER_MOST)
    for name, length in (
        ("slowness", len(workers)),
        ("update_s", len(run.job)),
        ("search_s", len(run.job)),
    ):
        values = getattr(run, name)
        if values and len(values) != length:
            raise ModelError(f"{name} has {len(values)} values, not {length}")
        for value in values:
            number(name, value, above_zero=name == "slowness")
    if run.ready_s is not None:
        shape = run.ready_s.shape
        if len(shape) != 3 or not shape[0] or not shape[1] or shape[2] != len(run.job):
            raise ModelError(f"ready_s must be iterations x workers x layers, not {shape}")
        if not (np.isfinite(run.ready_s).all() and (run.ready_s >= 0).all()):
            raise ModelError("ready_s must hold finite numbers >= 0")
    if run.shares is not None and len(run.shares) != len(run.job):
        raise ModelError(f"shares has {len(run.shares)} values, not {len(run.job)}")
