"""Which part each server gets where links differ, against all there are."""

from __future__ import annotations

import itertools
import random

import pytest

from pslite_ext.launch.shares import HostLoad, server_shares
from pslite_ext.launch.tasks import places

Places = list[tuple[str, int, int]]


def time_of(where: Places, speeds: list[float], shares: list[int], summed: bool) -> float:
    """Of an iteration: the slowest link's, counted byte by byte."""
    total = sum(shares)
    out = [0.0] * len(speeds)
    if summed:  # each host sends one copy
        hosts = {host for role, _, host in where if role == "worker"}
        where = [p for p in where if p[0] == "server"] + [("worker", h, h) for h in hosts]
    for (_, _, worker_at), (_, server, server_at) in itertools.product(
        [p for p in where if p[0] == "worker"], [p for p in where if p[0] == "server"]
    ):
        if worker_at != server_at:
            out[worker_at] += shares[server] / total
            out[server_at] += shares[server] / total
    return max(sent / speed for sent, speed in zip(out, speeds))


def best(where: Places, speeds: list[float], servers: int, summed: bool) -> float:
    every = (list(shares) for shares in itertools.product(range(13), repeat=servers))
    return min(time_of(where, speeds, shares, summed) for shares in every if sum(shares) == 12)


@pytest.mark.parametrize("seed", range(30))
def test_no_shares_are_much_better(seed: int) -> None:
    draw = random.Random(seed)
    workers = draw.randint(1, 5)
    servers = draw.choice([None, 2, 3, 4])
    hosts = draw.randint(1, 6)
    speeds = [draw.choice([1.0, 1.0, 2.5, 10.0, 0.5]) for _ in range(hosts)]
    where = places(workers, servers, hosts)
    count = sum(role == "server" for role, _, _ in where)
    summed = draw.random() < 0.5
    shares = server_shares(where, speeds, summed) or [1] * count
    assert len(shares) == count
    assert sum(shares) <= 16 * count
    least = best(where, speeds, count, summed)
    assert time_of(where, speeds, shares, summed) <= 1.1 * least + 1e-9


def test_by_hand() -> None:
    four = places(4, None, 4)
    assert server_shares(four, [1, 1, 1, 1]) is None
    assert server_shares(four, [1, 1, 1, 0.5]) == [1, 1, 1, 0]
    own = places(4, 4, 8)
    assert server_shares(own, [1, 1, 1, 0.5, 1, 1, 1, 1]) == [2, 2, 2, 1]
    # A slow worker's own gradients take longest, whatever servers do.
    assert server_shares(own, [1, 1, 1, 1, 0.5, 1, 1, 1]) is None
    # Two hosts send as much either way.
    assert server_shares(places(2, None, 2), [1, 0.5]) is None


def test_parts_are_even_where_no_link_is_the_worse_for_it() -> None:
    shares = server_shares(places(6, None, 6), [10, 10, 10, 10, 10, 1])
    assert shares == [1, 1, 1, 1, 1, 0]


def test_a_host_s_time_is_that_of_its_link() -> None:
    host = HostLoad(2.0, 1, (0,))
    assert host.time(0.0, 4) == 0.5
    assert host.time(0.5, 4) == 1.0
    assert host.most(1.0, 4) == 0.5
