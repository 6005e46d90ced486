"""Workers that catch up with each other, by hand and in a cluster."""

from __future__ import annotations

import pytest

from pslite_ext.forecast.model import Job, Layer, predict
from pslite_ext.forecast.simulate import Cluster, SimulatedJob, cluster, simulate
from pslite_ext.forecast.simulate.levels import CatchingUp, Level, LevelledTrain
from pslite_ext.forecast.simulate.link import Packet, Trains


def train(priority: int, packets: int, level: Level) -> LevelledTrain:
    def make(index: int) -> Packet:
        return Packet(1.0, priority, 0, (), lambda packet: None, index)

    return LevelledTrain(priority, range(packets), make, 0, level)


def taken(queue: CatchingUp, most: int) -> str:
    order = ""
    while queue.waiting and len(order) < most:
        order += str(queue.pop().priority)
    return order


def test_every_other_packet_is_of_what_is_behind() -> None:
    queue, level = CatchingUp(), Level(2)
    queue.push(train(0, 1, Level(2)))
    queue.push(train(2, 9, level))
    assert taken(queue, 2) == "02"
    level.came(0)
    for _ in range(3):  # the other has sent two more
        level.came(1)
    queue.push(train(1, 9, Level(2)))
    assert taken(queue, 6) == "212111"
    level.came(1)
    assert taken(queue, 20) == "2" + "11111" + "22222"
    assert not queue.waiting


def test_nothing_catches_up_once_the_most_urgent_is_there() -> None:
    queue, level = CatchingUp(), Level(2)
    queue.push(train(2, 3, level))
    for _ in range(3):
        level.came(1)
    queue.push(train(0, 3, Level(2)))
    assert taken(queue, 9) == "000222"


def test_who_begins_late_is_behind_from_the_start() -> None:
    queue, level = CatchingUp(), Level(2)
    level.came(1)
    queue.push(train(0, 1, Level(2)))
    queue.push(train(1, 3, Level(2)))
    assert taken(queue, 2) == "01"
    queue.push(train(2, 2, level))
    assert taken(queue, 9) == "2112"


# Forty layers, each more urgent than the ones before it, none of which has been sent by then.
JOB = Job(tuple(Layer(f"layer {i}", 40e3, bp_s=0.1, fp_s=0.01) for i in range(40)))


@pytest.mark.parametrize("workers", [2, 4])
def test_servers_ways_out_lose_less_time(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each turn to a more urgent tensor, workers have sent different amounts of the last one."""
    floor = predict(JOB, 1e5, "mercury").iteration_s
    known = {"packet_bytes": 1000, "sharing": "fifo", "window_bytes": 10e3}

    def took() -> float:
        job = SimulatedJob(JOB, "mercury", iterations=3, jitter=0.005)
        done = simulate(job, Cluster.even(workers, workers, 1e5, **known))
        return float(done.outcomes[0].iteration_s[1:].mean())

    levelled = took()
    monkeypatch.setattr(cluster, "CatchingUp", Trains)
    assert levelled / floor >= 1.0
    assert levelled / floor - 1 < 0.7 * (took() / floor - 1)
