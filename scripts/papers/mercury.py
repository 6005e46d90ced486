"""Mercury: every figure of its evaluation."""

from __future__ import annotations

from pslite_ext.forecast.model import Job, predict, required_bandwidth
from pslite_ext.forecast.model.zoo import known_job
from scripts.lab.benches.mercury_paper import MODELS, PACKETS, RATES
from scripts.lab.report.results import number
from scripts.papers.item import NOT_HERE, Item, Paper, doc, page
from scripts.papers.measured import Asked, Measured
from scripts.papers.quantity import Quantity, between, least, most

BENCH = "mercury_paper"
OURS, FIFO, WFBP = "mercury-mercury", "mercury-fifo", "mercury-wfbp"
SCHEDULER = "mercury-bytescheduler"
GBIT = 1e9 / 8
# Table II: millions of parameters, as the paper counts them.
PARAMETERS = {
    "vgg16": 135,
    "vgg16_32x32": 35,
    "vgg19": 140,
    "alexnet": 57,
    "resnet50": 24,
    "bert_base": 109,
}
TARGETS = {model: 0.9 if model == "bert_base" else 0.99 for model in MODELS}  # of Fig. 12
NODES = {"vgg16": (2, 3, 4), "resnet50": (2, 4), "bert_base": (2, 4)}
FIG_13 = "abcdef"


def _gains(m: Measured, what: str, rival: str, nodes: tuple[int, ...]) -> list[Quantity]:
    return [m.gain(BENCH, what, OURS, rival, setting=f"^{n} workers") for n in nodes]


def _best(m: Measured, what: str, nodes: int) -> Quantity:
    """ByteScheduler's with whichever of its sizes is better there."""
    times = [
        m.one(BENCH, what, name, setting=f"^{nodes} workers")
        for name in (SCHEDULER, f"{SCHEDULER} 256/1024 KiB")
    ]
    return least(times).over(m.one(BENCH, what, OURS, setting=f"^{nodes} workers"))


def _foretold_gain(job: Job, rival: str, gbit: float = 10.0) -> str:
    ours = predict(job, gbit * GBIT, "mercury").iteration_s
    return number(predict(job, gbit * GBIT, rival).iteration_s / ours)


def _speed_items(m: Measured) -> list[Item]:
    items = []
    for letter, model in zip(FIG_13, MODELS):
        nodes = NODES.get(model, (2,))
        what = rf"^Fig. 13, {model} x"
        speeds = [m.one(BENCH, what, OURS, "computation / time", f"^{n} workers") for n in nodes]
        rivals = {
            "stock": between(_gains(m, what, "stock", nodes)),
            "stock with P3": between(_gains(m, what, "stock-p3", nodes)),
            "ByteScheduler": between([_best(m, what, n) for n in nodes]),
            "without preemption": between(_gains(m, what, FIFO, nodes)),
        }
        job = known_job(model)
        here = f"{between(speeds)} of linear; times as fast as " + ", ".join(
            f"{name}: {gain}" for name, gain in rivals.items()
        )
        foretold = ", ".join(
            f"{name} {_foretold_gain(job, policy)}"
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
        "native PS": (2.30, [m.gain(BENCH, f"^Fig. 13, {x} x", OURS, "stock", setting="^2 ")
                             for x in MODELS]),
        "ByteScheduler": (1.40, [_best(m, f"^Fig. 13, {x} x", 2) for x in MODELS]),
    }  # fmt: skip
    up_to = {name: most(found) for name, (_, found) in gains.items()}
    items.append(
        Item(
            "Fig. 13, the largest gains",
            "2.30 times native PS, 1.74 times BytePS, 1.40 times ByteScheduler, "
            "1.15 times Mercury without preemption",
            "; ".join(f"{gain} times {name}" for name, gain in up_to.items()),
            page(BENCH),
            ratio="; ".join(
                number(up_to[name].median / paper) if up_to[name].known else str(up_to[name])
                for name, (paper, _) in gains.items()
            ),
            remarks="two hosts; ByteScheduler with the better of two sizes for each model",
        )
    )
    return items


def required(model: str) -> tuple[float, float, float]:
    """Gbit/s for the target under Mercury, without preemption and under WFBP."""
    job = known_job(model)
    mercury, fifo, wfbp = (
        required_bandwidth(job, policy, TARGETS[model]) / GBIT
        for policy in ("mercury", "fifo", "wfbp")
    )
    return mercury, fifo, wfbp


def _model_items() -> list[Item]:
    needed = {model: required(model) for model in MODELS}
    listed = "; ".join(
        f"{model} {', '.join(number(rate) for rate in rates)}" for model, rates in needed.items()
    )
    saved = max(1 - rates[0] / rates[2] for rates in needed.values())
    speeds = []
    for model in ("vgg16", "bert_base"):
        job = known_job(model)
        at = {p: predict(job, 10 * GBIT, p).speed for p in ("wfbp", "fifo", "mercury")}
        speeds.append(f"{model}: " + ", ".join(f"{p} {number(v)}" for p, v in at.items()))
    layers = []
    for model in ("vgg16", "bert_base"):
        job = known_job(model)
        one_way = float(job.bytes.sum()) / (20 * GBIT)
        forward = sum(layer.fp_s for layer in job.layers)
        layers.append(
            f"{model}: backward {number(job.compute_s - forward)} s, forward {number(forward)} s, "
            f"communication {number(one_way)} s each way"
        )
    parameters = {
        model: float(known_job(model).bytes.sum()) / 4e6 / paper
        for model, paper in PARAMETERS.items()
    }
    return [
        Item(
            "Fig. 10",
            "times of layers, VGG-16 and BERT-Base, RTX 3090, 20 Gbit/s (an image)",
            f"{NOT_HERE}: no such GPU; profiles count operations for a 1080 Ti's 5.12 TFLOP/s",
            "`mercury sim predict vgg16 --bandwidth 20Gbps`",
            model="; ".join(layers),
        ),
        Item(
            "Fig. 11",
            "speed (t_oracle / t_iter) by bandwidth: WFBP, without preemption, Mercury",
            "picture above",
            "`mercury sim sweep vgg16 --from 1Gbps --to 100Gbps`",
            model="at 10 Gbit/s, " + "; ".join(speeds),
        ),
        Item(
            "Fig. 12",
            "bandwidth for 0.99 of full speed (BERT 0.90); Mercury needs up to about half of "
            "WFBP's less",
            "a model's figure in the paper, too",
            "`mercury sim required-bandwidth`",
            model=f"Gbit/s for Mercury, without preemption, WFBP: {listed}; up to "
            f"{number(100 * saved)} % less",
            ratio=number(saved / 0.5),
        ),
        Item(
            "Table II",
            "six models: " + ", ".join(f"{x} {n} M parameters" for x, n in PARAMETERS.items()),
            "the same six and four more, tensor by tensor",
            "pslite_ext/forecast/model/architectures.py",
            ratio=", ".join(f"{model} {number(part)}" for model, part in parameters.items()),
            remarks="AlexNet here is the one with 61 M parameters",
        ),
    ]


def by_packets(m: Measured, model: str, rate: float, kib: int) -> Quantity:
    """Speed with packets of a size, 1 being that of a worker that never waits."""
    what, setting = rf"^Fig. 17, packets, {model} x", f" {rate / 1e6:g} Mbit/s"
    return m.one(BENCH, what, f"{OURS} {kib} KiB", "computation / time", setting)


def _packet_item(m: Measured) -> Item:
    found = []
    for model, rate in [("vgg16", rate) for rate in RATES] + [("alexnet", RATES[-1])]:
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


def _changing_items(m: Measured) -> list[Item]:
    items = []
    for figure, rates, paper in (
        ("18", "0.6 to 1", (1.85, 1.74, 1.41)),
        ("19", "0.1 to 1", (2.29, 1.99, 2.04)),
    ):
        what = rf"^Fig. {figure}, .*vgg16"
        gains = {
            "stock": m.gain(BENCH, what, OURS, "stock"),
            "stock with P3": m.gain(BENCH, what, OURS, "stock-p3"),
            "ByteScheduler": m.gain(BENCH, what, OURS, SCHEDULER),
            "without preemption": m.gain(BENCH, what, OURS, FIFO),
        }
        items.append(
            Item(
                f"Fig. {figure}",
                f"rates of {rates} of the full one, drawn every 5 s: up to {paper[0]} times native "
                f"PS, {paper[1]} times BytePS, {paper[2]} times ByteScheduler",
                "VGG-16: " + ", ".join(f"{gain} times {name}" for name, gain in gains.items()),
                page(BENCH),
                ratio="; ".join(
                    f"{name} {number(gains[name].median / of)}"
                    for name, of in (("native PS", paper[0]), ("ByteScheduler", paper[2]))
                    if gains[name if name in gains else "stock"].known and name in gains
                ),
                remarks="one model, two hosts; the paper's largest gain is of any model",
            )
        )
    return items


def _startup_item(m: Measured) -> Item:
    alone, many = "1 pushes of 4 bytes", "200 pushes of 4 bytes"
    systems = {
        "stock": "stock",
        "stock with P3": "stock-p3",
        "ours": OURS,
    }
    words = []
    for name, system in systems.items():
        one, each = (
            m.one(BENCH, f"start-up, {what}", system, "push and pull") for what in (alone, many)
        )
        words.append(f"{name}: {one} alone, {each} each of 200")
    return Item(
        "start-up time",
        "less than 1 ms for a partition",
        "a push and its pull of 4 bytes; " + "; ".join(words),
        page(BENCH),
        remarks="with two workers, over links of 1 Gbit/s; there and back, so twice a start-up",
    )


def _processor_item(m: Measured) -> Item:
    what = "^Fig. 13, vgg16 x"
    worker, server = (
        m.one(BENCH, what, OURS, f"processor time, {who}", "^4 ").over(
            m.one(BENCH, what, "stock", f"processor time, {who}", "^4 ")
        )
        for who in ("worker", "server")
    )
    ratio = ""
    if worker.known and server.known:
        ratio = f"{number(worker.median / 1.23)}; {number(server.median / 1.09)}"
    return Item(
        "Fig. 16",
        "processor time of an iteration, VGG-16, 4 + 4: 1.23 times native PS's on workers, 1.09 "
        "times on servers",
        f"{worker} times stock's on workers, {server} on servers",
        page(BENCH),
        ratio=ratio,
        remarks="less is better: here it costs less than stock, although every payload is checked",
    )


def _shared_item(m: Measured) -> Item:
    found = []
    for model in ("vgg16", "resnet50", "bert_base"):
        rows = [
            f"{system}: {m.one('jobs', f'^{model} ', system, 'time beside / alone')}"
            for system in ("stock", WFBP, FIFO, OURS)
        ]
        found.append(f"{model}: {', '.join(rows)}")
    return Item(
        "Fig. 20",
        "several jobs share 4 + 4 hosts: up to 2.0, 1.38 and 1.48 times as fast, and harms nobody",
        "time beside the other jobs / alone; " + "; ".join(found),
        page("jobs"),
    )


def _uneven_items(m: Measured) -> list[Item]:
    found = []
    for model in ("vgg19", "bert_base", "resnet50"):
        what = rf"^Fig. 21a, {model} x"
        stock, other = (m.gain(BENCH, what, OURS, rival) for rival in ("stock", SCHEDULER))
        found.append(f"{model} {stock} and {other}")
    peers = {
        name: between([m.gain("peers", "^" + x + " .*one worker", OURS, rival) for x in NODES])
        for name, rival in (("stock", "stock"), ("ByteScheduler", SCHEDULER))
    }
    return [
        Item(
            "Fig. 21a",
            "uneven GPUs: over native PS and ByteScheduler, VGG-19 1.93 and 1.37, BERT-Base 1.26 "
            "and 1.14, ResNet-50 nothing",
            "one worker computes twice as long; over stock and ByteScheduler: " + "; ".join(found),
            page(BENCH),
            remarks="the slow worker hides communication for all",
        ),
        Item(
            "Fig. 21b",
            "unbalanced links (an image)",
            "one worker's link at half the rate: "
            + ", ".join(f"{gain} times {name}" for name, gain in peers.items()),
            page("peers"),
            remarks="once each; three models",
        ),
    ]


def _tuning_items(m: Measured) -> list[Item]:
    def of(metric: str, rate: str) -> Quantity:
        return m.one("tuning", "^vgg16 .*searched", SCHEDULER, metric, f" {rate} Mbit/s")

    found = []
    for rate in ("1000", "100"):
        found.append(
            f"{rate} Mbit/s: {of('best partition', rate)} and {of('best credit', rate)}, "
            f"{of('trials', rate)} trials, {of('search', rate)}"
        )
    return [
        Item(
            "Figs. 3a, 3b, 6",
            "ByteScheduler's speed by partition and credit; what is best at 10 Gbit/s loses 9 % at "
            "1 Gbit/s and 32 % at 0.5 Gbit/s",
            "table by the model, and the search's own trials",
            page("tuning"),
        ),
        Item(
            "Fig. 4",
            "best partition and credit: 4 and 20 MB at 10 Gbit/s, 0.4 and 1.6 MB at 0.5 Gbit/s; "
            "swapped, up to 40 % slower",
            "; ".join(found),
            page("tuning"),
        ),
        Item(
            "§III, the search",
            "hundreds of iterations, more than ten minutes",
            "; ".join(f"{of('search', rate)} at {rate} Mbit/s" for rate in ("1000", "100")),
            page("tuning"),
            remarks="settings are fixed when a job starts, so each trial here is a job",
        ),
    ]


def items(m: Measured) -> list[Item]:
    vgg = known_job("vgg16")
    both_s = 2 * float(vgg.bytes.sum()) / (10 * GBIT)
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
            "MB a host sends, n = 8, VGG-16: ours on own hosts "
            + between([_sent(m, OURS, "servers, ")])
            + ", ring "
            + between([_sent(m, "mpi", "beside them")]),
            page("scaling"),
            ratio="1.75 expected",
        ),
        *_tuning_items(m),
        Item(
            "Fig. 5",
            "ByteScheduler uses 73 % of the uplink while gradients appear",
            _utilised(m),
            page("iteration"),
            remarks="mean over the first iteration's first half; VGG-16 x 0.2 at 1 Gbit/s",
        ),
        Item(
            "Fig. 7",
            "a plain prototype fills the link with pieces a hundred times finer than ByteScheduler",
            "share of the link by size of packets: "
            + ", ".join(
                f"{kib} KiB {m.one('goodput', '^16 tensors', f'{OURS} {kib} KiB', of, '1000 Mbit')}"
                for of in ("goodput each way / link",)
                for kib in (4, 16, 64, 256, 1024)
            ),
            page("goodput"),
            remarks="headers leave 0.956; ByteScheduler's partitions have 4 MiB",
        ),
        _startup_item(m),
        Item(
            "Theorem 1",
            "no schedule is faster",
            "equals the best of all preemptive schedules, found by exhaustive search, in a test",
            "tests/unit/forecast/test_model_properties.py",
            remarks="so it is the floor that all times here are held against",
        ),
        *_model_items(),
        *_speed_items(m),
        Item(
            "Fig. 13, BytePS",
            "Mercury is up to 1.74 times as fast",
            f"{NOT_HERE}: without CUDA and NCCL it builds only against stand-ins, and its server "
            "then overwrites sums before slower workers have fetched them",
            "`make bench-install-peers`",
            model="`mercury sim predict vgg16 --policy byteps --bandwidth 10Gbps`: "
            + _foretold_gain(vgg, "byteps")
            + " times",
        ),
        Item(
            "Figs. 14, 15",
            "throughput over time; timeline of an iteration, GPU always busy",
            "pictures of the same",
            page("iteration"),
            remarks="network-bound there, so the emulated GPU waits",
        ),
        _processor_item(m),
        _packet_item(m),
        *_changing_items(m),
        _shared_item(m),
        *_uneven_items(m),
        Item(
            "the aggregator",
            "2600 Gbit/s of float32 on eight cores: 325 a core",
            f"{in_cache} on one core, in cache",
            page("sum_kernel"),
            ratio=number(in_cache.median / 325) if in_cache.known else "",
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
        Asked("scaling", "^vgg16 x 0.122", system, "sent by a worker's host", f"^8 .*{setting}")
    )
    return most([Quantity(tuple(row.values)) for row in rows])


def _utilised(m: Measured) -> str:
    found = []
    for name in ("stock", "stock-p3", SCHEDULER, OURS):
        points = m.series("throughput", "iteration", "^vgg16", name)
        if points:
            first = [point[1] for point in points if 0.05 <= point[0] <= 0.45]
            found.append(f"{name} {number(sum(first) / len(first) / 1e9)}")
    return "share of the link: " + ", ".join(found) if found else "not measured yet"


def _first(m: Measured) -> list[str]:
    stock = [m.gain(BENCH, f"^Fig. 13, {x} x", OURS, "stock", setting="^2 ") for x in MODELS]
    scheduler = [_best(m, f"^Fig. 13, {x} x", 2) for x in MODELS]
    fifo = [m.gain(BENCH, f"^Fig. 13, {x} x", OURS, FIFO, setting="^2 ") for x in MODELS]
    floors = [
        m.one(BENCH, f"^Fig. 13, {x} x", OURS, "ratio to floor", f"^{n} ")
        for x in MODELS
        for n in NODES.get(x, (2,))
    ]
    return [
        f"holds: six models are {between(stock)} times as fast as under stock MXNet, "
        f"{between(fifo)} times as without preemption, at {between(floors)} of Theorem 1's floor.",
        f"does not: over a ByteScheduler with good sizes, it is {between(scheduler)} times, not "
        "1.40; where computation hides communication, nothing is gained. BytePS cannot be measured "
        "here.",
        "is better: it needs less processor time than stock, adapts its packets to the link, and "
        "the theorem is tested against all schedules.",
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
