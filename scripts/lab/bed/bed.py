"""A test bed: hosts with addresses and link speeds of their own, on this machine.

Hosts are network namespaces. Their cables end on a bridge, which lives in a namespace too, so
that nothing of the bed is seen outside it. `tc tbf` limits each cable in both directions:

    host a [eth0] --up--> [p0]  bridge  [p1] --down--> [eth0] host b

A rate counts Ethernet frames; of full ones TCP/IP leaves 1448 / 1514 = 0.956 for data.

The queue before a cable is BURST_S + QUEUE_S deep, a few milliseconds like a shallow switch's.
TCP that probes by filling it (cubic) reaches the rate in both directions at once; bbr, which some
systems have as default, does not, so the hosts' connections begin with cubic unless told
otherwise (`congestion`; None: this machine's default). Programs may choose another for a socket
that is connected.

With `classes`, packets that are marked as signalling (DSCP CS5) pass each cable at once, as in
networks that know classes of service. They must be few: nothing limits them.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Union

from pslite_ext.launch.supervise import Child, Supervisor
from scripts.lab.bed import namespaces
from scripts.lab.bed.namespaces import (
    LabError,
    ip,
    no_filters,
    privilege_missing,
    remove_leftovers,
    tc,
    tc_batch,
)

BURST_S = 0.001  # of the rate may pass at once: covers a late wake-up of the kernel's timer
QUEUE_S = 0.004  # of the rate may wait; what comes on top is dropped
# TCP hands over up to 64 KB in one piece. Of a smaller burst, tbf would cut it up, and pieces that
# leave from different cores arrive out of order: measured, 0.8 of the rate instead of 0.955.
BURST_BYTES_MIN = QUEUE_BYTES_MIN = 72 * 1024
SIGNALLING = 5 << 5  # as an IP header has it
_MARKED = f"match ip dsfield {SIGNALLING:#x} 0xfc"
_AT_ONCE = "htb rate 100gbit quantum 65536"
_HELD_PORT = 9090
Rate = Union[float, None]  # bits per second; None: not limited


@dataclass(frozen=True)
class Counters:
    """Bytes of an interface since the bed began, frames and all, as the host sees them."""

    sent: int
    received: int


@dataclass(frozen=True)
class Queue:
    """Before a host's cable, one way."""

    drops: int = 0  # packets, since the rate was first set
    waiting: int = 0  # bytes, now


def _tbf(rate: float) -> str:
    burst = max(BURST_BYTES_MIN, round(rate / 8 * BURST_S))
    limit = burst + max(QUEUE_BYTES_MIN, round(rate / 8 * QUEUE_S))
    return f"tbf rate {round(rate)}bit burst {burst} limit {limit}"


class LoopbackBed:
    """What is left without privilege: addresses of this machine's loopback, nothing shaped.

    Each bed has addresses that no other one has: those beside the first one that it can hold.
    """

    shaped = False
    device = "lo"  # that a host's processes see

    def __init__(
        self, hosts: Sequence[str], rate: Rate = None, *, congestion: str | None = "cubic"
    ):
        if len(set(hosts)) != len(hosts) or not 1 <= len(hosts) <= 200:
            raise LabError("a bed has 1 to 200 hosts, each with a name of its own")
        self.hosts = tuple(hosts)
        self.rate = rate
        self.processes = Supervisor()
        self._held: socket.socket | None = None

    def __enter__(self) -> LoopbackBed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def address(self, host: str) -> str:
        index = self._index(host)
        if self._held is None:
            self._held = _hold_addresses()
        network = self._held.getsockname()[0].rpartition(".")[0]
        return f"{network}.{index + 2}"

    def start(
        self,
        host: str,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        told: Callable[[str], None] | None = None,
    ) -> Child:
        """Starts a program on a host; `told` gets its output line by line."""
        return self.processes.start([*self._prefix(host), *argv], env, told=told)

    def namespace(self, host: str) -> str:
        """The name of a host's network."""
        self._index(host)
        raise LabError("without privilege hosts have no networks of their own")

    def counters(self, host: str) -> Counters:
        """Of the interface; on loopback those of all hosts together."""
        self._index(host)
        with open("/proc/net/dev") as table:
            return read_counters(table.read(), "lo")

    def queues_in(self) -> dict[str, Queue]:
        """By host, of those whose link is limited."""
        return {}

    def queue_out(self, host: str) -> Queue:
        self._index(host)
        return Queue()

    def set_rate(self, host: str, up: Rate, down: Rate) -> None:
        self._index(host)  # there is nothing to shape

    def cut(self, host: str) -> None:
        raise LabError("without privilege a host cannot be cut off")

    def mend(self, host: str) -> None:
        raise LabError("without privilege a host cannot be cut off")

    def close(self) -> None:
        self.processes.end()
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def _prefix(self, host: str) -> list[str]:
        self._index(host)
        return []

    def _index(self, host: str) -> int:
        if host not in self.hosts:
            raise LabError(f"there is no host {host!r}; there are {', '.join(self.hosts)}")
        return self.hosts.index(host)


class Bed(LoopbackBed):
    """The real thing; needs root. `rate` is every host's, both ways, until `set_rate`."""

    shaped = True
    device = "eth0"

    def __init__(
        self,
        hosts: Sequence[str],
        rate: Rate = None,
        *,
        congestion: str | None = "cubic",
        classes: bool = False,
    ):
        super().__init__(hosts, rate)
        self._congestion = congestion
        self._classes = classes
        self._classified: set[tuple[str, str]] = set()  # namespaces' devices that have classes
        self._run: str | None = None

    def __enter__(self) -> Bed:
        remove_leftovers()
        self._run = namespaces.new_run(self.hosts)
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def keep(self) -> str:
        """Leaves the bed behind when this process ends; its id, for `attach`."""
        assert self._run is not None, "enter the bed first"
        run, self._run = self._run, None
        namespaces.keep_run(run)
        return run

    @classmethod
    def attach(cls, run: str) -> Bed:
        """A bed that was kept, or another process's. Not to be entered or closed."""
        hosts = namespaces.read_record(run).get("hosts")
        if not hosts:
            raise LabError(f"there is no bed '{run}'")
        bed = cls(hosts)
        bed._run = run
        return bed

    def namespace(self, host: str) -> str:
        self._index(host)
        return f"{namespaces.PREFIX}{self._run}-{host}"

    @property
    def _bridge(self) -> str:
        return f"{namespaces.PREFIX}{self._run}-"  # no host has the empty name

    def _build(self) -> None:
        ip([f"netns add {name}" for name in (self._bridge, *map(self.namespace, self.hosts))])
        plan = ["link add br0 type bridge", "link set br0 up"]
        for i, host in enumerate(self.hosts):
            plan += [
                f"link add p{i} type veth peer name eth0 netns {self.namespace(host)}",
                f"link set p{i} addrgenmode none",
                f"link set p{i} master br0",
                f"link set p{i} up",
            ]
        ip(plan, self._bridge)
        no_filters(self._bridge)
        control = f" congctl {self._congestion}" if self._congestion else ""
        for i, host in enumerate(self.hosts):
            ip(
                [
                    "link set lo up",
                    "link set eth0 addrgenmode none",  # no IPv6 chatter in the counters
                    f"address add 10.77.0.{i + 1}/24 dev eth0 noprefixroute",
                    "link set eth0 up",
                    # A namespace may not choose its default (sysctl says EPERM), a route may.
                    f"route add 10.77.0.0/24 dev eth0{control}",
                ],
                self.namespace(host),
            )
            if self.rate is not None:
                self.set_rate(host, self.rate, self.rate)

    def address(self, host: str) -> str:
        return f"10.77.0.{self._index(host) + 1}"

    def set_rate(self, host: str, up: Rate, down: Rate) -> None:
        """From now on. A queue that is too long for the new rate is not dropped: it drains."""
        for rate in (up, down):  # before anything is changed
            if rate is not None and not 8_000 <= rate <= 100e9:
                raise LabError(f"a rate of {rate} bit/s: 8 kbit/s to 100 Gbit/s can be set")
        self._limit(self.namespace(host), "eth0", up)
        self._limit(self._bridge, f"p{self._index(host)}", down)

    def _limit(self, namespace: str, device: str, rate: Rate) -> None:
        if rate is None:
            self._classified.discard((namespace, device))
            with suppress(LabError):  # it was not limited
                tc(f"qdisc del dev {device} root", namespace)
            return
        if not self._classes:
            tc(f"qdisc replace dev {device} root handle 1: {_tbf(rate)}", namespace)
            return
        lines = []
        if (namespace, device) not in self._classified:
            self._classified.add((namespace, device))
            lines = [
                f"qdisc add dev {device} root handle 1: htb default 2",
                *(f"class add dev {device} parent 1: classid 1:{i} {_AT_ONCE}" for i in (1, 2)),
                f"filter add dev {device} parent 1: protocol ip u32 {_MARKED} flowid 1:1",
            ]
        lines.append(f"qdisc replace dev {device} parent 1:2 handle 2: {_tbf(rate)}")
        tc_batch(lines, namespace)

    def cut(self, host: str) -> None:
        """Pulls the host's cable; connections stay open and wait."""
        ip([f"link set p{self._index(host)} down"], self._bridge)

    def mend(self, host: str) -> None:
        ip([f"link set p{self._index(host)} up"], self._bridge)

    def counters(self, host: str) -> Counters:
        # The table is that of the process which reads it, so it is read from inside.
        name = self.namespace(host)
        done = subprocess.run(
            ["ip", "netns", "exec", name, "cat", "/proc/net/dev"], capture_output=True, text=True
        )
        if done.returncode != 0:
            raise LabError(f"counters of {host}: {done.stderr.strip()}")
        return read_counters(done.stdout, "eth0")

    def queues_in(self) -> dict[str, Queue]:
        found = read_queues(tc("-s -j qdisc show", self._bridge))
        ports = {f"p{i}": host for i, host in enumerate(self.hosts)}
        return {ports[device]: queue for device, queue in found.items() if device in ports}

    def queue_out(self, host: str) -> Queue:
        found = read_queues(tc("-s -j qdisc show", self.namespace(host)))
        return found.get("eth0", Queue())

    def close(self) -> None:
        self.processes.end()
        run, self._run = self._run, None
        if run is not None:
            namespaces.remove_run(run)

    def _prefix(self, host: str) -> list[str]:
        return ["ip", "netns", "exec", self.namespace(host)]


def _hold_addresses() -> socket.socket:
    """On the first address of a /24 of the loopback that nobody else holds."""
    for block in range(256):
        held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with suppress(OSError):
            held.bind((f"127.77.{block}.1", _HELD_PORT))
            return held
        held.close()
    raise LabError("256 beds are on this machine's loopback already; end some")


def read_counters(table: str, device: str) -> Counters:
    for line in table.splitlines():
        name, _, rest = line.partition(":")
        if name.strip() == device:
            fields = rest.split()
            return Counters(sent=int(fields[8]), received=int(fields[0]))
    raise LabError(f"there is no interface {device}")


def read_queues(text: str) -> dict[str, Queue]:
    """Of limited devices, by name, from what `tc -s -j` says."""
    return {
        line["dev"]: Queue(line["drops"], line["backlog"])
        for line in json.loads(text)
        if line.get("kind") == "tbf"
    }


def best_bed(hosts: Sequence[str], rate: Rate = None, classes: bool = False) -> LoopbackBed:
    """A Bed where that is allowed; otherwise a LoopbackBed, and says so."""
    reason = privilege_missing()
    if reason is None:
        return Bed(hosts, rate, classes=classes)
    print(f"lab: loopback without shaping, because {reason}", file=sys.stderr)
    return LoopbackBed(hosts, rate)
