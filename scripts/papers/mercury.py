"""Mercury: every figure of its evaluation."""

from __future__ import annotations

from pslite_ext.forecast.model.zoo import known_job
from scripts.lab.report.results import number
from scripts.papers.item import NOT_HERE, Item, Paper, doc, page
from scripts.papers.measured import Asked, Measured
from scripts.papers.mercury_model import model_items
from scripts.papers.mercury_names import (
    BENCH,
    FIFO,
    GBIT,
    OURS,
    SCHEDULER,
)
from scripts.papers.mercury_speed import (
    CASES,
    foretold_gain,
    on_all_hosts,
    over_scheduler,
    packet_item,
    processor_item,
    processor_time,
    speed_items,
)
from scripts.papers.mercury_worlds import (
    changing_items,
    shared_item,
    startup_item,
    tuning_items,
    uneven_items,
)
from scripts.papers.quantity import Quantity, between, most


def items(m: Measured) -> list[Item]:
    vgg = known_job("vgg16")
    both_s = 2 * float(vgg.bytes.sum()) / (10 * GBIT)
    sent, by_ring = _sent(m, OURS, "servers, "), _sent(m, "mpi", "beside them")
    in_cache = m.one("sum_kernel", "^sums of 64 KiB", "mercury-ps", "float32").times(8, "Gbit/s")
    return [
        Item(
            "Figs. 1, 2, 8, 9; Table I, eqs. 1 to 9, Algorithm 1",
            "what an iteration is, and how Mercury works",
            "built so; headers have 28 bytes (0.1 % of a packet), four of them a checksum",
            f"{doc('architecture')}, {doc('wire-format')}, {doc('model')}",
        ),
        Item(
            "§I, VGG-16",
            "540 MB; 0.864 s of communication at 10 Gbit/s, 0.580 s of computation",
            "all profiles are scaled to this figure",
            doc("model"),
            model=f"{number(both_s)} s both ways, {number(vgg.compute_s)} s of computation",
            ratio=number(both_s / 0.864),
        ),
        Item(
            "§II, bytes",
            "with n + n hosts a link carries S, a ring's 2 (n - 1) S / n",
            f"MB a host sends, n = 8, VGG-16: ours on own hosts {between([sent])}, ring "
            f"{between([by_ring])}",
            page("scaling"),
            ratio=by_ring.over(sent).beside(2 * 7 / 8) + " of the ring's over ours",
        ),
        *tuning_items(m),
        Item(
            "Fig. 5",
            "ByteScheduler uses 73 % of the uplink while gradients appear",
            _utilised(m),
            page("iteration"),
            remarks="over whole iterations, half a second of computation included; VGG-16 at 1 "
            "Gbit/s",
        ),
        Item(
            "Fig. 7",
            "a plain prototype fills the link with pieces a hundred times finer than ByteScheduler",
            "share of the link by size of packets: "
            + ", ".join(
                f"{kib} KiB {m.one('goodput', '^16 tensors', f'{OURS} {kib} KiB', of, '1000 Mbit')}"
                for of in ("goodput each way / link",)
                for kib in (16, 64, 256, 1024)
            ),
            page("goodput"),
            remarks="headers leave 0.956; ByteScheduler's partitions have 4 MiB",
        ),
        startup_item(m),
        Item(
            "Theorem 1",
            "no schedule is faster",
            "equals the best of all preemptive schedules, found by exhaustive search, in a test",
            "tests/unit/forecast/test_model_properties.py",
            remarks="so it is the floor that all times here are held against",
        ),
        *model_items(),
        *speed_items(m),
        Item(
            "Fig. 13, BytePS",
            "Mercury is up to 1.74 times as fast",
            f"{NOT_HERE}: without CUDA and NCCL it builds only against stand-ins, and its server "
            "then overwrites sums before slower workers have fetched them",
            "`make bench-install-peers`",
            model="`mercury sim predict vgg16 --policy byteps --bandwidth 10Gbps`: "
            + foretold_gain(vgg, "byteps")
            + " times",
        ),
        Item(
            "Figs. 14, 15",
            "throughput over time; timeline of an iteration, GPU always busy",
            "pictures of the same",
            page("iteration"),
            remarks="network-bound there, so the emulated GPU waits",
        ),
        processor_item(m),
        packet_item(m),
        *changing_items(m),
        shared_item(m),
        *uneven_items(m),
        Item(
            "the aggregator",
            "2600 Gbit/s of float32 on eight cores: 325 a core",
            f"{in_cache} on one core, in cache",
            page("sum_kernel"),
            ratio=in_cache.beside(325),
            remarks="from memory, it is as fast as memcpy",
        ),
        Item(
            "≤ 260 tensors, queues of O(N)",
            "one queue for each tensor",
            "one for each of up to 4096 priorities, found in constant time; 1000 tensors in a test "
            "job",
            f"{doc('policies')}, {page('soak')}",
            remarks="the number of tensors need not be announced",
        ),
        Item(
            "3000 lines",
            "size of the prototype",
            "the core has about thirty thousand, with all that a product needs",
            "pslite_ext/csrc",
        ),
    ]


def _sent(m: Measured, system: str, setting: str) -> Quantity:
    rows = m.rows_of(
        Asked("scaling", "^vgg16 x 0.06,", system, "sent by a worker's host", f"^8 .*{setting}")
    )
    return most([Quantity.of(row).bare() for row in rows])


def _utilised(m: Measured) -> str:
    """Of a link, over whole iterations."""
    found = []
    for name in ("stock", "stock-p3", SCHEDULER, OURS):
        sent, took = (
            m.one("iteration", "^vgg16 x 0.2", name, metric)
            for metric in ("sent by a worker", "time")
        )
        if sent.known and took.known:
            found.append(f"{name} {number(sent.median * 8e6 / took.median / 1e9)}")
    return "share of the link that is used: " + ", ".join(found)


def _first(m: Measured) -> list[str]:
    stock, fifo = (on_all_hosts(m, rival) for rival in ("stock", FIFO))
    models = {what for (what, _), gain in zip(CASES, stock) if gain.known}
    scheduler = between(over_scheduler(m))
    spent = {
        who: between([processor_time(m, what, n, who) for what, n in CASES])
        for who in ("worker", "server")
    }
    floors = [m.one(BENCH, what, OURS, "ratio to floor", f"^{n} ") for what, n in CASES]
    tuned = [
        m.one("tuning", "^vgg16 x", OURS, "time / tuned", f" {rate} Mbit/s")
        for rate in ("1000", "100")
    ]
    return [
        f"holds: {len(models)} models are {between(stock)} times as fast as under stock MXNet, "
        f"{between(fifo)} times as without preemption, at {between(floors)} of Theorem 1's floor.",
        f"does not: over a ByteScheduler with smaller pieces, it is {scheduler} times, "
        f"not 1.40, and one that a search has tuned is level ({between(tuned)} of its time); where "
        "computation hides communication, nothing is gained. BytePS cannot be measured here.",
        f"is better: its servers need {spent['server']} of stock's processor time (its workers "
        f"{spent['worker']}), it adapts its packets to the link, and the theorem is tested against "
        "all schedules.",
    ]


def paper(m: Measured, pictures: list[tuple[str, str]]) -> Paper:
    return Paper(
        "Mercury",
        "“Accelerating Distributed DNN Training via Transport Layer Scheduling” (Duan et al., TPDS "
        "2023), as far as its text goes: nothing was read off its curves.",
        "The paper has up to 4 workers and 4 servers with GTX 1080 Ti at 10 Gbit/s. Here they are "
        "namespaces on two cores, with links of 500 Mbit/s and an emulated GPU; models are smaller "
        "by as much, so that computation and communication have the paper's proportion.",
        _first(m),
        items(m),
        pictures,
    )
