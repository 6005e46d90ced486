"""Puts the clocks of a run's nodes onto one, and says how well that is known.

Nothing arrives before it is sent: each message bounds how far one clock can be ahead of another.
Messages both ways bound it from both sides, and bounds add up along chains of nodes, so shortest
paths give the tightest interval that all messages allow. Its middle is the estimate, half its
width the uncertainty. Notes in the files (`clock ...`) are bounds as well. Clocks that drift too
far for one number per node are estimated anew in shorter windows of time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tracer import round_trip as rt
from tracer.format.record import MERCURY, Bools, Ints, Trace
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
    bounds = _bounds_of_messages(run, raw, np.ones(len(raw), np.bool_))
    both = _with_notes(run, bounds)
    for candidate, agree in ((both, True), (bounds, False)):
        offsets, within = _tightest(candidate)
        if offsets is not None:
            clocks = {
                node: _clock(node, [0.0], [-float(offsets[i])], float(within[i]))
                for i, node in enumerate(nodes)
            }
            return Alignment(clocks, agree)
    return _drifting(run, raw, nodes)


def _clock(node: str, at: list[float], add: list[float], within: float) -> ClockOffset:
    known = bool(np.isfinite(within))
    return ClockOffset(node, at, add if known else [0.0] * len(at), within if known else 0.0, known)


def _bounds_of_messages(run: Run, raw: RoundTrips, rows: Bools) -> Floats:
    """[i, j]: how far j's clock can be ahead of i's, at most. The last node is the scheduler."""
    place = {trace.header.node: i for i, trace in enumerate(run.traces)}
    size = len(run.traces) + 1
    bounds = np.full((size, size), np.inf)
    np.fill_diagonal(bounds, 0.0)
    for direction, messages in enumerate(MESSAGES[run.mode]):
        for sent, received in messages:
            known = rows & raw.has(sent, received)
            delay = raw.times[received][known] - raw.times[sent][known]
            pair = raw.worker[known] * raw.servers + raw.server[known]
            pairs = group(pair)
            least = pairs.least(delay + RESOLUTION_US)
            for number, bound in zip(pairs.keys[0].tolist(), least.tolist()):
                worker, server = divmod(number, raw.servers)
                ends = place[f"worker {worker}"], place[f"server {server}"]
                source, target = ends if direction == 0 else ends[::-1]
                bounds[source, target] = min(bounds[source, target], bound)
    # The sums of a host's workers are made by one of them, and by its clock.
    for server, worker in run.leaders.items():
        one, other = place.get(f"worker {worker}"), place.get(f"server {server}")
        if one is not None and other is not None:
            bounds[one, other] = bounds[other, one] = 0.0
    return bounds


def _with_notes(run: Run, bounds: Floats) -> Floats:
    out = bounds.copy()
    scheduler = len(run.traces)
    for place, trace in enumerate(run.traces):
        for add, within in clock_notes(trace):
            out[scheduler, place] = min(out[scheduler, place], -add + within)
            out[place, scheduler] = min(out[place, scheduler], add + within)
    return out


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


def _tightest(bounds: Floats) -> tuple[Floats | None, Floats]:
    """(how far each clock is ahead of the first, uncertainty); None if bounds contradict."""
    path = bounds.copy()
    for through in range(len(path)):
        path = np.minimum(path, path[:, through, None] + path[None, through, :])
    if (np.diag(path) < 0).any():
        return None, np.full(len(path), np.inf)
    most, least = path[0, :], -path[:, 0]
    within = (most - least) / 2
    with np.errstate(invalid="ignore"):
        middle = np.where(np.isfinite(within), (most + least) / 2, 0.0)
    return middle, within


def _drifting(run: Run, raw: RoundTrips, nodes: list[str]) -> Alignment:
    """Windows short enough that each has one number per clock.

    If some windows have none, however short, the others tell: wrong times are few, or there is
    nothing to be known.
    """
    start = raw.times[rt.W_PUSH_SEND]
    usable = start != rt.MISSING
    if not usable.any():
        return Alignment({node: ClockOffset(node) for node in nodes}, False, False)
    best: list[tuple[float, Floats, Floats]] = []
    for windows in WINDOWS:
        edges = np.quantile(start[usable], np.linspace(0, 1, windows + 1))
        inside = [
            usable & (start >= one) & (start <= two) for one, two in zip(edges[:-1], edges[1:])
        ]
        told = []
        for rows, middle in zip(inside, (edges[:-1] + edges[1:]) / 2):
            ahead, within = _tightest(_bounds_of_messages(run, raw, rows))
            if ahead is not None:
                told.append((float(middle), ahead, within))
        whole = len(told) == windows
        if whole or (len(told) > windows / 2 and not best):  # short ones tell less
            best = told
        if whole:
            break
    clocks = {}
    for i, node in enumerate(nodes):
        add = [-float(ahead[i]) for _, ahead, _ in best]
        moments = [middle - a for (middle, _, _), a in zip(best, add)]
        within_us = max((float(within[i]) for _, _, within in best), default=0.0)
        clocks[node] = _clock(node, moments or [0.0], add or [0.0], within_us)
    return Alignment(clocks, False, whole)
