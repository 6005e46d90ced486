"""Connections with windows, processes that take their time, servers on the workers' hosts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pslite_ext.forecast.model import Job, Layer, ModelError, predict
from pslite_ext.forecast.simulate import Cluster, SimulatedJob, Simulation, simulate
from pslite_ext.forecast.simulate.scheme import SCHEMES
from tests.unit.forecast.test_simulate import EXACT, ONE, iteration, jobs

LARGE = Job((Layer("large", 64e3, bp_s=1, fp_s=1),))


def run(policy: str = "mercury", job: Job = LARGE) -> SimulatedJob:
    return SimulatedJob(job, policy)


def deepest(done: Simulation) -> float:
    return max(link.queue_bytes for link in done.links)


@pytest.mark.parametrize(("window", "at_once"), [(100, 1), (250, 3)])
def test_a_window_and_its_round_trip_bound_a_connection(window: float, at_once: int) -> None:
    # Packets of 100 bytes that take 0.1 s out and 0.1 s in, and whose word takes 0.4 s each way.
    cluster = Cluster.even(1, 1, 1000.0, packet_bytes=100, latency_s=0.4, window_bytes=window)
    # Backward until 1. One (three) under way: each (three) need a round trip of 1 s; the last
    # arrives 0.6 s after it left (0.2 s later as the third of three).
    turns = -(-10 // at_once)
    in_last = 10 - at_once * (turns - 1)
    pushed = 1 + (turns - 1) * 1.0 + 0.6 + 0.1 * (in_last - 1)
    line = simulate(run(job=ONE), cluster).outcomes[0].timeline()
    assert line.push_end[0] == pytest.approx(pushed)


@settings(max_examples=40, deadline=None)
@given(
    jobs,
    st.sampled_from(sorted(SCHEMES)),
    st.integers(1, 4),
    st.integers(1, 3),
    st.floats(1, 500),
    st.floats(0, 0.01),
    st.booleans(),
)
def test_windows_lose_and_hold_up_nothing_for_ever(
    job: Job,
    policy: str,
    workers: int,
    servers: int,
    window: float,
    reaction: float,
    beside: bool,
) -> None:
    beside = beside and servers <= workers
    cluster = Cluster.even(
        workers,
        servers,
        1000.0,
        packet_bytes=64.0,
        sharing="fifo",
        window_bytes=window,
        reaction_s=reaction,
        beside=beside,
    )
    done = simulate(SimulatedJob(job, policy, EXACT, iterations=2), cluster)
    size = 2 * float(job.bytes.sum())
    assert done.outcomes[0].pushed_bytes == pytest.approx(workers * size)
    assert done.outcomes[0].pulled_bytes == pytest.approx(workers * size)
    if not beside:
        carried = sum(link.bytes for link in done.links if link.name.startswith("into server"))
        assert carried == pytest.approx(workers * size)
    # What waits before a link is under way on one of the connections that use it.
    links = max(workers, servers) * (2 if beside else 1)
    assert deepest(done) <= links * (window + 64)


def test_equal_windows_come_near_the_floor_where_deep_queues_do_not() -> None:
    """All to all: what is under way decides how unequally flows progress."""
    floor = predict(LARGE, 1e4, "mercury").iteration_s
    took = {
        packets: iteration(
            run(),
            Cluster.even(8, 8, 1e4, packet_bytes=100, sharing="fifo", window_bytes=100 * packets),
        )
        for packets in (3, 80)
    }
    assert took[3] < 1.05 * floor
    assert took[80] > took[3]


def test_a_process_that_takes_its_time_needs_a_larger_window() -> None:
    known = {"packet_bytes": 100, "sharing": "fifo", "reaction_s": 0.05}
    narrow, wide, prompt = (
        iteration(run(), Cluster.even(4, 4, 1e4, window_bytes=window, **{**known, **more}))
        for window, more in ((300, {}), (1600, {}), (300, {"reaction_s": 0}))
    )
    assert prompt < wide < narrow


def test_a_reaction_is_waited_for_at_each_end() -> None:
    def late(reaction_s: float) -> float:
        cluster = Cluster.even(1, 1, 1000.0, packet_bytes=1000, reaction_s=reaction_s)
        return iteration(SimulatedJob(ONE), cluster) - 6  # without, by hand

    assert late(0.0) == pytest.approx(0)
    assert late(0.5) > 0
    assert late(1.0) == pytest.approx(2 * late(0.5))  # the same draws


def test_beside_a_link_carries_what_a_rings_does() -> None:
    known = {"packet_bytes": 100, "sharing": "fifo", "window_bytes": 300}
    done = simulate(run(), Cluster.even(4, 4, 1e4, beside=True, **known))
    assert len(done.links) == 8
    for link in done.links:
        assert link.bytes == pytest.approx(2 * 3 / 4 * LARGE.bytes.sum())


@pytest.mark.parametrize(
    ("known", "says"),
    [
        ({"window_bytes": 0}, "window_bytes must be"),
        ({"reaction_s": -1}, "reaction_s must be"),
        ({"beside": True}, "need window_bytes"),
        (
            {"beside": True, "window_bytes": 9, "server_rates": (2.0,)},
            "have their hosts' rates",
        ),
        ({"beside": True, "window_bytes": 9, "server_rates": (1.0, 1.0)}, "need a host each"),
        ({"window_bytes": 9, "aggregate": "switch"}, "sums on servers"),
    ],
)
def test_bad_input_is_named(known: dict[str, object], says: str) -> None:
    every: dict[str, object] = {"worker_rates": (1.0,), "server_rates": (1.0,), **known}
    with pytest.raises(ModelError, match=says):
        Cluster(**every)  # type: ignore[arg-type]
