"""MLfabric: every figure of its evaluation."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from scripts.lab.benches.fabric import BOUNDS, CHECKPOINT_EVERY, FULL, NEAR
from scripts.lab.report.fabric_tables import arrivals
from scripts.lab.report.results import number
from scripts.papers.item import NOT_HERE, Item, Paper, doc, page
from scripts.papers.measured import Measured
from scripts.papers.quantity import NOT_MEASURED, Quantity, between

BENCH = "fabric"
RING, TREE, ASYNC = "ring gloo", "tree", "async"
A30, A45, A60, STEP = "fabric A-30", "fabric A-45", "fabric A-60", "fabric S"
RATE = "gradients a second"
# Table 2: A-30 over the ring, by stragglers and network.
TABLE_2 = {
    ("C1", "N1"): 1.74, ("C1", "N2"): 1.23, ("C1", "N3"): 1.42,
    ("C2", "N1"): 2.96, ("C2", "N2"): 2.0, ("C2", "N3"): 2.32,
    ("C3", "N1"): 1.90, ("C3", "N2"): 1.33, ("C3", "N3"): 1.42,
}  # fmt: skip
OUTLIVING = f"to {FULL:g}, replica$"  # races in which the server might be lost
EVEN = (("C1", "N1"), ("C3", "N1"))  # hardly any link or worker is slow, or not for long
# `mercury fabric time`, in ms, as docs/fabric-plan.md has them: updates, paper, ours.
PLANNING = re.compile(r"^\| (\d+) \| ([\d.]+) \| [\d.]+ \| (\d+) \|$", re.MULTILINE)


def race(cell: tuple[str, str]) -> str:
    return rf"^{cell[0]} {cell[1]}, to 0.8$"


def _times(m: Measured, what: str, system: str) -> Quantity:
    """Until the target: infinite in repeats that did not arrive."""
    times, arrived = (m.one(BENCH, what, system, metric) for metric in ("time", "arrived"))
    return replace(arrived, values=tuple(arrivals(times.values, arrived.values)), unit="s")


def speed_up(m: Measured, cell: tuple[str, str], system: str, rival: str = RING) -> Quantity:
    """Until the target; 0 in repeats that did not arrive."""
    return _times(m, race(cell), rival).over(_times(m, race(cell), system))


def _said(m: Measured, cell: tuple[str, str], system: str) -> str:
    gain = speed_up(m, cell, system)
    came = sum(value > 0 for value in gain.values)
    if came == gain.repeats:
        return str(gain)
    if came == 0:
        return "did not arrive"
    return f"{gain}, arrived {came} times of {gain.repeats}"


def _until(times: Quantity) -> str:
    came = sum(map(math.isfinite, times.values))
    if came == times.repeats:
        return str(times)
    middle = f"{number(times.median)} {times.unit}, " if math.isfinite(times.median) else ""
    return f"{middle}arrived {came} times of {times.repeats}"


def _late(m: Measured, network: str) -> Quantity:
    """What it costs to be told of the network later."""
    soon, late = (
        _times(m, f"^C1 {re.escape(network)}, to 0.8, told {lag} s late$", A30)
        for lag in ("0.2", "2")
    )
    return late.over(soon)


def _copied(m: Measured, target: float, replicated: str) -> Quantity:
    """MB an update, to the replica."""
    what = f"to {target:g}, replica$"
    return m.one(BENCH, what, f"{A30} {replicated}", "to the replica.*").bare()


def _by_bound(m: Measured, target: float, bounds: Sequence[float]) -> str:
    """Of a replica that is sent its own copies."""
    found = {bound: _copied(m, target, f"within {bound:g}, whole") for bound in bounds}
    return ", ".join(f"{bound:g}: {sent}" for bound, sent in found.items() if sent.known)


def _kept(m: Measured, how: str) -> Quantity:
    """The part of its rate that training keeps when something would outlive its server."""
    return m.gain(BENCH, OUTLIVING, A30, f"{A30} {how}", RATE)


def _protected(m: Measured) -> str:
    """What is kept with checkpoints, and with a replica."""
    said = []
    for every in CHECKPOINT_EVERY:
        how = f"checkpoint every {every}"
        if (kept := _kept(m, how)).known:
            lost = m.one(BENCH, OUTLIVING, f"{A30} {how}", "lost with the server, at most")
            often = "as often as it can" if every == 1 else f"every {every} updates"
            said.append(f"a checkpoint {often} {kept} (a kill loses up to {number(lost.median)})")
    if (kept := _kept(m, f"within {NEAR:g}")).known:
        said.append(f"a replica on the way to the server {kept}")
    for bound in BOUNDS[FULL]:
        if (kept := _kept(m, f"within {bound:g}, whole")).known:
            said.append(f"one that is sent whole copies, within {bound:g}, {kept}")
    return ", ".join(said) or NOT_MEASURED


def _of_lateness(m: Measured) -> str:
    found = {name: _late(m, name) for name in ("N2", "p1 = .2")}
    if not all(late.known for late in found.values()):
        return "not measured since updates travel down chains"
    return (
        f"times as fast told 0.2 s late as told 2 s: {found['N2']} in N2, {found['p1 = .2']} with "
        "a fifth of the links at a tenth"
    )


def _cell_items(m: Measured) -> list[Item]:
    items = []
    for cell, theirs in TABLE_2.items():
        ours = speed_up(m, cell, A30)
        here = f"{_said(m, cell, A30)} (A-60: {_said(m, cell, A60)})"
        items.append(
            Item(
                f"Table 2, {cell[0]} {cell[1]}",
                f"A-30 {theirs} times as fast as the ring, to 74 % after epoch 50",
                f"{here} to 80 %",
                page(BENCH),
                model=_foretold_of(m, cell),
                ratio=ours.beside(theirs),
                remarks=_why(cell),
            )
        )
    return items


def _foretold(m: Measured, cell: tuple[str, str], system: str = A30) -> str:
    """Of the page's own table, since the simulation takes a minute."""
    return m.cell(BENCH, "^Gradients a second", f"{' '.join(cell)}, to 0.8", system)


def _foretold_of(m: Measured, cell: tuple[str, str]) -> str:
    found = _foretold(m, cell)
    said = "gradients a second until then, predicted / measured (median of the repeats' quotients)"
    return f"{said}: {found}" if found else ""


def _predictions(m: Measured) -> Item:
    def of(system: str) -> str:
        cells = [_foretold(m, cell, system) for cell in TABLE_2]
        found = [re.search(r"\(([\d.]+)\)$", cell) for cell in cells]
        return between([Quantity((float(ratio[1]),)) for ratio in found if ratio])

    names = {"ring": RING, "tree": TREE, "plain asynchronous": ASYNC}
    names |= {"A-30": A30, "A-60": A60, "S": STEP}
    return Item(
        "predictions",
        "not given",
        "predicted / measured, medians of the cells that were run: "
        + ", ".join(f"{name} {of(system)}" for name, system in names.items()),
        page(BENCH),
        remarks="each repeat has its own draws of links and stragglers",
    )


def _why(cell: tuple[str, str]) -> str:
    if cell[1] == "N3":
        return (
            "half of the links have a tenth of the rate, the server's own among them half of the "
            "time"
        )
    if cell in EVEN:
        return "where nearly all is even, it makes as many gradients as the ring, and needs as many"
    return "a ring of the lab's links loses less to stragglers than the paper's did"


def items(m: Measured) -> list[Item]:
    timed = PLANNING.findall(m.text("fabric-plan.md"))
    planned = {int(updates): (float(ours), float(theirs)) for updates, ours, theirs in timed}
    rates = {
        name: between([m.one(BENCH, race((c, "N2")), system, RATE) for c in ("C1", "C2", "C3")])
        for name, system in (("A-30", A30), ("ring", RING), ("tree", TREE))
    }
    whole = between([m.one(BENCH, race((c, "N2")), f"{A30}, whole", RATE) for c in ("C1", "C2")])
    step_tree = speed_up(m, ("C2", "N2"), STEP, TREE)
    step_ring = [speed_up(m, cell, STEP) for cell in TABLE_2]
    slow = {
        name: between(
            [m.one(BENCH, race((c, "N2")), s, "over slow links") for c in ("C1", "C2", "C3")]
        )
        for name, s in (("S", STEP), ("tree", TREE))
    }
    dropped = m.one(BENCH, race(("C1", "N1")), A30, "dropped")
    lda = {
        name: _times(m, "^LDA.*C1 N1", system)
        for name, system in (("ring", RING), ("A-30", A30), ("A-60", A60), ("async", ASYNC))
    }
    replica = [
        f"to {100 * target:g} %: {found}"
        for target, bounds in BOUNDS.items()
        if (found := _by_bound(m, target, bounds))
    ]
    return [
        Item(
            "Figs. 1 to 5; Table 1, Algorithms 1 to 3, eqs. 7 to 11",
            "timelines, calls, ordering, aggregation, replication",
            "built so; the server's argument of Table 1 is not: a job has one",
            f"{doc('fabric')}, {doc('fabric-plan')}",
        ),
        Item(
            "§2, an iteration's communication",
            "100 MB in under 100 ms of computation; a ring goes from 160 to 320 ms with slow links",
            f"the ring makes {rates['ring']} gradients a second in N2, "
            + str(m.one(BENCH, race(("C1", "N1")), RING, RATE))
            + " in C1 N1",
            page(BENCH),
            remarks="30 workers: 60 gradients a second are an iteration of 0.5 s",
        ),
        Item(
            "eqs. 3, 4, §10.4",
            "a smaller variance of the delay converges faster",
            f"delays in C1 N1: median {m.one(BENCH, race(('C1', 'N1')), A30, 'delay, median')}, "
            f"95 % {m.one(BENCH, race(('C1', 'N1')), A30, 'delay, 95 %')}, most "
            f"{m.one(BENCH, race(('C1', 'N1')), A30, 'delay, most')}",
            page(BENCH),
            remarks="the bound is never broken; no experiment varies the variance alone",
        ),
        Item(
            "Figs. 7a, 7b",
            "A-30 1.74 times as fast as the ring with 30 % of updates dropped; A-60 1.36 times, "
            "but to 70 % only",
            f"{speed_up(m, ('C1', 'N1'), A30)} and {speed_up(m, ('C1', 'N1'), A60)} times, A-45 "
            f"{speed_up(m, ('C1', 'N1'), A45)}; {dropped} of updates dropped",
            page(BENCH),
            ratio=speed_up(m, ("C1", "N1"), A30).beside(1.74),
            remarks="digits instead of ImageNet: to 80 %, a larger bound costs no accuracy that "
            "could be seen; curves above",
        ),
        *_cell_items(m),
        _predictions(m),
        Item(
            "implied by Table 2",
            "an iteration of 1.3 s for 30 workers in N2: 23 gradients a second",
            f"A-30 {rates['A-30']}, passed on whole as in the paper {whole}, ring {rates['ring']}, "
            f"tree {rates['tree']}",
            page(BENCH),
            remarks="over whole races, their ends included; chains, by packets, are what the paper "
            "does not have; the lab's ring is much better than the paper's must have been",
        ),
        Item(
            "reporting lag",
            "told 2 s late: 7.6 % slower in N2; 40 % with a fifth of the links at a tenth",
            _of_lateness(m),
            page(BENCH),
            remarks="C1, A-30",
        ),
        Item(
            "Figs. 7c, 7d",
            "LDA, NY Times: ring 145 iterations and 182 s, A-30 188 and 139, A-60 239 and 169, "
            "async 300 and 1080",
            "; ".join(f"{name} {_until(took)}" for name, took in lda.items()),
            page(BENCH),
            ratio=f"{lda['ring'].over(lda['A-30']).beside(182 / 139)} (A-30 over the ring)",
            remarks="documents are made up from known topics, to a log-likelihood of -4.6"
            + "; once" * (lda["ring"].repeats == 1),
        ),
        Item(
            "Fig. 8",
            "transfers over slow links: 816 of 20,000 (4 %), the tree 1800 (9 %)",
            f"S {slow['S']} %, tree {slow['tree']} %, in N2",
            page(BENCH),
            remarks="of any hop, where the paper counts the aggregators' incoming links; a chain "
            "passes every worker's host",
        ),
        Item(
            "§7.2, S against the ring",
            "0.5 to 0.83 times as fast, but 1.16 in C2 N1",
            f"{between(step_ring)} times; C2 N1 {speed_up(m, ('C2', 'N1'), STEP)}",
            page(BENCH),
            ratio=speed_up(m, ("C2", "N1"), STEP).beside(1.16) + " in C2 N1",
            remarks="a ring that loses little to stragglers leaves little to gain in step",
        ),
        Item(
            "§7.2, S against the tree",
            "C2 N2: 18.4 % less time, 21.7 % with ResNet-152",
            f"{step_tree} times as fast: "
            + (
                f"{number(100 * (1 - 1 / step_tree.median))} % less"
                if step_tree.known
                else "not measured yet"
            ),
            page(BENCH),
            ratio=step_tree.beside(1 / (1 - 0.184)),
            remarks="the lab's tree passes pieces of 64 KB on; repeats differ by a quarter",
        ),
        Item(
            "Fig. 9, §7.3, bytes",
            "up to 5.6 times fewer bytes to the replica with a bound of 600 updates; chain "
            "replication 30 times as dear",
            "MB an update, the paper's way, by bound (a norm; an update's is about 0.01); races "
            + "; ".join(replica)
            + ". Ours, through the replica to the server: "
            + str(_copied(m, FULL, f"within {NEAR:g}")),
            page(BENCH),
            remarks="chain replication sends each update: what a bound of 0 takes",
        ),
        Item(
            "§7.3, overhead",
            "16 and 10 min, checkpoints 76 to 96 and 4 to 6 min",
            f"gradients a second, with neither 1; races to {100 * FULL:g} %: {_protected(m)}",
            page(BENCH),
            remarks="hours of training are not to be had here; a server that is killed costs less "
            "than a second with a replica, and with a checkpoint a new start of the job",
        ),
        Item(
            "§7.4, scheduling a batch",
            "; ".join(f"{updates}: {theirs:g} ms" for updates, (_, theirs) in planned.items()),
            "; ".join(f"{updates}: {ours:g} ms" for updates, (ours, _) in planned.items()),
            f"`mercury fabric time`, {doc('fabric-plan')}",
            ratio="; ".join(number(ours / theirs) for ours, theirs in planned.values()),
            remarks="the paper's planner in C++; with chains, planning takes longer",
        ),
        Item(
            "§10.1, integer program",
            "the optimum, too slow to use",
            "rules come to 1.026 and 1.086 of the optimum on average, with a search to 1.0001",
            doc("fabric-plan"),
            remarks="better than the paper: it does not say how near its rules come",
        ),
        Item(
            "§3.1, AdaDelay",
            "a rate of learning that knows how late an update is converges faster, in theory",
            "left out: in simulated races it brings nothing",
            doc("fabric-plan"),
        ),
        Item(
            "§10.2, several servers",
            "one order for all",
            "each has a part of the model, the first decides the order; replicas have all of it",
            doc("fabric"),
        ),
        Item(
            "§10.3, distribution trees",
            "models go down trees",
            "a chain of those who ask; "
            + between(
                [m.one(BENCH, race((c, "N2")), A30, "models passed on") for c in ("C1", "C2", "C3")]
            )
            + " % of models come from another worker in N2",
            page(BENCH),
        ),
        Item(
            "GPUs, ImageNet, 10 Gbit/s",
            "30 P100 on 15 hosts",
            f"{NOT_HERE}: digits on two cores, a hundredth of the bytes and of the rates",
            doc("benchmarks/method", "method"),
        ),
    ]


def _first(m: Measured) -> list[str]:
    rest = [cell for cell in TABLE_2 if cell[1] != "N3" and cell not in EVEN]
    slow = [cell for cell in TABLE_2 if cell[1] == "N3"]

    def over_ring(system: str, cells: Sequence[tuple[str, str]]) -> str:
        return between([speed_up(m, cell, system) for cell in cells])

    computing = m.gain(BENCH, "^C2 N1, to 0.8, 1 s of computation$", A30, RING)
    tree = [speed_up(m, cell, STEP, TREE) for cell in TABLE_2]
    passed = [
        m.gain(BENCH, race(cell), system, f"{system}, whole")
        for cell in (("C1", "N1"), ("C1", "N2"), ("C2", "N2"))
        for system in (A30, STEP)
    ]
    replicated = _kept(m, f"within {NEAR:g}")
    return [
        "holds in part: where links (N2) or workers (C2) are uneven, A-60 is "
        f"{over_ring(A60, rest)} times as fast as a ring to the same accuracy and A-30 "
        f"{over_ring(A30, rest)} times "
        f"(paper: A-30, 1.23 to 2.96), {computing} times with 1 s of computation; where they "
        f"hardly are (C1 N1, C3 N1), A-30 is {over_ring(A30, EVEN)} times.",
        "does not: where half of the links have a tenth of the rate (N3), it is about as fast as a "
        f"ring (A-30 {over_ring(A30, slow)} times, A-60 {over_ring(A60, slow)}); in step, it is "
        f"{between(tree)} times as fast as a tree, and gains nothing over a good ring.",
        "is better: sums and models pass through workers packet by packet, "
        f"{between(passed)} times as fast as whole ones; plans take milliseconds; a killed server "
        f"costs less than a second, and with the replica on the way to the server, training makes "
        f"{replicated} of the gradients that it makes without one.",
    ]


def paper(m: Measured, pictures: list[tuple[str, str]]) -> Paper:
    return Paper(
        "MLfabric",
        "“Network-accelerated Distributed Machine Learning Using MLfabric” (Viswanathan and "
        "Akella).",
        "The paper trains ResNet-50 (100 MB) with 30 workers on 15 hosts, links of 1 to 10 Gbit/s "
        "drawn anew every 5 s (N1 to N3) and stragglers (C1 to C3). Here the model and the links "
        "are a hundredth, so that a transfer takes as long, and digits are learnt to 80 %.",
        _first(m),
        items(m),
        pictures,
    )
