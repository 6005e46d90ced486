"""What part of all bytes each server should sum where links differ: MERCURY_SERVER_SHARES.

In an iteration, every worker sends all of its gradients, and every server as much to each worker
as it sums. What goes from a worker to a server on its own host uses no link. With n workers, a
host with w of them whose servers sum the part S therefore sends w (1 - S) + (n - w) S times the
gradients, and as much comes in. A slow link ends soonest with a small S. Where a host's workers are
summed on it, w is 1, and n the number of hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

# A cycle of more turns than that, for each server, would be longer than most tensors.
TURNS_EACH = 16
ROUNDED = 0.1  # how far from its part a server's turns may be


@dataclass(frozen=True)
class HostLoad:
    speed: float
    workers: int
    servers: tuple[int, ...]  # their ranks

    def time(self, part: float, workers: int) -> float:
        """Of an iteration, if its servers sum `part` of all; gradients and the unit of speed: 1."""
        return (self.workers * (1 - part) + (workers - self.workers) * part) / self.speed

    def most(self, time: float, workers: int) -> float:
        """The largest part that takes no longer."""
        each = workers - 2 * self.workers
        if not self.servers:
            return 0.0
        if each <= 0:
            return 1.0
        return min(1.0, max(0.0, (time * self.speed - self.workers) / each))


def server_shares(
    places: Sequence[tuple[str, int, int]], speeds: Sequence[float], summed: bool = False
) -> list[int] | None:
    """Turns of each server in a cycle, by rank; None: all have the same.

    `places` holds role, rank and host; `speeds` those of the hosts' links, in any unit. `summed`: a
    host's workers are, before anything leaves it.
    """
    parts = _parts(_hosts(places, speeds, summed))
    cycles = (_turns(parts, length) for length in range(1, TURNS_EACH * len(parts) + 1))
    turns = next(cycle for cycle in cycles if _is_close(cycle, parts))
    return None if len(set(turns)) == 1 else turns


def least_time(places: Sequence[tuple[str, int, int]], speeds: Sequence[float]) -> float:
    """Of an iteration with gradients of 1, with the best shares: what the links alone need."""
    return _least_time(_hosts(places, speeds))


def _hosts(
    places: Sequence[tuple[str, int, int]], speeds: Sequence[float], summed: bool = False
) -> list[HostLoad]:
    workers = [at for role, _, at in places if role == "worker"]
    return [
        HostLoad(
            speed,
            min(workers.count(number), 1) if summed else workers.count(number),
            tuple(rank for role, rank, at in places if role == "server" and at == number),
        )
        for number, speed in enumerate(speeds)
    ]


def _least_time(hosts: Sequence[HostLoad]) -> float:
    workers = sum(host.workers for host in hosts)
    slowest = max(host.time(0.0, workers) for host in hosts)
    longest = max(host.time(1.0, workers) for host in hosts)
    return _least(
        lambda time: sum(host.most(time, workers) for host in hosts) >= 1,
        slowest,
        max(slowest, longest),
    )


def _parts(hosts: Sequence[HostLoad]) -> list[float]:
    """Of each server: as even as may be while no host takes longer than the slowest must."""
    workers = sum(host.workers for host in hosts)
    time = _least_time(hosts)
    most = {host: host.most(time, workers) for host in hosts}

    def of(host: HostLoad, level: float) -> float:
        return min(most[host], level * len(host.servers))

    level = _least(lambda level: sum(of(host, level) for host in hosts) >= 1, 0.0, 1.0)
    by_rank = {rank: of(h, level) / len(h.servers) for h in hosts for rank in h.servers}
    total = sum(by_rank.values())
    return [by_rank[rank] / total for rank in sorted(by_rank)]


def _least(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The least number for which it holds, as it does for all above and for `high`."""
    if holds(low):
        return low
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _turns(parts: Sequence[float], length: int) -> list[int]:
    """`length` turns, the largest remainders rounded up."""
    turns = [int(part * length) for part in parts]
    left = sorted(range(len(parts)), key=lambda s: (turns[s] - parts[s] * length, s))
    for server in left[: length - sum(turns)]:
        turns[server] += 1
    return turns


def _is_close(turns: Sequence[int], parts: Sequence[float]) -> bool:
    length = sum(turns)
    longest = length == TURNS_EACH * len(parts)
    return longest or all(abs(n / length - part) <= ROUNDED * part for n, part in zip(turns, parts))
