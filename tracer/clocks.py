"""Puts the clocks of a run's nodes onto one, and says how well that is known.

Nothing arrives before it is sent: each message bounds how far one clock can be ahead of another.
Messages both ways bound it from both sides, and bounds add up along chains of nodes, so shortest
paths give the tightest interval that all messages allow. Its middle is the estimate, half its
width the uncertainty. Notes in the files (`clock ...`) are bounds as well. Clocks that drift too
far for one number per node are estimated anew in windows of fewer iterations.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tracer import round_trip as rt
from tracer.format.record import MERCURY, Ints, Trace
from tracer.grouping import group
from tracer.round_trip import RoundTrips, round_trips
from tracer.run import Run

Floats = npt.NDArray[np.float64]
WINDOWS = (2, 4, 8, 16, 32, 64)  # of a run whose clocks drift, tried in turn
RESOLUTION_US = 1.0  # times are cut to whole microseconds
MESSAGES = {  # pairs (sent, received)
    "zmq": (
        ((rt.W_PUSH_SEND, rt.S_PUSH_RECV), (rt.W_PULL_SEND, rt.S_PULL_RECV)),
        ((rt.S_PUSH_SEND, rt.W_PUSH_RECV), (rt.S_PULL_SEND, rt.W_PULL_RECV)),
    ),
    MERCURY: (
        ((rt.W_PUSH_SEND, rt.S_PUSH_RECV), (rt.W_PUSH_RECV, rt.S_PUSH_SEND)),
        ((rt.S_PULL_RECV, rt.W_PULL_SEND), (rt.S_PULL_SEND, rt.W_PULL_RECV)),
    ),
}


Point = tuple[float, float, float]  # at_us by the node's clock, add_us, within_us


@dataclass(frozen=True)
class Bounds:
    """How far some clocks can be ahead of others, at most. The last node is the scheduler."""

    nodes: int
    source: Ints  # the node that is behind, by place
    target: Ints  # the one that is ahead
    most: Floats
    longest: int  # no way needs more steps unless it passes a node twice


@dataclass
class ClockOffset:
    """What to add to a node's times. Several points where clocks drift: linear between them."""

    node: str
    at_us: list[float] = field(default_factory=lambda: [0.0])
    add_us: list[float] = field(default_factory=lambda: [0.0])
    within_us: float = 0.0
    known: bool = True  # False: nothing ties this node to the others

    def add(self, time: Ints) -> Ints:
        if len(self.add_us) == 1:
            return np.full(len(time), round(self.add_us[0]), np.int64)
        return np.rint(np.interp(time, self.at_us, self.add_us)).astype(np.int64)


@dataclass
class Alignment:
    """A clock for each node, and how far they can be trusted."""

    clocks: dict[str, ClockOffset]
    notes_agree: bool = True  # False: what the files say of clocks contradicts their messages
    consistent: bool = True  # False: in some windows, however short, no clocks explain the times


def aligned(run: Run) -> tuple[RoundTrips, Alignment]:
    """The round trips of a run in the time of its first node, and how that was found."""
    raw = round_trips(run)
    alignment = estimate(run, raw)
    moves = {
        trace.header.node: alignment.clocks[trace.header.node].add(trace.records.time)
        for trace in run.traces
        if any(alignment.clocks[trace.header.node].add_us)
    }
    return (round_trips(run, moves) if moves else raw), alignment


def doubts(run: Run, alignment: Alignment) -> list[str]:
    """In words, what there is to be said against the times of the run."""
    if not (run.workers and run.servers):
        return []
    if not alignment.consistent:
        return ["messages arrive before they are sent, whatever the clocks: times are wrong"]
    return [
        f"nothing ties the clock of {clock.node} to the others; its times are as written"
        for clock in alignment.clocks.values()
        if not clock.known
    ]


def estimate(run: Run, raw: RoundTrips) -> Alignment:
    """Each node's clock against the first node's; `raw` are the round trips in their own times."""
    nodes = [trace.header.node for trace in run.traces]
    bounds = _bounds_of_messages(run, raw)
    both = _with_notes(run, bounds)
    for candidate, agree in ((both, True), (bounds, False)):
        ahead, within = tightest(candidate)
        if ahead is not None:
            clocks = {
                node: _clock(node, [(0.0, -add, width)] if np.isfinite(width) else [])
                for node, add, width in zip(nodes, ahead.tolist(), within.tolist())
            }
            return Alignment(clocks, agree)
    return _drifting(run, raw, nodes)


def _clock(node: str, points: list[Point]) -> ClockOffset:
    """By what some moments told of it."""
    if not points:
        return ClockOffset(node, known=False)
    at, add, within = zip(*sorted(points))
    return ClockOffset(node, list(at), list(add), max(within))


def _bounds_of_messages(run: Run, raw: RoundTrips) -> Bounds:
    place = {trace.header.node: i for i, trace in enumerate(run.traces)}
    workers, servers = (
        np.asarray([place.get(f"{role} {rank}", -1) for rank in range(count)], np.int64)
        for role, count in (("worker", raw.workers), ("server", raw.servers))
    )
    found: list[tuple[Ints, Ints, Floats]] = []
    for direction, messages in enumerate(MESSAGES[run.mode]):
        for sent, received in messages:
            known = np.flatnonzero(raw.has(sent, received))
            delay = raw.times[received][known] - raw.times[sent][known]
            pairs = group(raw.worker[known] * raw.servers + raw.server[known])
            worker, server = np.divmod(pairs.keys[0], raw.servers)
            ends = workers[worker], servers[server]
            source, target = ends if direction == 0 else ends[::-1]
            found.append((source, target, pairs.least(delay + RESOLUTION_US)))
    alike = _alike(run)
    found.append((alike.ravel(), alike[:, ::-1].ravel(), np.zeros(alike.size)))
    source, target, most = (np.concatenate(column) for column in zip(*found))
    # A way leads to a worker at every second step, or to a server, but for the scheduler.
    longest = 2 * (min(len(run.workers), len(run.servers)) + 1)
    return Bounds(len(run.traces) + 1, source, target, most, longest)


def _alike(run: Run) -> Ints:
    """Pairs of nodes by one clock: the sums of a host's workers are made by one of them."""
    place = {trace.header.node: i for i, trace in enumerate(run.traces)}
    pairs = [
        (place[f"worker {leader}"], place[f"server {server}"])
        for server, leader in run.leaders.items()
        if f"worker {leader}" in place
    ]
    return np.asarray(pairs, np.int64).reshape(-1, 2)


def _with_notes(run: Run, bounds: Bounds) -> Bounds:
    scheduler = len(run.traces)
    notes = [
        (place, add, within)
        for place, trace in enumerate(run.traces)
        for add, within in clock_notes(trace)
    ]
    source, target, most = bounds.source, bounds.target, bounds.most
    if notes:
        places, adds, withins = (np.asarray(column) for column in zip(*notes))
        schedulers = np.full(len(notes), scheduler)
        source = np.concatenate((source, schedulers, places))
        target = np.concatenate((target, places, schedulers))
        most = np.concatenate((most, withins - adds, withins + adds))
    return replace(bounds, source=source, target=target, most=most)


def clock_notes(trace: Trace) -> list[tuple[float, float]]:
    """(add_us, within_us) of `clock SEC USEC add_us A within_us B`."""
    found = []
    for note in trace.notes:
        words = note.words
        if len(words) == 7 and words[0] == "clock" and words[3::2] == ["add_us", "within_us"]:
            try:
                found.append((float(words[4]), float(words[6])))
            except ValueError:
                continue
    return found


def tightest(bounds: Bounds, reference: int = 0) -> tuple[Floats | None, Floats]:
    """(how far each clock is ahead of the reference, uncertainty); None if bounds contradict."""
    there, back = (bounds.source, bounds.target), (bounds.target, bounds.source)
    unknown = np.full(bounds.nodes, np.inf)
    # Only round a contradiction do ways from anywhere become shorter for ever.
    if _shortest(bounds, *there, np.zeros(bounds.nodes)) is None:
        return None, unknown
    start = unknown.copy()
    start[reference] = 0.0
    most, least = _shortest(bounds, *there, start), _shortest(bounds, *back, start)
    assert most is not None, "nothing contradicts"
    assert least is not None, "nor backwards"
    within = (most + least) / 2
    with np.errstate(invalid="ignore"):
        middle = np.where(np.isfinite(within), (most - least) / 2, 0.0)
    return middle, within


def _shortest(bounds: Bounds, source: Ints, target: Ints, start: Floats) -> Floats | None:
    """Each node's way from where it starts with that much; None if there is a shorter one always.

    Every round goes a step further on all ways at once.
    """
    ends = group(target)
    reached = start.copy()
    for _ in range(bounds.longest + 1):
        before = reached.copy()
        least = ends.least(before[source] + bounds.most)
        reached[ends.keys[0]] = np.minimum(before[ends.keys[0]], least)
        if (reached == before).all():
            return reached
    return None


@dataclass(frozen=True)
class _Window:
    """What a part of a run tells, of each node: infinite or nan where it tells nothing."""

    reference: int
    at: Floats  # by the node's own clock
    ahead: Floats  # of the reference
    within: Floats


def _drifting(run: Run, raw: RoundTrips, nodes: list[str]) -> Alignment:
    """Windows short enough that each has one number per clock.

    They are of whole iterations, which all nodes count alike whatever their clocks say. If some
    windows have no such numbers, however short, the others tell: wrong times are few, or there is
    nothing to be known.
    """
    _, first = np.unique(raw.iteration, return_index=True)
    begins = np.append(first, len(raw))
    best: list[_Window] = []
    for count in WINDOWS:
        cuts = np.unique(np.linspace(0, len(first), count + 1).round().astype(np.int64))
        windows = [np.arange(*ends) for ends in zip(begins[cuts[:-1]], begins[cuts[1:]])]
        told = [window for rows in windows if (window := _window(run, raw.take(rows)))]
        whole = len(told) == len(windows)
        if whole or (len(told) > len(windows) / 2 and not best):  # short ones tell less
            best = told
        if whole:
            break
    points: list[list[Point]] = [[(0.0, 0.0, 0.0)], *([] for _ in nodes[1:])]
    # Where the first node is missing, the others are known by one that was tied to it elsewhere.
    for window in sorted(best, key=lambda window: window.reference):
        base = _clock(nodes[window.reference], points[window.reference])
        if not base.known:
            continue
        add = np.interp(window.at[window.reference], base.at_us, base.add_us) - window.ahead
        for i in np.flatnonzero(np.isfinite(window.within + window.at)).tolist():
            if i:
                within = base.within_us + float(window.within[i])
                points[i].append((float(window.at[i]), float(add[i]), within))
    clocks = {node: _clock(node, known) for node, known in zip(nodes, points)}
    return Alignment(clocks, False, whole)


def _window(run: Run, raw: RoundTrips) -> _Window | None:
    """By its own reference, the first node that it has messages of; None if they contradict."""
    bounds, at = _bounds_of_messages(run, raw), _moments(run, raw)
    there = bounds.source[np.isfinite(at[bounds.source])]
    reference = int(there.min(initial=len(run.traces) - 1))
    ahead, within = tightest(bounds, reference)
    return None if ahead is None else _Window(reference, at, ahead, within)


def _moments(run: Run, raw: RoundTrips) -> Floats:
    """The middle of each node's times, by its own clock; nan: it has none."""
    found = np.full(len(run.traces) + 1, np.nan)
    place = {trace.header.node: i for i, trace in enumerate(run.traces)}
    for role, ranks, times in (
        ("worker", raw.worker, raw.times[: rt.S_PUSH_RECV]),
        ("server", raw.server, raw.times[rt.S_PUSH_RECV :]),
    ):
        known = (times != rt.MISSING).any(axis=0)
        last = times[:, known].max(axis=0)
        first = np.where(times[:, known] == rt.MISSING, last, times[:, known]).min(axis=0)
        groups = group(ranks[known])
        middle = groups.sorted_rows(first + last)[groups.begin + groups.count() // 2]
        for rank, at in zip(groups.keys[0].tolist(), (first + last)[middle].tolist()):
            found[place[f"{role} {rank}"]] = at / 2
    alike = _alike(run)
    own = found[alike]
    found[alike] = np.where(np.isnan(own), own[:, ::-1], own)
    return found
