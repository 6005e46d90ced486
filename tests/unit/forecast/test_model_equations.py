"""Three layers by hand, for every policy: the numbers follow the formulas of docs/model.md."""

from __future__ import annotations

import numpy as np
import pytest

from pslite_ext.forecast.model import POLICIES, Job, Layer, Timeline, predict

# At 1000 bytes/s: transfers of 1, 2 and 3 s. Backward ends: layer 3 at 1, layer 2 at 2, layer 1
# at 4. After its sum a layer needs 0.5 s of update and 1 s of forward. Oracle: 4 + 3 * 1.5 = 8.5.
JOB = Job(
    (
        Layer("first", 1000, bp_s=2, fp_s=1, upd_s=0.5),
        Layer("second", 2000, bp_s=1, fp_s=1, upd_s=0.5),
        Layer("third", 3000, bp_s=1, fp_s=1, upd_s=0.5),
    )
)


def at(policy: str, **options: object) -> Timeline:
    return predict(JOB, 1000, policy, **options)


Columns = dict[str, list[float]]
SLICED: dict[str, object] = {"partition_bytes": 1000}
CREDIT: dict[str, object] = {**SLICED, "credit_bytes": 2000}
BUCKETS: dict[str, object] = {"bucket_bytes": 3000}
CASES: list[tuple[str, dict[str, object], Columns]] = [
    ("oracle", {}, {"bp_end": [4, 2, 1], "pull_end": [4, 2, 1], "fp_end": [5.5, 7, 8.5]}),
    # 3: 1..4, back at 7; 2: 4..6, back at 8; 1: 6..7, back at 8.
    ("wfbp", {}, {"push_start": [6, 4, 1], "push_end": [7, 6, 4]}),
    ("wfbp", {}, {"pull_end": [8, 8, 7], "fp_end": [9.5, 11, 12.5]}),
    # One pull at a time: the link back is busy with 3 until 7, with 2 until 9, with 1 until 10.
    ("wfbp", {"serial_pull": True}, {"pull_end": [10, 9, 7], "fp_end": [11.5, 13, 14.5]}),
    # Each push idles 1 s first: 1..5, 5..8, 8..10; a pull adds 4 hops of 0.25 s and its bytes.
    (
        "wfbp",
        {"latency_s": 0.25, "startup_s": 1},
        {"push_end": [10, 8, 5], "pull_end": [12, 11, 9]},
    ),
    ("fifo", {}, {"push_start": [6, 4, 1], "push_end": [7, 6, 4]}),
    ("fifo", {}, {"pull_end": [7, 6, 4], "fp_end": [8.5, 10, 11.5]}),
    # 3 from 1 to 2; 2 from 2 to 4, just done when 1 is ready: 1 from 4 to 5; the rest of 3 to 7.
    ("mercury", {}, {"push_start": [4, 2, 1], "push_end": [5, 4, 7]}),
    ("mercury", {}, {"pull_end": [5, 4, 7], "fp_end": [6.5, 8, 9.5]}),
    ("mercury", {"latency_s": 0.25}, {"pull_end": [5.5, 4.5, 7.5], "fp_end": [7, 8.5, 10]}),
    # 700 bytes: 3's second packet, begun at 1.7, holds layer 2 back until 2.4, 2's last (600)
    # layer 1 until 4.4. 1: 700 and 300, until 5.4; what is left of 3, 1600, until 7.
    # Back: 2's packets until 3.8, 4.5, 5.1, then 1's until 5.8, 6.1, then 3's until 6.8, 7.5, 7.7.
    (
        "mercury",
        {"packet_bytes": 700},
        {"push_start": [4.4, 2.4, 1], "push_end": [5.4, 4.4, 7], "pull_end": [6.1, 5.1, 7.7]},
    ),
    # Slices of 1000: 3 from 1 to 2; 2 from 2 to 4; 1 from 4 to 5; the rest of 3 to 7.
    # Each slice is back one slice later.
    ("p3", SLICED, {"push_start": [4, 2, 1], "push_end": [5, 4, 7]}),
    ("p3", SLICED, {"pull_end": [6, 5, 8], "fp_end": [7.5, 9, 10.5]}),
    # Stops and waits: a slice of 1000 takes 0.5 startup + 1, and 0.5 until its confirmation, before
    # the next: 3: 1.5..2.5; at 3 layer 2 is ready: 3.5..4.5; at 5 layer 1 is ready: 5.5..6.5;
    # at 7 the rest of 2: 7.5..8.5; then 3: 9.5..10.5, 11.5..12.5.
    (
        "p3",
        {**SLICED, "startup_s": 0.5, "latency_s": 0.25},
        {"push_start": [5.5, 3.5, 1.5], "push_end": [6.5, 8.5, 12.5], "pull_end": [8, 10, 14]},
    ),
    # The credit delays the urgent. Two slices of 1000 on their way: at 1, two of 3 are handed on
    # (1..2, 2..3). At 2 a slice of layer 2 follows (3..4), at 3 its other (4..5): layer 1, ready at
    # 4, begins at 5 and ends at 6; the last of 3 at 7.
    ("bytescheduler", CREDIT, {"push_start": [5, 3, 1], "push_end": [6, 5, 7]}),
    ("bytescheduler", CREDIT, {"pull_end": [7, 6, 8], "fp_end": [8.5, 10, 11.5]}),
    # It hides the startup, too: with a second slice handed on, that passes while the link is busy.
    (
        "bytescheduler",
        {**CREDIT, "startup_s": 0.5},
        {"push_start": [5.5, 3.5, 1.5], "push_end": [6.5, 5.5, 7.5]},
    ),
    # byteps keeps the order of readiness, as fifo, and a slice is back a slice later. One startup
    # shows, at the very first slice.
    ("byteps", SLICED, {"push_end": [7, 6, 4], "pull_end": [8, 7, 5]}),
    ("byteps", {**SLICED, "startup_s": 0.5}, {"push_end": [7.5, 6.5, 4.5]}),
    # 3 (3 s) does not fit between 1 and 2. 2 (2 s) just fits between 2 and 4. Then 1: 4..5 and
    # 3: 5..8. A gradient is back after as long again.
    ("prophet", {}, {"push_start": [4, 2, 5], "push_end": [5, 4, 8]}),
    ("prophet", {}, {"pull_end": [6, 6, 11], "fp_end": [7.5, 9, 12.5]}),
    # Partitions of 500, and one startup a block. With 0.2 s of startup one fits between 1 and 2 (to
    # 1.7); between 2 and 4 three of layer 2 (to 3.7). Then 1, 2, 3 in one go: 4..5.2; the rest of
    # 2, 0.5 s, to 5.7; the rest of 3, 2.5 s, to 8.2. A partition is back after as long again.
    (
        "prophet",
        {"partition_bytes": 500, "startup_s": 0.2},
        {"push_start": [4, 2, 1], "push_end": [5.2, 5.7, 8.2], "pull_end": [5.7, 6.2, 8.7]},
    ),
    # Two workers: as many bytes as a push. Buckets: 3 alone (1..4), then 2 and 1 (4..7).
    ("ring", BUCKETS, {"push_start": [4, 4, 1], "pull_end": [7, 7, 4], "fp_end": [8.5, 10, 11.5]}),
    # Four workers: 6 steps of a quarter, half as many bytes again; 0.5 s a bucket, 6 * 0.25 s.
    (
        "ring",
        {**BUCKETS, "workers": 4, "startup_s": 0.5, "latency_s": 0.25},
        {"push_start": [7.5, 7.5, 1], "pull_end": [14, 14, 7.5]},
    ),
    ("ring", {**BUCKETS, "barrier": True}, {"pull_end": [7, 7, 7]}),
    ("ring", {"workers": 1}, {"pull_end": [4, 4, 4]}),
]


@pytest.mark.parametrize(("policy", "options", "columns"), CASES)
def test_by_hand(policy: str, options: dict[str, object], columns: Columns) -> None:
    line = at(policy, **options)
    for name, expected in columns.items():
        np.testing.assert_allclose(getattr(line, name), expected, err_msg=name)
    assert line.iteration_s == line.fp_end[-1]
    assert line.speed == pytest.approx(8.5 / line.iteration_s)


def test_prophet_with_gradients_that_appear_together() -> None:
    # Both at 1 (backward of the second takes no time): the first goes out at once, then the other.
    job = Job((Layer("a", 1000, 0, 1), Layer("b", 500, 1, 1)))
    check_line = predict(job, 1000, "prophet")
    np.testing.assert_allclose(check_line.push_start, [1, 2])
    np.testing.assert_allclose(check_line.push_end, [2, 2.5])


def test_two_workers_a_server_halve_the_bandwidth() -> None:
    for policy in POLICIES:
        if policy != "ring":
            halved = predict(JOB, 2000, policy, workers=4, servers=2)
            np.testing.assert_allclose(halved.pull_end, at(policy).pull_end, err_msg=policy)


@pytest.mark.parametrize("packet", [0, 30])
def test_a_tensor_without_bytes_is_never_sent(packet: float) -> None:
    job = Job((Layer("a", 100, 1, 1), Layer("empty", 0, 1, 1)))
    fc_first = Job((Layer("pool", 0, 1, 0), Layer("fc", 1e7, 0.1, 0.1)))
    for policy in POLICIES:
        network = {"startup_s": 0.1, "latency_s": 0.5, "packet_bytes": packet}
        line = predict(job, 100, policy, **network)
        assert line.pull_end[1] == line.bp_end[1] == 1, policy
    # Sent from 0.1 on, for a second; then forward. It does not wait for what is never sent.
    assert predict(fc_first, 1e7, "ring").iteration_s == pytest.approx(1.2)
