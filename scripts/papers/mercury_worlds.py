"""Mercury where networks change, hosts are uneven or shared, and rivals are tuned."""

from __future__ import annotations

from scripts.lab.benches.mercury_paper import MOST, SLOWED
from scripts.lab.benches.tuning import MODELLED, by_model
from scripts.lab.report.results import number
from scripts.papers.item import Item, page
from scripts.papers.measured import Asked, Measured
from scripts.papers.mercury_names import (
    BENCH,
    FIFO,
    OURS,
    SCHEDULER,
    SHARING,
    WFBP,
)
from scripts.papers.mercury_speed import best_rival
from scripts.papers.quantity import NOT_MEASURED, Quantity, between, most


def changing_items(m: Measured) -> list[Item]:
    items = []
    for figure, rates, paper in (
        ("18", "0.6 to 1", (1.85, 1.74, 1.41)),
        ("19", "0.1 to 1", (2.29, 1.99, 2.04)),
    ):
        what = rf"^Fig. {figure}, .*vgg16"
        gains = {
            "stock": m.gain(BENCH, what, OURS, "stock"),
            "stock with P3": m.gain(BENCH, what, OURS, "stock-p3"),
            "ByteScheduler": best_rival(m, what, 2),
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
                    f"{name} {gains[name].beside(of)}"
                    for name, of in (("stock", paper[0]), ("ByteScheduler", paper[2]))
                    if gains[name].known
                ),
                remarks="one model, two hosts; the paper's largest gain is of any model",
            )
        )
    return items


def startup_item(m: Measured) -> Item:
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


def shared_item(m: Measured) -> Item:
    found = []
    for model in MOST:
        others = " and ".join(other for other in MOST if other != model)
        what = rf"^{model} x .* beside " + ".*".join(x for x in MOST if x != model)
        shares = [
            f"{name} {m.one('jobs', what, system, 'time / alone')}"
            for name, system in SHARING.items()
        ]
        found.append(f"{model} beside {others}: {', '.join(shares)}")
    gains = {
        rival: ", ".join(
            f"{model} {m.gain('jobs', rf'^{model} x .* beside .* and ', OURS, system)}"
            for model in MOST
        )
        for rival, system in (("stock", "stock"), ("WFBP", WFBP))
    }
    return Item(
        "Fig. 20",
        "several jobs share 4 + 4 hosts: up to 2.0, 1.38 and 1.48 times as fast as native PS, and "
        "harms nobody",
        "three jobs on 2 + 2 hosts; time / that alone; "
        + "; ".join(found)
        + "".join(f"; beside the others, times as fast as {r}: {g}" for r, g in gains.items()),
        page("jobs"),
        remarks="priorities are a job's own; with three jobs, both cores are busy throughout, so "
        "they are shared as much as the link",
    )


def uneven_items(m: Measured) -> list[Item]:
    found = []
    for model in SLOWED:
        what = rf"^Fig. 21a, {model} x"
        found.append(f"{model} {m.gain(BENCH, what, OURS, 'stock')} and {best_rival(m, what, 2)}")
    unbalanced = {x: rf"^Fig. 21b, {x} x" for x in SLOWED}
    links = {
        "stock": {x: m.gain(BENCH, what, OURS, "stock") for x, what in unbalanced.items()},
        "ByteScheduler": {x: best_rival(m, what, 2) for x, what in unbalanced.items()},
        "without preemption": {
            x: m.gain(BENCH, what, OURS, FIFO) for x, what in unbalanced.items()
        },
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
            "one worker's link at half the rate; times as fast as "
            + "; ".join(
                f"{name}: {', '.join(f'{x} {gain}' for x, gain in gains.items())}"
                for name, gains in links.items()
            ),
            page(BENCH),
        ),
    ]


def _by_model(m: Measured, model: str, gbit: float) -> tuple[str, float]:
    """The best partition and credit of the model's map, and what 4 and 16 MiB come to there."""
    what = f"{model} at {gbit:g} Gbit/s, by the model"
    if model in MODELLED:
        rows = m.rows_of(Asked("tuning", f"^{what}", ".*", "credit of .*"))
    else:  # small, so it is soon made
        rows = [row for row in by_model((model,)) if row.what == what]
    if not rows:
        return NOT_MEASURED, 0.0
    best = max(rows, key=lambda row: row.values[0])
    usual = next(
        row.values[0]
        for row in rows
        if (row.system, row.metric) == ("partitions of 4096 KiB", "credit of 4")
    )
    said = (
        f"{best.system.removeprefix('partitions of ')} and {best.metric.rpartition(' ')[2]} of them"
    )
    return said, usual


def tuning_items(m: Measured) -> list[Item]:
    def of(metric: str, rate: str, system: str = f"{SCHEDULER} tuned") -> Quantity:
        return m.one("tuning", "^vgg16 x", system, metric, f" {rate} Mbit/s")

    rates = {"1000": "100", "100": "1000"}
    best = "; ".join(
        f"{rate} Mbit/s: {of('partition', rate)} and {of('credit', rate)}" for rate in rates
    )
    swapped = [
        of("time / tuned", rate, f"{SCHEDULER} tuned for {other} Mbit/s")
        for rate, other in rates.items()
    ]
    own = [of("time / tuned", rate, SCHEDULER) for rate in rates]
    ours = [of("time / tuned", rate, OURS) for rate in rates]
    maps = {
        name: "; ".join(
            f"{gbit:g} Gbit/s {said}, {number(usual)}"
            for gbit in (10.0, 1.0, 0.5)
            for said, usual in [_by_model(m, model, gbit)]
        )
        for name, model in (("VGG-16", "vgg16"), ("MobileNet", "mobilenet"))
    }
    return [
        Item(
            "Figs. 3a, 3b, 6",
            "ByteScheduler's speed by partition and credit; what is best at 10 Gbit/s loses 9 % at "
            "1 Gbit/s and 32 % at 0.5 Gbit/s",
            f"VGG-16: its own 4 and 16 MiB take {between(own)} times as long as what a search "
            f"finds; ours {between(ours)}",
            page("tuning"),
            model="best partition and credit, and what 4 and 16 MiB come to: "
            + "; ".join(f"{name}: {found}" for name, found in maps.items()),
            remarks="measured: VGG-16 at two rates, a tenth of each other",
        ),
        Item(
            "Fig. 4",
            "best partition and credit: 4 and 20 MB at 10 Gbit/s, 0.4 and 1.6 MB at 0.5 Gbit/s; "
            "swapped, up to 1.4 times as long",
            f"{best}; swapped, {between(swapped)} times as long",
            page("tuning"),
            ratio=f"{most(swapped).beside(1.4)} when swapped",
            remarks="models are scaled with the rates, and what is best with them",
        ),
        Item(
            "§III, the search",
            "hundreds of iterations, more than ten minutes",
            "; ".join(
                f"{rate} Mbit/s: {of('trials', rate)} trials, {of('search', rate)}, the slowest "
                f"iteration {of('slowest trial', rate)}"
                for rate in rates
            ),
            page("tuning"),
            remarks="settings are fixed when a job starts, so each trial here is a job",
        ),
    ]
