"""Mercury's speed by model, number of hosts and size of packets: Fig. 13, 16 and 17."""

from __future__ import annotations

from collections.abc import Sequence

from pslite_ext.forecast.model import Job, predict
from pslite_ext.forecast.model.zoo import known_job
from scripts.lab.benches.mercury_paper import MODELS, PACKET_WORLDS, PACKETS
from scripts.lab.report.results import number
from scripts.papers.item import NOT_HERE, Item, page
from scripts.papers.measured import Measured
from scripts.papers.mercury_names import (
    BENCH,
    FIFO,
    GBIT,
    NODES,
    OURS,
    SCHEDULERS,
)
from scripts.papers.quantity import Quantity, between, least, most

FIG_13 = "abcdef"
CASES = [(f"^Fig. 13, {model} x", n) for model in MODELS for n in NODES[model]]  # of how many hosts


def _gains(m: Measured, what: str, rival: str, nodes: Sequence[int]) -> list[Quantity]:
    return [m.gain(BENCH, what, OURS, rival, setting=f"^{n} workers") for n in nodes]


def on_all_hosts(m: Measured, rival: str) -> list[Quantity]:
    """Each model's gain over the rival, on each number of hosts."""
    return [gain for what, n in CASES for gain in _gains(m, what, rival, [n])]


def processor_time(m: Measured, what: str, nodes: int, who: str) -> Quantity:
    """Of an iteration, over stock's."""
    ours, theirs = (
        m.one(BENCH, what, name, f"processor time, {who}", f"^{nodes} workers")
        for name in (OURS, "stock")
    )
    return ours.over(theirs)


def best_rival(m: Measured, what: str, nodes: int) -> Quantity:
    """ByteScheduler's with whichever of its sizes is better there."""
    times = [m.one(BENCH, what, name, setting=f"^{nodes} workers") for name in SCHEDULERS]
    return least(times).over(m.one(BENCH, what, OURS, setting=f"^{nodes} workers"))


def over_scheduler(m: Measured) -> list[Quantity]:
    """Each model's gain over ByteScheduler, on each number of hosts."""
    return [best_rival(m, what, n) for what, n in CASES]


def foretold_gain(job: Job, rival: str, gbit: float = 10.0) -> str:
    ours = predict(job, gbit * GBIT, "mercury").iteration_s
    return number(predict(job, gbit * GBIT, rival).iteration_s / ours)


def speed_items(m: Measured) -> list[Item]:
    items = []
    for letter, model in zip(FIG_13, MODELS):
        nodes = NODES[model]
        what = rf"^Fig. 13, {model} x"
        speeds = [m.one(BENCH, what, OURS, "computation / time", f"^{n} workers") for n in nodes]
        rivals = {
            "stock": between(_gains(m, what, "stock", nodes)),
            "stock with P3": between(_gains(m, what, "stock-p3", nodes)),
            "ByteScheduler": between([best_rival(m, what, n) for n in nodes]),
            "without preemption": between(_gains(m, what, FIFO, nodes)),
        }
        job = known_job(model)
        here = f"{between(speeds)} of linear; times as fast as " + ", ".join(
            f"{name}: {gain}" for name, gain in rivals.items()
        )
        foretold = ", ".join(
            f"{name} {foretold_gain(job, policy)}"
            for policy, name in (
                ("wfbp", "WFBP"),
                ("bytescheduler", "ByteScheduler"),
                ("fifo", "without preemption"),
            )
        )
        hosts = ", ".join(map(str, nodes))
        items.append(
            Item(
                f"Fig. 13{letter}, {model}",
                "samples a second on 2 to 4 hosts, beside linear scaling",
                here,
                page(BENCH),
                model=f"times as fast as {foretold}",
                remarks=f"{hosts} hosts and as many servers; BytePS: {NOT_HERE} (below)",
            )
        )
    gains = {
        "native PS": (2.30, on_all_hosts(m, "stock")),
        "ByteScheduler": (1.40, over_scheduler(m)),
    }
    up_to = {name: most(found) for name, (_, found) in gains.items()}
    items.append(
        Item(
            "Fig. 13, the largest gains",
            "2.30 times native PS, 1.74 times BytePS, 1.40 times ByteScheduler, "
            "1.15 times Mercury without preemption",
            "; ".join(f"{gain} times {name}" for name, gain in up_to.items()),
            page(BENCH),
            ratio="; ".join(up_to[name].beside(paper) for name, (paper, _) in gains.items()),
            remarks="2 to 4 hosts; ByteScheduler with the better of two sizes in each case",
        )
    )
    return items


def by_packets(m: Measured, model: str, rate: float, kib: int) -> Quantity:
    """Speed with packets of a size, 1 being that of a worker that never waits."""
    what, setting = rf"^Fig. 17, packets, {model} x", f" {rate / 1e6:g} Mbit/s"
    return m.one(BENCH, what, f"{OURS} {kib} KiB", "computation / time", setting)


def packet_item(m: Measured) -> Item:
    found = []
    for model, rate in PACKET_WORLDS:
        speeds = {kib: by_packets(m, model, rate, kib) for kib in PACKETS}
        best = most([*speeds.values()])
        listed = ", ".join(
            f"{kib} KiB {number(speed.median / best.median) if speed.known else speed}"
            for kib, speed in speeds.items()
        )
        found.append(f"{model} at {rate / 1e6:g} Mbit/s: {listed}")
    return Item(
        "Fig. 17",
        "training speed by size of packets, 4 KB to 4 MB; 16 to 256 KB are best",
        "speed / that of the best size; " + "; ".join(found),
        page(BENCH),
        remarks="slower links want smaller packets: on 100 Mbit/s, 4 MiB takes a third of a second",
    )


def processor_item(m: Measured) -> Item:
    worker, server = (
        processor_time(m, "^Fig. 13, vgg16 x", 4, who) for who in ("worker", "server")
    )
    return Item(
        "Fig. 16",
        "processor time of an iteration, VGG-16, 4 + 4: 1.23 times native PS's on workers, 1.09 "
        "times on servers",
        f"{worker} times stock's on workers, {server} on servers",
        page(BENCH),
        ratio=f"{worker.beside(1.23)}; {server.beside(1.09)}",
        remarks="less is better; every payload is checked here; on workers it depends on the model",
    )
