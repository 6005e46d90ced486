"""Hosts between which every connection passes one middlebox.

    host a [eth0] ---- [p0]  crossing  [p1] ---- [eth0] host b

What arrives at the crossing for another host is taken in there (a rule says so), by listening
sockets that may have any address. The middlebox then connects to the real host. So each host
believes that it talks to the other, on the other's address and port.
"""

from __future__ import annotations

from scripts.lab.bed import namespaces
from scripts.lab.bed.bed import Bed
from scripts.lab.bed.namespaces import ip

_GATEWAY = "10.77.255.254"
_TABLE = 77


class Crossing(Bed):
    """A bed without a bridge: its hosts reach each other through whoever listens in `middle`."""

    def __enter__(self) -> Crossing:
        super().__enter__()
        return self

    @property
    def middle(self) -> str:
        return self._bridge

    def run(self) -> str:
        """Its id, which is part of all its names."""
        assert self._run is not None, "enter the bed first"
        return self._run

    def _build(self) -> None:
        ip([f"netns add {name}" for name in (self.middle, *map(self.namespace, self.hosts))])
        plan = ["link set lo up", f"route add local 10.77.0.0/24 dev lo table {_TABLE}"]
        for i, host in enumerate(self.hosts):
            plan += [
                f"link add p{i} type veth peer name eth0 netns {self.namespace(host)}",
                f"link set p{i} addrgenmode none",
                f"address add {_GATEWAY}/32 dev p{i}",
                f"link set p{i} up",
                f"route add {self.address(host)}/32 dev p{i}",
                f"rule add pref {10 + i} iif p{i} lookup {_TABLE}",
            ]
        ip(plan, self.middle)
        for host in self.hosts:
            ip(
                [
                    "link set lo up",
                    "link set eth0 addrgenmode none",
                    f"address add {self.address(host)}/32 dev eth0",
                    "link set eth0 up",
                    f"route add {_GATEWAY}/32 dev eth0",
                    f"route add 10.77.0.0/24 via {_GATEWAY}",
                ],
                self.namespace(host),
            )

    def names(self) -> dict[str, str]:
        """Who has which address."""
        return {self.address(host): host for host in self.hosts}

    def namespace_file(self) -> str:
        return f"/run/netns/{namespaces.PREFIX}{self._run}-"
