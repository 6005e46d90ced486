"""One host with a slower link than the others: what each server then sums, and the floor."""

from __future__ import annotations

from dataclasses import dataclass

from pslite_ext.launch.shares import least_time, server_shares
from scripts.lab.benches.case import Setting
from scripts.lab.systems.job import host_names

APART = "'s link at "  # in the name of each such case


@dataclass(frozen=True)
class SlowHost:
    host: str  # as host_names calls it
    speed: float  # its link's rate, in times the others'

    def __str__(self) -> str:
        return f"{self.host}{APART}{self.speed:g} of the rate"

    def is_in(self, setting: Setting) -> bool:
        return self.host in self._hosts(setting)

    def bandwidth(self, setting: Setting, servers: bool) -> float:
        """Bytes of gradients a second that the links carry, with the best shares.

        A ring is as fast as its slowest link.
        """
        if not servers:
            return self.speed * setting.bandwidth / setting.load(servers)
        return setting.bandwidth / least_time(self._places(setting), self._speeds(setting))

    def env(self, setting: Setting) -> dict[str, str]:
        """What `mercury launch` tells nodes whose links it knows."""
        shares = server_shares(self._places(setting), self._speeds(setting))
        return {"MERCURY_SERVER_SHARES": ",".join(map(str, shares))} if shares else {}

    def _hosts(self, setting: Setting) -> list[str]:
        return host_names(setting.workers, setting.servers, setting.beside)[1:]

    def _speeds(self, setting: Setting) -> list[float]:
        return [self.speed if host == self.host else 1.0 for host in self._hosts(setting)]

    def _places(self, setting: Setting) -> list[tuple[str, int, int]]:
        n, m = setting.workers, setting.servers
        first = 0 if setting.beside else m
        servers = [("server", i, i % n if setting.beside else i) for i in range(m)]
        return servers + [("worker", i, first + i) for i in range(n)]
