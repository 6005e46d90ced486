"""Prophet: every figure of its evaluation."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pslite_ext.forecast.model import predict
from pslite_ext.forecast.model.papers import (
    CHOSEN,
    GBIT,
    MEASURED,
    ORDERS,
    STARTUP_S,
    predicted,
    published_job,
)
from scripts.lab.benches.prophet import OTHERS, SLICES
from scripts.lab.report.results import number
from scripts.papers.item import NOT_HERE, Item, Paper, doc, page
from scripts.papers.measured import Measured
from scripts.papers.mercury_names import OURS, SCHEDULER, SCHEDULERS, WFBP
from scripts.papers.quantity import Quantity, between, most

BENCH = "prophet"
PROPHET, MERCURY, P3 = "mercury-prophet", OURS, "stock-p3"
SAMPLES = "samples a second and worker"
SLOW = "^one worker as at"
TABLE_3 = {16: (1.015, "1.5 %"), 32: (1.22, "22 %"), 64: (1.36, "36 %")}


def samples(m: Measured, what: str, system: str) -> Quantity:
    return m.one(BENCH, what, system, SAMPLES).bare()


def table_2(gbit: float) -> str:
    return rf"^Table 2, resnet50 as at {gbit:g} Gbit/s$"


def rival(m: Measured, what: str) -> Quantity:
    """ByteScheduler with the better of its sizes."""
    return most([samples(m, what, name) for name in SCHEDULERS])


def _gain(m: Measured, what: str) -> Quantity:
    return samples(m, what, PROPHET).over(rival(m, what))


def _table_2_items(m: Measured) -> list[Item]:
    model = predicted()
    items = []
    for row, gbit in enumerate(GBIT):
        what = table_2(gbit)
        prophet, scheduler, p3 = samples(m, what, PROPHET), rival(m, what), samples(m, what, P3)
        theirs = [MEASURED[name][row] for name in ("prophet", "bytescheduler", "p3")]
        gain = prophet.over(scheduler)
        foretold = m.one(BENCH, what, PROPHET, "predicted / measured")
        items.append(
            Item(
                f"Table 2, {gbit:g} Gbit/s",
                "{} / {} / {}: {} times ByteScheduler".format(
                    *map(number, theirs), number(theirs[0] / theirs[1])
                ),
                f"{prophet} / {scheduler} / {p3}: {gain} times; ours without Prophet: "
                f"{samples(m, what, MERCURY)}",
                page(BENCH),
                model=" / ".join(number(model[name][row]) for name in model)
                + f" fitted to the paper; without fitting, predicted / measured {foretold}",
                ratio=gain.beside(theirs[0] / theirs[1]),
                remarks="samples a second and worker: Prophet / ByteScheduler, with the better of "
                "two sizes / P3; here / paper is of the gain",
            )
        )
    return items


def _table_3_items(m: Measured) -> list[Item]:
    items = []
    for batch, (gain, words) in TABLE_3.items():
        what = rf"^Table 3, resnet50, batches of {batch}," if batch < 64 else table_2(3)
        found = _gain(m, what)
        items.append(
            Item(
                f"Table 3, batches of {batch}",
                f"{words} faster than ByteScheduler",
                f"{found} times as fast",
                page(BENCH),
                ratio=found.beside(gain),
                remarks="as at 3 Gbit/s, where the paper's gain is greatest; ByteScheduler with "
                "the better of two sizes",
            )
        )
    return items


def items(m: Measured) -> list[Item]:
    use = "computation / time"
    at_3 = table_2(3)
    throughput = samples(m, at_3, PROPHET).over(samples(m, at_3, SCHEDULER))
    others = {model: _gain(m, rf"^Fig. 8, {model} as") for model in OTHERS}
    nodes = [m.one(BENCH, "^Fig. 12", PROPHET, SAMPLES, f"^{n} workers").bare() for n in (2, 4, 8)]
    profiled = m.one(BENCH, "^the first 50", PROPHET).over(m.one(BENCH, "^the first 50", MERCURY))
    follow = [
        m.one(BENCH, "^resnet18 x 0.25", PROPHET, f"blocks follow, {way}")
        for way in ("halved", "recovered")
    ]
    return [
        Item(
            "Figs. 1, 5, 6, 7; Table 1, eqs. 1 to 11, Algorithm 1",
            "blocks of gradients, and why",
            "built over our packets and over whole messages; one algorithm in C++ and Python, held "
            "equal by a test",
            f"{doc('prophet')}, {doc('model')}",
        ),
        Item(
            "Fig. 2",
            "ResNet-152, one server and three workers: use of the GPU falls to 0 again and again",
            "share of the time that the emulated GPU computes, ResNet-152: "
            + ", ".join(
                f"{name} {m.one(BENCH, '^Fig. 8, resnet152', system, use)}"
                for name, system in (("ByteScheduler", SCHEDULER), ("Prophet", PROPHET))
            ),
            page(BENCH),
            remarks="of whole iterations; over time in the picture above",
        ),
        Item(
            "Fig. 3a",
            "P3's rate by size of its partitions (an image)",
            "samples a second and worker, by elements of a slice: "
            + ", ".join(
                f"{count} {samples(m, '^Fig. 3a', f'{P3} {count} elements')}" for count in SLICES
            ),
            page(BENCH),
            remarks="as at 3 Gbit/s; the first is P3's own; models have a tenth of the paper's "
            "elements",
        ),
        Item(
            "Fig. 3b",
            "ByteScheduler fluctuates between 44 and 56 samples/s while it tunes its credit",
            "the slowest of the search's trials takes "
            f"{_slowest_trial(m)} times as long as what it finds",
            page("tuning"),
            remarks="VGG-16, two hosts, 1 Gbit/s; a trial here is a job",
        ),
        Item(
            "Fig. 4",
            "gradients appear in steps: ResNet-50 in 13 under MXNet",
            "the emulated GPU makes the same steps; `mercury trace report` draws those of a job",
            doc("traces"),
            remarks="on a CPU, gradients appear one by one",
        ),
        Item(
            "Fig. 8",
            "ResNet-18, -50, -152 and Inception-v3: 1.1 to 1.4 times ByteScheduler",
            "; ".join(f"{model} {gain}" for model, gain in others.items()) + " times as fast",
            page(BENCH),
            ratio=between([gain.times(1 / 1.4) for gain in others.values()]) + " of the most",
            remarks="as at 3 Gbit/s, batches of 64, with the better of two sizes for ByteScheduler",
        ),
        Item(
            "Fig. 9",
            "use of the GPU rises from 67.85 to 91.15 %",
            f"{m.one(BENCH, at_3, SCHEDULER, use)} to {m.one(BENCH, at_3, PROPHET, use)}",
            page(BENCH),
            remarks="as at 3 Gbit/s; ByteScheduler as it is, and Prophet",
        ),
        Item(
            "Fig. 10",
            "throughput 10.3 against 7.5 MB/s, 1.37 times",
            f"{throughput} times",
            page(BENCH),
            ratio=throughput.beside(1.37),
            remarks="bytes a second go with samples a second",
        ),
        Item(
            "Fig. 11",
            "start and end of each gradient: a mean transfer of 125 ms (P3 135, ByteScheduler "
            "446); mean wait 26 ms (67)",
            "from a layer's gradients to their sums, mean, ms: "
            + ", ".join(
                f"{name} {m.one(BENCH, at_3, system, 'from a gradient to its sum').bare()}"
                for name, system in (
                    ("Prophet", PROPHET),
                    ("P3", P3),
                    ("ByteScheduler", SCHEDULER),
                    ("ours without Prophet", MERCURY),
                )
            ),
            page(BENCH),
            remarks="waiting and both ways together, as at 3 Gbit/s",
            model="mean wait in ms as at 3 Gbit/s: "
            + ", ".join(f"{policy} {_waits(policy)}" for policy in ORDERS),
        ),
        *_table_2_items(m),
        Item(
            "ResNet-18, 3 and 10 Gbit/s",
            "MXNet 110, P3 137, Prophet 153; all 220",
            f"{_gain(m, '^Fig. 8, resnet18 as')} times ByteScheduler, as at 3 Gbit/s",
            page(BENCH),
            remarks="batches of 64, with the better of two sizes for ByteScheduler",
        ),
        *_table_3_items(m),
        Item(
            "one worker at 500 Mbit/s",
            "26.4 / 25.8 / 15.1 samples/s: Prophet 1.02 times ByteScheduler",
            f"{samples(m, SLOW, PROPHET)} / {rival(m, SLOW)} / {samples(m, SLOW, P3)}: Prophet "
            f"{_gain(m, SLOW)} times",
            page(BENCH),
            ratio=_gain(m, SLOW).beside(26.4 / 25.8),
            remarks="the other links as at 3 Gbit/s; here / paper is of the gain",
        ),
        Item(
            "Fig. 12",
            "69.94 to 68.83 samples/s and worker from 2 to 8 workers",
            " / ".join(map(str, nodes)) + " with 2, 4 and 8 workers and as many servers",
            page(BENCH),
            ratio=nodes[-1].over(nodes[0]).beside(68.83 / 69.94),
            remarks="with eight, seventeen processes share two cores",
        ),
        Item(
            "Fig. 13, §5.4",
            "profiling takes 7 to 24.7 s; the GPU is used slightly less meanwhile",
            f"the first 50 iterations take {profiled} times as long as without Prophet",
            page(BENCH),
            remarks="it profiles beside training, so there is no time of its own",
        ),
        _predictions(m),
        Item(
            "the monitor",
            "bandwidth is looked at every 5 s",
            "blocks follow a rate that halves after {}, one that doubles after {}".format(
                *follow
            ),
            page(BENCH),
        ),
        Item(
            "“independent of framework, network, batch”",
            "the step pattern",
            f"{NOT_HERE}: steps come from how a GPU's gradients are copied, and there is none",
            doc("prophet"),
        ),
    ]  # fmt: skip


NAMES = {
    "ours": MERCURY,
    "Prophet": PROPHET,
    "ByteScheduler": SCHEDULER,
    "ByteScheduler, smaller": SCHEDULERS[1],
    "WFBP": WFBP,
}


def _predictions(m: Measured) -> Item:
    def of(system: str, rates: Sequence[float]) -> str:
        found = [
            m.one(BENCH, table_2(gbit), re.escape(system), "predicted / measured") for gbit in rates
        ]
        return between(found)

    below, above = [r for r in GBIT if r < 4], [r for r in GBIT if r >= 4]
    apart = "^how far workers are apart"
    leads = {name: m.one(BENCH, apart, re.escape(s), "greatest lead") for name, s in NAMES.items()}
    simulated = []
    for name in ("ByteScheduler", "ByteScheduler, smaller", "WFBP"):
        took, even, uneven = (
            m.one(BENCH, apart, re.escape(NAMES[name]), metric)
            for metric in ("time", "simulated, sharing evenly", "simulated, sharing unevenly")
        )
        simulated.append(f"{name} {even.over(took)} and {uneven.over(took)}")
    return Item(
        "predictions",
        "not given",
        "predicted / measured, below balance: "
        + "; ".join(f"{name} {of(s, below)}" for name, s in NAMES.items())
        + "; at 4 Gbit/s and more: "
        + "; ".join(f"{name} {of(s, above)}" for name, s in NAMES.items()),
        page(BENCH),
        model="simulated / measured at 1 Gbit/s, workers sharing the server's link evenly, and 30, "
        f"33 and 37 % of it: {'; '.join(simulated)}",
        remarks="rivals are slower than foretold below balance because their workers do not go in "
        "step, as the model has it: sums wait for the last one. The one in front is ahead by up "
        "to: " + ", ".join(f"{name} {lead}" for name, lead in leads.items()) + ", of a model of "
        "10 MB",
    )


def _slowest_trial(m: Measured) -> Quantity:
    tuned = f"{SCHEDULER} tuned"
    slowest, best = (
        m.one("tuning", "^vgg16 x", tuned, metric, " 1000 ") for metric in ("slowest trial", "time")
    )
    return slowest.over(best)


def _waits(policy: str) -> str:
    """In ms, from a gradient's production until it begins to leave: the mean, by the model."""
    job, options = published_job(), CHOSEN[policy]
    line = predict(job, 3e9 / 8, policy, workers=3, servers=1, startup_s=STARTUP_S, **options)
    return number(1e3 * float((line.push_start - line.bp_end).mean()))


def _first(m: Measured) -> list[str]:
    gains = [_gain(m, table_2(gbit)) for gbit in GBIT]
    plain = [
        samples(m, table_2(gbit), PROPHET).over(samples(m, table_2(gbit), MERCURY)) for gbit in GBIT
    ]
    floors = [m.one(BENCH, table_2(gbit), PROPHET, "ratio to floor") for gbit in GBIT]
    return [
        f"holds: at the paper's seven rates, it is {between(gains)} times as fast as ByteScheduler "
        f"with the better of two sizes, at {between(floors)} of the floor.",
        f"does not: over packets by priority alone it gains nothing ({between(plain)} times); its "
        "blocks matter where pieces are large. Steps are emulated: no GPU's pattern was seen.",
        "is better: it learns from five iterations beside training, drops a profile that has "
        "become wrong, and follows a changed rate within seconds.",
    ]


def paper(m: Measured, pictures: list[tuple[str, str]]) -> Paper:
    return Paper(
        "Prophet",
        "“Prophet: Speeding up Distributed DNN Training with Predictable Communication Scheduling” "
        "(Zhang et al., ICPP 2021).",
        "The paper has three workers with M60 GPUs and one server, at 1 to 10 Gbit/s. Here rates "
        "and models are a tenth, and an emulated GPU computes as long as the paper's and produces "
        "gradients in as many steps. ByteScheduler has its own sizes and a smaller "
        "pair, 256 KiB and 1 MiB; the better counts.",
        _first(m),
        items(m),
        pictures,
    )
