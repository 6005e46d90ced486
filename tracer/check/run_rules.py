"""What must hold between the files of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from tracer.check.finding import ERROR, WARNING, Finding, and_more
from tracer.clocks import doubts, estimate
from tracer.errors import TraceError
from tracer.format.record import DATA_OPERATIONS, OPERATIONS, Bools, Ints, Trace
from tracer.grouping import group
from tracer.round_trip import MISSING, W_PULL_RECV, RoundTrips, round_trips
from tracer.run import Run

# What one end saw and the other end must have seen.
PAIRS = ((0, 4), (1, 5), (2, 6), (3, 7))


def run_findings(run: Run) -> Iterator[Finding]:
    yield from _missing_files(run)
    yield from _leaders(run)
    if not run.traces or not any(len(t.records) for t in run.traces):
        return
    try:
        table = round_trips(run)
    except TraceError as error:
        text = str(error).removeprefix(f"{run.path}: ").partition(";")[0]
        yield Finding(ERROR, "op_id", run.path or "the run", text)
        return
    yield from _counts(run, table)
    yield from _columns_agree(run, table)
    yield from _clocks(run, table)


def _missing_files(run: Run) -> Iterator[Finding]:
    for role, _, absent in run.missing():
        if absent:
            names = ", ".join(f"{role} {rank}" for rank in absent[:10])
            more = f" and {len(absent) - 10} more" if len(absent) > 10 else ""
            text = f"no file of {names}{more}"
            yield Finding(WARNING, "node-missing", run.path or role, text, len(absent))


def _leaders(run: Run) -> Iterator[Finding]:
    for trace in run.servers:
        if trace.leader is not None and trace.leader >= run.header.workers:
            text = f"is of worker {trace.leader}'s host, and the run has {run.header.workers}"
            yield Finding(ERROR, "peer", trace.path, text)


def _counts(run: Run, table: RoundTrips) -> Iterator[Finding]:
    """Each message that one end has, the other has too."""
    files = {trace.header.node: trace for trace in run.traces}
    seen, cut_short = table.times != MISSING, _cut_short(run, table)
    workers, servers = ([t.header.rank for t in role] for role in (run.workers, run.servers))
    both = np.isin(table.worker, workers) & np.isin(table.server, servers)
    kinds = [kind for one, two in PAIRS for kind in ((one, two, 1), (two, one, 0))]
    found: dict[tuple[int, int, int], Ints] = {}
    for number, (here, there, _) in enumerate(kinds):
        lacking = np.flatnonzero(both & seen[here] & ~seen[there])
        pairs = group(table.worker[lacking], table.server[lacking])
        rows_of_each = np.split(lacking[pairs.order], pairs.begin[1:])
        for worker, server, rows in zip(*(key.tolist() for key in pairs.keys), rows_of_each):
            found[worker, server, number] = rows
    for worker, server, number in sorted(found):
        ends = files[f"worker {worker}"], files[f"server {server}"]
        here, there, which = kinds[number]
        # A node hears of a switch at a step of its own.
        lacking = found[worker, server, number]
        lacking = lacking[ends[which].covers(table.iteration[lacking])]
        excused = cut_short[lacking] | _excused(ends, which)
        yield from _told("counts", table, lacking, excused, partial(_lacks, here, there))


def _lacks(here: int, there: int, what: str, _: int) -> str:
    return f"{OPERATIONS[here]} of {what} has no {OPERATIONS[there]}"


def _differs(name: str, values: Ints, pair: tuple[int, int], what: str, row: int) -> str:
    one, two = (f"{values[end][row]} in {OPERATIONS[end]}" for end in pair)
    return f"{what}: {name} is {one} and {two}"


def _told(
    rule: str, table: RoundTrips, rows: Ints, excused: Bools, says: Callable[[str, int], str]
) -> Iterator[Finding]:
    """The first of these round trips by name: an error, and a warning where it is excused."""
    for severity, some in ((ERROR, rows[~excused]), (WARNING, rows[excused])):
        if len(some):
            row = int(some[0])
            what = f"key {table.key[row]} in iteration {table.iteration[row]}"
            where = f"worker {table.worker[row]} and server {table.server[row]}"
            text = says(what, row) + and_more(len(some))
            yield Finding(severity, rule, where, text, len(some))


def _cut_short(run: Run, table: RoundTrips) -> Bools:
    """Round trips without an end at a node whose job failed, by its own account."""
    failed = {trace.header.node for trace in run.traces if trace.failed}
    workers = np.asarray([f"worker {w}" in failed for w in range(table.workers)])
    servers = np.asarray([f"server {s}" in failed for s in range(table.servers)])
    cut: Bools = ~table.has(W_PULL_RECV) & (workers[table.worker] | servers[table.server])
    return cut


def _excused(ends: tuple[Trace, Trace], which: int) -> bool:
    """Whether the file that lacks a record says itself that it lacks some."""
    end = ends[which]
    return bool(end.lost) or not end.complete or bool(end.problems)


def _columns_agree(run: Run, table: RoundTrips) -> Iterator[Finding]:
    """Length and num_pp are the same at both ends."""
    cut_short = _cut_short(run, table)
    for name in ("length", "num_pp"):
        values = _values(run, table, name)
        for one, two in PAIRS:
            known = (values[one] != MISSING) & (values[two] != MISSING)
            bad = np.flatnonzero(known & (values[one] != values[two]))
            says = partial(_differs, name, values, (one, two))
            yield from _told(name, table, bad, cut_short[bad], says)


def _values(run: Run, table: RoundTrips, name: str) -> Ints:
    """A column of the records, laid out as the round trips are."""
    places = table.places
    code = places.code(table.iteration, table.key, table.worker, table.server)
    out = np.full((DATA_OPERATIONS, len(table)), MISSING, np.int64)
    for trace in run.traces:
        iteration = trace.iteration()
        rows = np.flatnonzero(iteration >= 0)
        r = trace.records
        worker, server = trace.ends(rows)
        inside = (worker < table.workers) & (server < table.servers)  # all of these have a row
        rows, ends = rows[inside], (worker[inside], server[inside])
        wanted = places.code(iteration[rows], r.key[rows], *ends)
        out[r.operation[rows], np.searchsorted(code, wanted)] = r.column(name)[rows]
    return out


def _clocks(run: Run, table: RoundTrips) -> Iterator[Finding]:
    if not len(table):
        return
    alignment = estimate(run, table)
    where = run.path or "the run"
    for text in doubts(run, alignment):
        yield Finding(WARNING if alignment.consistent else ERROR, "clocks", where, text)
    if not alignment.consistent:
        return
    drifts = any(len(clock.add_us) > 1 for clock in alignment.clocks.values())
    if drifts:
        text = "clocks drift; they were aligned piece by piece"
        yield Finding(WARNING, "clocks", where, text)
    elif not alignment.notes_agree:
        text = "clock notes contradict the messages' times; the messages were believed"
        yield Finding(WARNING, "clocks", where, text)
