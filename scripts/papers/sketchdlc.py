"""SketchDLC: every table and figure of its evaluation."""

from __future__ import annotations

import re
from dataclasses import replace

from scripts.lab.report.results import number
from scripts.papers.item import Item, Paper, doc, page
from scripts.papers.measured import Asked, Measured
from scripts.papers.quantity import Quantity, between, most

BENCH = "captures"
CLASSIC, PACKETS = "zmq", "mercury-mercury"  # modes
PAPER = "SketchDLC's paper"
NETWORKS = ("LeNet-5", "ResNet-50")
DATA, LENGTHS = "data of", "bytes beside"
PHASES, OVERHEADS = "phases", "overheads"
FAST = " 10000 Mbit/s"
SPENT = "workers' processor time, more by"


def figure(m: Measured, network: str, table: str, metric: str, system: str) -> Quantity:
    return m.one(BENCH, f"^{network}: {table}", re.escape(system), re.escape(metric), FAST)


def _compared(m: Measured, name: str, table: str, metric: str, unit: str, shows: str) -> Item:
    """One figure of both networks in both modes, beside the paper's."""
    theirs, ours, ratios = [], [], []
    for network in NETWORKS:
        paper, classic, packets = (
            figure(m, network, table, metric, system).bare() for system in (PAPER, CLASSIC, PACKETS)
        )
        theirs.append(f"{network} {number(paper.median) if paper.known else paper}")
        ours.append(f"{network} {classic} (zmq), {packets} (mercury)")
        if classic.known and paper.known:
            ratios.append(number(classic.median / paper.median))
    return Item(
        name,
        f"{shows}, {unit}: {', '.join(theirs)}",
        "; ".join(ours),
        page(BENCH),
        ratio=", ".join(ratios) + " (zmq)" if ratios else "",
        remarks=REMARKS.get(metric, ""),
    )


REMARKS = {
    "to the server": "the networks are the paper's; the data are digits, enlarged",
    "computation": "one processor shared by all nodes, where the paper has a GPU for each worker",
    "overlap": "grows with the time that computation takes",
    "update": "sums of float32 in the server's transport; the paper's server runs the optimizer",
    "search": "no search for a key's state: it hangs on the message",
    "synchronisation": "how far apart two workers on two busy cores come to a key",
}


def _lengths(m: Measured) -> Item:
    def of(name: str, system: str) -> str:
        ends = [
            figure(m, "LeNet-5", LENGTHS, f"{name}, {which}", system) for which in ("least", "most")
        ]
        return between([end.bare() for end in ends])

    names = ("push", "confirmation", "request", "answer")
    theirs, ours = (", ".join(f"{x} {of(x, s)}" for x in names) for s in (PAPER, CLASSIC))
    return Item(
        "Tables 6, 7",
        f"bytes of a message beside its payload: {theirs}",
        f"{ours} (zmq); mercury: push {of('push', PACKETS)}, answer {of('answer', PACKETS)} of a "
        "whole tensor's packets",
        page(BENCH),
        remarks="ours have an envelope of 64 bytes with a checksum, and ps-lite's meta; "
        f"{doc('trace-format')} says what is counted",
    )


def _cost(m: Measured) -> Item:
    def of(network: str, metric: str) -> str:
        both = [figure(m, network, "cost of", metric, s) for s in (CLASSIC, PACKETS)]
        return f"{both[0].times(1.0, '%')} and {both[1].times(1.0, '%')}"

    return Item(
        "cost of capture",
        "not given",
        "; ".join(
            f"{network}: an iteration is longer by {of(network, 'longer by')}, workers' processor "
            f"time by {of(network, SPENT)}"
            for network in NETWORKS
        ),
        page(BENCH),
        remarks="zmq and mercury; captured and not captured jobs took turns. No cost can be seen, "
        "for jobs differ by more; why captured ones are even faster is not known",
    )


def _replay(m: Measured) -> Item:
    rows = m.rows_of(Asked(BENCH, "replayed$", ".*", "replayed / measured"))
    own: list[Quantity] = []
    far: list[Quantity] = []
    for row in rows:
        captured = re.search(r"captured at (\d+) Mbit", row.what)
        at_own = captured is not None and f" {captured[1]} Mbit/s" in row.setting
        (own if at_own else far).append(Quantity(tuple(row.values)))
    off = [Quantity((100 * abs(q.median - 1),)) for q in far]
    metric = "replayed with that computation / measured"
    told = [Quantity(tuple(r.values)) for r in m.rows_of(Asked(BENCH, "replayed$", ".*", metric))]
    knowing = f"; {between(told)} where it is told of the computation there" if told else ""
    return Item(
        "future work: simulation from traces",
        "a plan",
        f"replayed / measured: {between(own)} at the captured rate, {between(far)} at three other "
        f"rates, at most {most(off)} % off{knowing}",
        page(BENCH),
        model="this is the simulator",
        remarks="two networks, both modes; computation differs between runs on a shared machine, "
        "too: the page has by how much",
    )


def items(m: Measured) -> list[Item]:
    def compared(name: str, table: str, metric: str, unit: str, shows: str) -> Item:
        return _compared(m, name, table, metric, unit, shows)

    return [
        Item(
            "Figs. 1 to 7",
            "concepts, phases, overheads",
            "defined so",
            f"{doc('traces')}, {doc('trace-format')}",
        ),
        Item(
            "Table 1",
            "twelve columns of a record",
            "the same twelve",
            doc("trace-format"),
        ),
        Item(
            "Tables 2 to 4, Algorithm 1",
            "where each message is captured",
            "in the core, by a ring and a thread of its own; a binary form is a third as long",
            doc("trace-format"),
        ),
        compared("Table 5", DATA, "to the server", "MB", "data of a worker's iteration"),
        _lengths(m),
        Item(
            "Fig. 8",
            "a fragment of a trace",
            "read by a test",
            "tests/trace/figure_8.py",
        ),
        compared("Fig. 9, computation", PHASES, "computation", "ms", "of an iteration"),
        replace(
            compared("Fig. 9, communication", PHASES, "communication", "ms", "of an iteration"),
            remarks="over 10 Gbit/s instead of 56, by cores that also compute",
        ),
        compared("Fig. 10", PHASES, "overlap", "%", "communication that computation hides"),
        compared("Figs. 11, 12", OVERHEADS, "update", "us", "update of a key, mean"),
        compared("Figs. 13, 14", OVERHEADS, "search", "us", "search, mean"),
        compared("Figs. 15, 16", OVERHEADS, "computation", "ms", "computation, mean"),
        compared("Figs. 17, 18", OVERHEADS, "synchronisation", "us", "synchronisation, mean"),
        Item(
            "wait overhead",
            "defined, not evaluated",
            "a table of `mercury trace report`",
            doc("traces"),
        ),
        _cost(m),
        _replay(m),
        Item(
            "future work: larger clusters, sums in the network",
            "a plan",
            "`mercury sim cluster --aggregate switch`, `mercury sim replay --workers 16`",
            doc("model"),
            model="simulated only",
        ),
    ]


def _first(m: Measured) -> list[str]:
    overlaps = {
        (n, system): figure(m, n, PHASES, "overlap", system).times(1.0, "%")
        for n in NETWORKS
        for system in (CLASSIC, PACKETS)
    }
    replayed = m.rows_of(Asked(BENCH, "replayed$", ".*", "replayed / measured"))
    return [
        "holds: a small network hides little of its communication and a deep one most of it "
        f"({overlaps['LeNet-5', CLASSIC]} and {overlaps['ResNet-50', CLASSIC]} in zmq mode; paper: "
        "12 and 66 %); data and columns are the paper's.",
        "does not: times are those of two shared cores, not of K80s and 56 Gbit/s, so as packets "
        f"the deep one hides {overlaps['ResNet-50', PACKETS]} only; messages are longer than the "
        "paper's by an envelope.",
        "is better: clocks are aligned; a capture can be replayed under other conditions, within "
        f"{between([Quantity(tuple(row.values)) for row in replayed])} of what was measured there.",
    ]


def paper(m: Measured, pictures: list[tuple[str, str]]) -> Paper:
    return Paper(
        "SketchDLC",
        "“SketchDLC: A Sketch on Distributed Deep Learning Communication via Trace Capturing” (Xu "
        "et al.).",
        "The paper has two workers with K80s, one server and links of 56 Gbit/s. Here the same "
        "networks train on digits, on the processors that all nodes share, with links of 10 "
        "Gbit/s; both of our modes are captured.",
        _first(m),
        items(m),
        pictures,
    )
