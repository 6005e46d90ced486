"""What holds for every job: Theorem 1, the optimum, monotony, the vectorised sweeps."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pslite_ext.forecast.model import (
    POLICIES,
    Job,
    Layer,
    ModelError,
    Options,
    predict,
    required_bandwidth,
    sweep,
)
from pslite_ext.forecast.model.job import Array
from pslite_ext.forecast.model.job_file import find_job
from pslite_ext.forecast.model.predict import transfers
from pslite_ext.forecast.model.timeline import Transfers
from tests.unit.forecast.test_model_equations import JOB

seconds = st.one_of(st.just(0.0), st.floats(1e-4, 2.0))
layers = st.builds(
    Layer, st.just("layer"), st.one_of(st.just(0.0), st.floats(1, 1e4)), seconds, seconds, seconds
)
jobs = st.lists(layers, min_size=1, max_size=12).map(lambda made: Job(tuple(made)))
bandwidths = st.floats(10, 1e6)
policies = st.sampled_from(sorted(POLICIES))
EASE = 1 + 1e-9


@settings(max_examples=60, deadline=None)
@given(jobs, bandwidths, st.floats(100, 1e4), st.floats(0, 0.1))
def test_nothing_beats_mercury_but_no_network(
    job: Job, bandwidth: float, partition: float, startup: float
) -> None:
    mercury = predict(job, bandwidth, "mercury").iteration_s
    assert predict(job, bandwidth, "oracle").iteration_s == pytest.approx(job.compute_s)
    assert job.compute_s <= mercury * EASE
    for policy in sorted({*POLICIES} - {"oracle"}):
        other = predict(
            job, bandwidth, policy, partition_bytes=partition, startup_s=startup
        ).iteration_s
        assert mercury <= other * EASE, policy


def test_what_is_sent_as_less_takes_less() -> None:
    job = Job((Layer("large", 4 << 20, 0.01, 0.01), Layer("small", 40, 0.01, 0.01)))
    assert [*job.on_wire("float32").bytes] == [4 << 20, 40]
    assert [*job.on_wire("bf16").bytes] == [*job.on_wire("fp16").bytes] == [2 << 20, 20]
    assert [*job.on_wire("int8").bytes] == [(1 << 20) * 66 / 64, 20]
    with pytest.raises(ModelError, match="wire must be one of float32, bf16, fp16, int8, not 'b'"):
        job.on_wire("b")


@settings(max_examples=100, deadline=None)
@given(jobs, bandwidths, policies)
def test_the_order_of_events_in_a_timeline(job: Job, bandwidth: float, policy: str) -> None:
    line = predict(job, bandwidth, policy, partition_bytes=1000, bucket_bytes=2000)
    for earlier, later in [
        (job.bp_end, line.push_start),
        (line.push_start, line.push_end),
        (line.push_end, line.pull_end),
        (line.pull_end + job.after_pull_s, line.fp_end),
    ]:
        assert (earlier <= later * EASE).all()
    assert (np.diff(line.fp_end) >= -1e-12).all()


@settings(max_examples=100, deadline=None)
@given(jobs, bandwidths, policies)
def test_the_link_carries_every_byte_and_no_more(job: Job, bandwidth: float, policy: str) -> None:
    """In every interval, what was pushed within it fits through the link."""
    if policy == "oracle":
        return
    line = predict(job, bandwidth, policy, partition_bytes=1000, bucket_bytes=2000)
    for begin in {*line.push_start}:
        for end in {*line.push_end}:
            if end <= begin:
                continue
            inside = (line.push_start >= begin) & (line.push_end <= end)
            assert job.bytes[inside].sum() <= (end - begin) * bandwidth + 1e-6 * job.bytes.sum()
    if policy != "ring":
        took = line.push_end - line.push_start
        assert (took * EASE + 1e-9 >= job.bytes / bandwidth).all()


# Without a credit, byteps hands pieces on in an order that the bandwidth has no part in.
MONOTONE: list[tuple[str, dict[str, object]]] = [
    ("mercury", {}),
    ("fifo", {}),
    ("fifo", {"packet_bytes": 500.0}),
    ("wfbp", {}),
    ("wfbp", {"serial_pull": True}),
    ("ring", {"bucket_bytes": 2000.0}),
    ("byteps", {"partition_bytes": 500.0}),
    ("prophet", {}),
    ("prophet", {"partition_bytes": 500.0}),
]


@settings(max_examples=150, deadline=None)
@given(jobs, bandwidths, st.floats(1, 10), st.sampled_from(MONOTONE), st.floats(0, 0.1))
def test_more_bandwidth_never_hurts(
    job: Job, slow: float, more: float, policy: tuple[str, dict[str, object]], startup: float
) -> None:
    name, sizes = policy
    options: dict[str, object] = {**sizes, "startup_s": startup, "latency_s": startup / 3}
    slower, faster = (predict(job, rate, name, **options) for rate in (slow, slow * more))
    assert (faster.push_end <= slower.push_end * EASE).all()
    assert (faster.pull_end <= slower.pull_end * EASE).all()


# A bucket of ring, too, is the sooner full the more there is in it.
NO_BUCKETS = [(name, sizes) for name, sizes in MONOTONE if name != "ring"]
PIECE = Job((Layer("of one piece", 500, 1, 1),))


@settings(max_examples=150, deadline=None)
@given(jobs, st.integers(0, 11), st.floats(1, 1e3), bandwidths, st.sampled_from(NO_BUCKETS))
@example(PIECE, 0, 1.0, 1000.0, ("prophet", {"partition_bytes": 500.0}))
def test_more_bytes_never_help(
    job: Job, place: int, more: float, rate: float, policy: tuple[str, dict[str, object]]
) -> None:
    name, options = policy
    layers = list(job.layers)
    grown = layers.pop(place % len(job))
    layers.insert(place % len(job), replace(grown, bytes=grown.bytes + more))
    less, greater = (predict(one, rate, name, **options) for one in (job, Job(tuple(layers))))
    assert (less.pull_end <= greater.pull_end * EASE).all()


def held(policy: str, piece: float, pieces: int) -> tuple[dict[str, object], float]:
    """Options with which so many pieces may be on their way, and those pieces' bytes."""
    if policy == "mercury":
        return {"packet_bytes": piece}, piece
    if policy == "p3":
        return {"partition_bytes": piece}, piece
    return {"partition_bytes": piece, "credit_bytes": piece * pieces}, piece * pieces


NOT_MONOTONE = ("mercury", "p3", "bytescheduler", "byteps")  # in packets, slices, partitions


@settings(max_examples=200, deadline=None)
@given(
    jobs,
    bandwidths,
    st.floats(1, 10),
    st.sampled_from(NOT_MONOTONE),
    st.floats(100, 1e4),
    st.integers(1, 4),
)
def test_more_bandwidth_hurts_no_more_than_what_cannot_be_overtaken(
    job: Job, slow: float, more: float, policy: str, piece: float, pieces: int
) -> None:
    """Once pushing what is on its way, once pulling a piece: docs/model.md says why."""
    options, on_the_way = held(policy, piece, pieces)
    slower, faster = (predict(job, rate, policy, **options) for rate in (slow, slow * more))
    most = (on_the_way + piece) / (slow * more)
    assert faster.iteration_s <= (slower.iteration_s + most) * EASE


@pytest.mark.parametrize("policy", NOT_MONOTONE)
def test_more_bandwidth_may_hurt_who_cannot_preempt(policy: str) -> None:
    # Ready: third at 1, second at 2, first at 3; what waits for the first takes long.
    job = Job(
        (
            Layer("first", 100, bp_s=1, fp_s=10),
            Layer("second", 1000, bp_s=1, fp_s=0),
            Layer("third", 1000, bp_s=1, fp_s=0),
        )
    )
    options, _ = held(policy, 1000, 1)
    # At 500 bytes/s third is sent from 1 to 3, then the first at once; its sum is back at 5.2,
    # after the third's. At 600 third is through at 2.67, second just begins, and the first is
    # sent after it, at 4.33; its sum is back at 6.17, after theirs.
    slow, fast = (predict(job, rate, policy, **options) for rate in (500, 600))
    assert slow.push_end == pytest.approx([3.2, 5.2, 3])
    assert slow.iteration_s == pytest.approx(5.2 + 10)
    assert fast.push_end == pytest.approx([1 + 2100 / 600, 1 + 2000 / 600, 1 + 1000 / 600])
    assert fast.iteration_s == pytest.approx(1 + 3100 / 600 + 10)


@settings(max_examples=60, deadline=None)
@given(jobs, st.lists(bandwidths, min_size=1, max_size=8))
def test_many_bandwidths_at_once_are_the_same_as_one_by_one(job: Job, rates: list[float]) -> None:
    options: dict[str, object] = {"partition_bytes": 900, "startup_s": 0.01, "latency_s": 0.02}
    together = sweep(job, rates, POLICIES, **options)
    for policy in POLICIES:
        alone = [predict(job, rate, policy, **options).iteration_s for rate in rates]
        np.testing.assert_allclose(together.iteration_s[policy], alone, rtol=1e-12)


def test_of_many_layers_few_bandwidths_are_looked_at_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = sys.modules[required_bandwidth.__module__]  # `sweep` is the function, too
    asked: list[int] = []

    def counted(job: Job, rates: Array, policy: str, options: Options) -> Transfers:
        asked.append(len(rates))
        return transfers(job, rates, policy, options)

    rates = np.linspace(500, 2000, 10)
    whole = sweep(JOB, rates, ["fifo"]).iteration_s["fifo"]
    monkeypatch.setattr(module, "transfers", counted)
    monkeypatch.setattr(module, "CELLS", 4 * len(JOB))
    np.testing.assert_array_equal(sweep(JOB, rates, ["fifo"]).iteration_s["fifo"], whole)
    assert asked == [4, 4, 2]


@settings(max_examples=60, deadline=None)
@given(jobs, bandwidths)
def test_small_packets_approach_the_ideal(job: Job, bandwidth: float) -> None:
    ideal = predict(job, bandwidth, "mercury")
    packets = predict(job, bandwidth, "mercury", packet_bytes=50.0)
    # One packet on the wire may hold up each more urgent layer; and one goes back. (A single
    # layer may come in much later: held up, it can be overtaken by one that it just escaped.)
    late = packets.iteration_s - ideal.iteration_s
    assert -1e-9 <= late <= (len(job) + 2) * 50 / bandwidth + 1e-9


small = st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 2))


@settings(max_examples=200, deadline=None)
@given(st.lists(small, min_size=1, max_size=4))
def test_mercury_is_the_best_of_all_preemptive_schedules(
    layers: list[tuple[int, int, int]],
) -> None:
    job = Job(tuple(Layer("l", size, bp, fp) for size, bp, fp in layers))
    assert predict(job, 1.0, "mercury").iteration_s == pytest.approx(_optimum(job))


def _optimum(job: Job) -> float:
    """Every schedule of unit slots, idle ones too; with whole-numbered times that is all of them.

    An iteration lasts as long as the longest of: a layer's sum, then that layer's and all later
    layers' forward passes.
    """
    ready = [round(end) for end in job.bp_end]
    after = [float(job.after_pull_s[layer:].sum()) for layer in range(len(job))]
    empty: list[float] = [r + a for size, r, a in zip(job.bytes, ready, after) if size == 0]

    @cache
    def best(now: int, left: tuple[int, ...]) -> float:
        if not any(left):
            return 0.0
        options: list[float] = []
        for layer, size in enumerate(left):
            if size and ready[layer] <= now:
                rest = (*left[:layer], size - 1, *left[layer + 1 :])
                ended = now + 1 + after[layer] if size == 1 else 0.0
                options.append(max(ended, best(now + 1, rest)))
        if now < max(ready):
            options.append(best(now + 1, left))
        return min(options)

    sent = best(0, tuple(round(size) for size in job.bytes))
    return max([float(sent), job.compute_s, *empty])


@settings(max_examples=40, deadline=None)
@given(jobs, policies, st.one_of(st.floats(0.5, 0.99), st.floats(1e-9, 1e-6)))
def test_the_required_bandwidth_is_the_smallest_that_is_enough(
    job: Job, policy: str, target: float
) -> None:
    if job.compute_s == 0:
        return
    need = required_bandwidth(job, policy, target, partition_bytes=1000)
    assert predict(job, need * (1 + 1e-6), policy, partition_bytes=1000).speed > target
    if policy != "oracle" and job.bytes.sum() > 0:
        slower = predict(job, need * (1 - 1e-6), policy, partition_bytes=1000)
        assert slower.speed <= target * (1 + 2e-6)


@pytest.mark.parametrize(
    ("model", "steps", "policy", "target", "sizes"),
    [
        ("vgg16", None, "p3", 0.99, {"partition_bytes": 4e6}),
        ("resnet50", 13, "bytescheduler", 0.9, {}),
        ("resnet50", 4, "mercury", 0.99, {"packet_bytes": 1e6}),
    ],
)
def test_above_the_required_bandwidth_nothing_fails(
    model: str, steps: int | None, policy: str, target: float, sizes: dict[str, object]
) -> None:
    """There, the target is met and missed again many times, for less and less long."""
    job = find_job(model, steps=steps)
    above = required_bandwidth(job, policy, target, **sizes) * np.geomspace(1 + 1e-6, 4, 3000)
    assert (sweep(job, above, [policy], **sizes).speed(policy) > target).all()


def test_no_bandwidth_outweighs_latency() -> None:
    job = Job((Layer("a", 100, 1, 1),))
    assert required_bandwidth(job, "mercury", 0.99, latency_s=1) == float("inf")
