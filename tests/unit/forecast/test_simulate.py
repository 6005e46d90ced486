"""The simulator against the formulas, against itself, and by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pslite_ext.forecast.model import Job, Layer, ModelError, Options, predict
from pslite_ext.forecast.simulate import Cluster, SimulatedJob, Simulation, simulate
from pslite_ext.forecast.simulate.layout import Layout
from pslite_ext.forecast.simulate.scheme import SCHEMES, scheme
from tests.unit.forecast.test_model_equations import JOB

seconds = st.floats(0.01, 2.0)
backward = st.one_of(st.just(0.0), seconds)  # 0: ready together with the next layer
layers = st.builds(
    Layer, st.just("l"), st.one_of(st.just(0.0), st.floats(1, 1e3)), backward, seconds, seconds
)
jobs = st.lists(layers, min_size=1, max_size=5).map(lambda made: Job(tuple(made)))
BIG = Job((Layer("big", 1e9, 1, 1),))
EXACT = Options(serial_pull=True, partition_bytes=500, credit_bytes=1000)


def closed_form(job: Job, policy: str, options: Options, **more: object) -> float:
    known: dict[str, object] = {**vars(options), **more}
    return predict(job, 1000, policy, **known).iteration_s


@pytest.mark.parametrize("policy", sorted(SCHEMES))
@pytest.mark.parametrize(("latency", "startup"), [(0.0, 0.0), (0.01, 0.0), (0.01, 0.3)])
def test_small_packets_approach_the_closed_form(
    policy: str, latency: float, startup: float
) -> None:
    sizes = {"partition_bytes": 1000, "credit_bytes": 2000, "serial_pull": True}
    options = Options.of({"latency_s": latency, "startup_s": startup, **sizes})
    first = Layer("first", 1000, bp_s=2.3, fp_s=1)  # no tie: it becomes ready while third is sent
    job = Job((first, *JOB.layers[1:]))
    exact = predict(job, 1000, policy, **vars(options))
    for packet in (8, 2, 0.5):
        cluster = Cluster.even(2, 2, 1000.0, latency_s=latency, packet_bytes=packet)
        line = simulate(SimulatedJob(job, policy, options), cluster).outcomes[0].timeline()
        # In proportion to the packet: a copy for each of two workers at each of two hops, one on
        # the link for every more urgent layer, and all again for each piece a window waits for.
        late = (line.pull_end - exact.pull_end) / (packet / 1000)
        assert -0.01 <= late.min() <= late.max() <= (8 if SCHEMES[policy].streams else 20)
        np.testing.assert_allclose(line.bp_end, exact.bp_end)


@settings(max_examples=60, deadline=None)
@given(jobs, st.sampled_from(["mercury", "fifo", "wfbp", "byteps"]))
@example(Job((Layer("small", 100, 0, 1), Layer("large", 1000, 1, 1))), "byteps")
def test_any_job_approaches_the_closed_form(job: Job, policy: str) -> None:
    options = replace(EXACT, credit_bytes=None)
    run = SimulatedJob(job, policy, options)
    # Of two servers one may be a packet ahead, and answer a short tensor before a whole long one.
    nodes = 2 if SCHEMES[policy].streams else 1
    simulated = simulate(run, Cluster.even(nodes, nodes, 1000.0, packet_bytes=5.0))
    exact = closed_form(job, policy, options)
    # A packet is held up once per more urgent layer, and by the other worker's, twice.
    assert exact - 1e-9 <= simulated.outcomes[0].iteration_s.max()
    assert simulated.outcomes[0].iteration_s.max() <= exact + (len(job) + 8) * 0.005


@settings(max_examples=40, deadline=None)
@given(
    jobs,
    st.sampled_from(sorted(SCHEMES)),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from(["server", "rack", "switch"]),
    st.sampled_from(["priority", "fair", "fifo"]),
)
def test_bytes_are_conserved(
    job: Job, policy: str, workers: int, servers: int, aggregate: str, sharing: str
) -> None:
    if aggregate != "server" and not SCHEMES[policy].streams:
        return
    cluster = Cluster.even(
        workers,
        servers,
        1000.0,
        packet_bytes=64.0,
        aggregate=aggregate,
        sharing=sharing,
        racks=[worker % 2 for worker in range(workers)],
        rack_rate=2000.0,
    )
    done = simulate(SimulatedJob(job, policy, EXACT, iterations=2), cluster)
    size = 2 * float(job.bytes.sum())
    assert done.outcomes[0].pushed_bytes == pytest.approx(workers * size)
    assert done.outcomes[0].pulled_bytes == pytest.approx(workers * size)
    racks = min(workers, 2)
    copies = {"server": workers, "rack": racks, "switch": 0}[aggregate]
    for kind, count in [
        ("out of worker", workers),
        ("into worker", workers),
        ("into server", copies),
        ("out of server", copies),
        ("out of rack", copies),
        ("into rack", copies),
    ]:
        carried = sum(link.bytes for link in done.links if link.name.startswith(kind))
        assert carried == pytest.approx(count * size), kind
    assert all(link.busy_s <= done.end_s * (1 + 1e-9) for link in done.links)
    assert not np.isnan(done.outcomes[0].iteration_s).any()


@settings(max_examples=30, deadline=None)
@given(
    jobs,
    st.sampled_from(["mercury", "fifo", "wfbp", "byteps"]),
    st.integers(1, 6),
    st.integers(1, 4),
    st.floats(0, 0.1),
)
def test_one_worker_stands_for_all_that_are_alike(
    job: Job, policy: str, workers: int, servers: int, latency: float
) -> None:
    how = {"packet_bytes": 20.0, "latency_s": latency}
    run = SimulatedJob(job, policy, Options(partition_bytes=500))  # without a window
    all_of_them = simulate(run, Cluster.even(workers, servers, 1000.0, **how))
    one = simulate(run, Cluster.alike(workers, servers, 1000.0, **how))
    longest = all_of_them.outcomes[0].iteration_s.max()
    spread = workers * 20 / 1000 * (len(job) + 4)
    assert one.outcomes[0].iteration_s.max() == pytest.approx(longest, abs=spread)


def iteration(run: SimulatedJob, cluster: Cluster) -> float:
    return float(simulate(run, cluster).outcomes[0].iteration_s.max())


ONE = Job((Layer("only", 1000, bp_s=1, fp_s=1),))


def test_one_packet_by_hand() -> None:
    # Backward 1, out 1, in 1, back out 1, in 1, twice the latency, forward 1.
    cluster = Cluster.even(1, 1, 1000.0, packet_bytes=1000, latency_s=0.25)
    assert iteration(SimulatedJob(ONE), cluster) == pytest.approx(6.5)
    # Two workers: the server's link takes the second copy a second later, each way.
    cluster = Cluster.even(2, 1, 1000.0, packet_bytes=1000)
    assert iteration(SimulatedJob(ONE), cluster) == pytest.approx(8)
    # Classic: confirmation and request are two latencies more.
    cluster = Cluster.even(1, 1, 1000.0, packet_bytes=1000, latency_s=0.25)
    assert iteration(SimulatedJob(ONE, "wfbp"), cluster) == pytest.approx(7)


def test_a_switch_saves_the_way_to_the_server() -> None:
    cluster = Cluster.even(4, 0, 1000.0, packet_bytes=1000, aggregate="switch")
    assert iteration(SimulatedJob(ONE), cluster) == pytest.approx(4)


def test_racks_by_hand() -> None:
    # Four workers in two racks, each rack's link of 500 bytes/s, one server of 1000.
    racks = {"racks": (0, 0, 1, 1), "rack_rate": 500.0, "packet_bytes": 1000.0}
    # Backward 1, out 1; a rack's two copies 2 s each until 4 and 6, into the server 1 each: 5, 6,
    # 7, 8. Back: copies leave at 9, 10, 11, 12; rack 0 takes 9..11, 11..13, rack 1 11..13, 13..15;
    # into the worker until 16, forward 17.
    assert iteration(SimulatedJob(ONE), Cluster.even(4, 1, 1000.0, **racks)) == pytest.approx(17)
    # Summed in the racks: one copy each, 2..4; the server's link 5, 6; out 7, 8; rack 1 8..10;
    # into the workers 11, forward 12.
    racks["aggregate"] = "rack"
    assert iteration(SimulatedJob(ONE), Cluster.even(4, 1, 1000.0, **racks)) == pytest.approx(12)


def test_a_rack_s_link_carries_what_its_workers_can() -> None:
    rates = (100.0, ((0.0, 1000.0), (1.5, 50.0)), 300.0)
    whole, of_two = (
        simulate(SimulatedJob(ONE), Cluster(rates, (1e6,), racks=(0, 0, 1), rack_rate=rate)).links[
            -4:
        ]
        for rate in (None, ((0.0, 1100.0), (1.5, 150.0)))
    )
    assert [link.name for link in whole[::2]] == ["out of rack 0", "into rack 0"]
    assert whole[::2] == of_two[::2]
    assert whole[1].busy_s == pytest.approx(1000 / 300)


def test_rates_that_change() -> None:
    # The worker's links: 1000 bytes/s until 1.5, 100 until 3.5, 400 on: 500 + 200 + 300 bytes.
    rate = ((0.0, 1000.0), (1.5, 100.0), (3.5, 400.0))
    cluster = Cluster((rate,), (1e12,), packet_bytes=1000)
    # Backward until 1, out until 4.25, back in at 400 bytes/s until 6.75, forward until 7.75.
    assert iteration(SimulatedJob(ONE), cluster) == pytest.approx(7.75)


def test_a_slow_worker_holds_up_all() -> None:
    cluster = Cluster.even(3, 3, 1e9)
    done = simulate(SimulatedJob(ONE, slowness=(1, 1, 3)), cluster).outcomes[0]
    assert done.iteration_s[0] == pytest.approx([4, 4, 6], abs=1e-4)
    assert done.timeline(2).oracle_s == pytest.approx(6)


@settings(max_examples=60, deadline=None)
@given(
    jobs,
    st.sampled_from(sorted(SCHEMES)),
    st.lists(st.floats(0.2, 5.0), min_size=2, max_size=3),
    st.integers(0, 5),
)
def test_workers_out_of_step_do_not_wait_for_each_other_for_ever(
    job: Job, policy: str, slowness: list[float], seed: int
) -> None:
    """One has its window full of what another, whose window is full too, has not sent."""
    run = SimulatedJob(job, policy, EXACT, iterations=3, slowness=slowness, jitter=0.3, seed=seed)
    cluster = Cluster.even(len(slowness), 2, 1000.0, packet_bytes=64.0, latency_s=0.01)
    done = simulate(run, cluster).outcomes[0]
    assert (done.iteration_s.max(axis=0) > 0).all()
    assert done.pushed_bytes == pytest.approx(3 * len(slowness) * float(job.bytes.sum()))


def test_jitter_is_drawn_from_the_seed() -> None:
    cluster = Cluster.even(2, 2, 1e6)

    def times(seed: int) -> list[float]:
        run = SimulatedJob(JOB, jitter=0.2, seed=seed, iterations=3)
        return [float(value) for value in simulate(run, cluster).outcomes[0].iteration_s.ravel()]

    assert times(1) == times(1) != times(2)


def two_jobs(sharing: str) -> Simulation:
    cluster = Cluster((1000.0, 1000.0), (1000.0,), packet_bytes=10, sharing=sharing)
    jobs = [SimulatedJob(ONE, workers=[0]), SimulatedJob(ONE, workers=[1])]
    return simulate(jobs, cluster)


@pytest.mark.parametrize("sharing", ["fair", "fifo", "priority"])
def test_two_jobs_share_a_server(sharing: str) -> None:
    # Each sends at full speed; the server's link takes turns: both are in at 3, instead of 2.
    ends = [float(outcome.iteration_s[0, 0]) for outcome in two_jobs(sharing).outcomes]
    assert ends == pytest.approx([4, 4], abs=0.1)


def test_fair_sharing_gives_each_flow_its_part() -> None:
    # Worker 0 sends 3000 bytes, worker 1 1000: fair, the short one is through at half speed.
    long = Job((Layer("long", 3000, bp_s=1, fp_s=0),))
    cluster = Cluster((3000.0, 1000.0), (1000.0,), packet_bytes=10, sharing="fair")
    runs = [SimulatedJob(long, workers=[0]), SimulatedJob(ONE, workers=[1])]
    done = simulate(runs, cluster)
    assert done.outcomes[1].times[2, 0, 0] == pytest.approx(3, abs=0.05)
    assert done.outcomes[0].times[2, 0, 0] == pytest.approx(5, abs=0.05)


def test_whole_tensors_on_one_server_each_are_unbalanced() -> None:
    job = Job((Layer("big", 3000, 1, 1), Layer("small", 1000, 1, 1)))
    striped = Cluster.even(2, 2, 1000.0, packet_bytes=50)
    whole = Cluster.even(2, 2, 1000.0, packet_bytes=50, placement="whole")
    assert iteration(SimulatedJob(job), whole) > iteration(SimulatedJob(job), striped) + 2


@pytest.mark.parametrize("policy", sorted(SCHEMES))
def test_recorded_shares_are_cut_as_whole_tensors_are(policy: str) -> None:
    job = Job((Layer("a", 1200, 1, 1), Layer("none", 0, 1, 1), Layer("b", 400, 1, 1)))
    cuts = scheme(policy, EXACT)
    alone = [[(0, layer.bytes)] for layer in job.layers]
    assert Layout.of(job, cuts, 90, 1, shares=alone) == Layout.of(job, cuts, 90, 1)
    on_two = Layout.of(job, cuts, 1000, 2, shares=[[(0, 700), (1, 500)], [], [(1, 400)]])
    if cuts.piece_bytes is None:  # what is not cut is one piece on both
        assert [list(packets) for packets in on_two.packets] == [[0, 1], [2]]
    else:
        assert on_two.packet_size == [500, 500, 200, 400]
        assert on_two.packet_server == [0, 1, 0, 1]
        assert [list(packets) for packets in on_two.packets] == [[0], [1], [2], [3]]


def test_overheads_of_a_server_are_added() -> None:
    # From the trace: the update after the last copy, the search before the answer.
    cluster = Cluster.even(1, 1, 1000.0, packet_bytes=1000)
    run = SimulatedJob(ONE, "wfbp", update_s=(0.5,), search_s=(0.25,))
    assert iteration(run, cluster) == pytest.approx(6.75)


@pytest.mark.parametrize(
    ("cluster", "run", "says"),
    [
        ({"worker_rates": ()}, {}, "at least one worker"),
        ({"server_rates": ()}, {}, "at least one server"),
        ({"worker_rates": (0.0,)}, {}, "a link's rate must be a finite number > 0"),
        ({"worker_rates": (((1.0, 5.0),),)}, {}, "begin at time 0"),
        ({"worker_rates": (((0.0, 5.0), (0.0, 6.0)),)}, {}, "begin later than the one before"),
        ({"packet_bytes": 0}, {}, "packet_bytes must be"),
        ({"latency_s": -1}, {}, "latency_s must be"),
        ({"sharing": "lottery"}, {}, "sharing must be one of"),
        ({"aggregate": "rack"}, {}, "needs to know the rack"),
        ({"racks": (0, 1)}, {}, "2 racks are given for 1 workers"),
        ({}, {"policy": "prophet"}, "'prophet' cannot be simulated"),
        ({}, {"workers": [0, 0]}, "must be different ones of 0..0"),
        ({}, {"workers": [1]}, "must be different ones of 0..0"),
        ({}, {"iterations": 0}, "at least one iteration"),
        ({}, {"slowness": (0,)}, "slowness must be a finite number > 0"),
        ({}, {"slowness": (1, 1)}, "slowness has 2 values, not 1"),
        ({}, {"jitter": 1000}, "jitter must be at most 10"),
        ({"latency_s": 1e308}, {}, "longer than can be counted"),
        ({}, {"update_s": (-1,)}, "update_s must be"),
        ({}, {"ready_s": np.ones((1, 1, 2))}, "ready_s must be iterations x workers x layers"),
        ({}, {"ready_s": -np.ones((1, 1, 1))}, "ready_s must hold finite numbers"),
        ({}, {"shares": []}, "shares has 0 values, not 1"),
        ({}, {"shares": [[(1, 5.0)]]}, "on a server that is not there"),
        ({"aggregate": "switch"}, {"policy": "wfbp"}, "keeps its sums on servers"),
    ],
)
def test_bad_input_is_named(cluster: dict[str, object], run: dict[str, object], says: str) -> None:
    known: dict[str, object] = {"worker_rates": (1.0,), "server_rates": (1.0,), **cluster}
    with pytest.raises(ModelError, match=says):
        simulate(SimulatedJob(ONE, **run), Cluster(**known))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("job", "limit", "says"),
    [
        (SimulatedJob(BIG), 80_000, "2e+04 packets are too many to simulate, at most 20,000 are"),
        (SimulatedJob(BIG, iterations=9), 700_000, "1.8e+05 packets are too many"),
        (SimulatedJob(BIG, "p3", Options(partition_bytes=0.001)), 90_000, "1e+12 packets"),
        (SimulatedJob(BIG), 90_000, "more than 90000 events"),  # found out on the way
    ],
)
def test_a_limit_on_events(job: SimulatedJob, limit: int, says: str) -> None:
    cluster = Cluster.even(1, 1, 1e9, latency_s=0.001, packet_bytes=5e4)
    with pytest.raises(ModelError, match="use larger packets") as raised:
        simulate(job, cluster, limit)
    assert says in str(raised.value)


def test_no_job_at_all() -> None:
    with pytest.raises(ModelError, match="no job"):
        simulate([], Cluster.even(1, 1, 1.0))


def test_the_policy_priority_is_the_models_mercury() -> None:
    cluster = Cluster.even(2, 2, 1.0)
    by = [
        simulate(SimulatedJob(ONE, name), cluster).outcomes[0] for name in ("mercury", "priority")
    ]
    assert (by[0].iteration_s == by[1].iteration_s).all()
    assert predict(ONE, 1.0, "priority").iteration_s == predict(ONE, 1.0, "mercury").iteration_s


@pytest.mark.parametrize("window", [None, 50.0])
@pytest.mark.parametrize("policy", ["mercury", "fifo", "wfbp"])
def test_a_job_s_many_tensors_do_not_wait_for_another_s_few(
    policy: str, window: float | None
) -> None:
    """Numbers of tensors do not compare: the large job's are all smaller than most of the other's.

    The large job always has something to send. A link carries half as much for the other then.
    """
    large = Job((Layer("all", 20_000.0, 0.01, 0.01),))
    small = Job(tuple(Layer(f"{n}", 100.0, 0.01, 0.01) for n in range(10)))
    cluster = Cluster.even(1, 1, 1000.0, packet_bytes=5.0, window_bytes=window)
    runs = [SimulatedJob(large, policy, iterations=2), SimulatedJob(small, policy, iterations=5)]
    beside = simulate(runs, cluster).outcomes[1].iteration_s.max()
    alone = simulate(runs[1], cluster).outcomes[0].iteration_s.max()
    assert 1.3 * alone < beside < 2.2 * alone
