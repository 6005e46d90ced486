"""Three sentences to act on: what a job waits for, what would help most, how far that is to be
trusted.

The first is measured, the others are the simulator's: the run is replayed as it was, and with one
thing changed at a time. Gains are relative to the first replay, so that part of its error cancels.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pslite_ext.forecast.model import ModelError
from tracer.analysis.overheads import computation
from tracer.errors import TraceError
from tracer.format.record import MERCURY
from tracer.grouping import group
from tracer.hosts import by_host
from tracer.replay import Conditions, Recorded, own_policy, recorded, replay
from tracer.replay.recorded import from_round_trips
from tracer.replay.replay import ERROR_GOOD, ERROR_MOST, PACKET_BYTES
from tracer.report.waits import Waits, waits
from tracer.round_trip import W_PUSH_SEND, RoundTrips
from tracer.run import Run

HELPS = 0.02  # of an iteration: less is not worth the trouble
ITERATIONS_MOST, ITERATIONS_LEAST = 20, 4  # of the middle of the run, that are replayed
EVENTS = 100_000  # of a replay, about: a second
EVENTS_A_PACKET = 8
POLICIES = {"mercury": "priority", "fifo": "fifo", "bytescheduler": "bytescheduler"}


@dataclass(frozen=True)
class Advice:
    waits: str
    helps: str
    trust: str
    values: dict[str, Any] = field(default_factory=dict)  # the same for programs

    @property
    def sentences(self) -> tuple[str, str, str]:
        return self.waits, self.helps, self.trust


def advise(run: Run, table: RoundTrips) -> Advice:
    """`table` has the run's round trips on one clock."""
    seen = waits(table)
    first = _what_it_waits_for(seen)
    shares = {} if seen is None else vars(seen)
    try:
        found = _middle(recorded(run, table))
        mended: dict[str, Recorded] = {}
        if seen is not None and seen.slow_worker is not None:
            even = by_host(_as_fast_as_others(table, seen.slow_worker))
            ready_s = _middle(from_round_trips(even, run.path)).ready_s
            worker = f"worker {seen.slow_worker} as fast as the others"
            mended[worker] = replace(found, ready_s=ready_s)
        own_s, gains = _gains(found, mended)
    except (TraceError, ModelError) as error:
        why = f"What would help is not known, because the run cannot be replayed: {error}."
        return Advice(first, why, "So only what was measured is to be trusted here.", shares)
    off = own_s / found.mean_s - 1
    values = {**shares, "self_check_error": off, "gains": gains}
    return Advice(first, _what_helps(gains, own_s, abs(off) <= ERROR_MOST), _trust(off), values)


def _what_it_waits_for(seen: Waits | None) -> str:
    if seen is None:
        return "What this job waits for is not known: no two whole iterations in a row are there."
    parts = {
        "computation": seen.computation,
        "waiting for links": seen.links,
        "the servers' updates": seen.updates,
    }
    if seen.slow_worker is not None:
        parts[f"waiting for worker {seen.slow_worker}, slower than the others"] = seen.slow
    ordered = sorted(parts, key=lambda name: -parts[name])
    shown = ", ".join(f"{parts[name]:.0%} {name}" for name in ordered)
    return f"An iteration of {_time(seen.iteration_us / 1e6)} is {shown}."


def _middle(found: Recorded) -> Recorded:
    """As many iterations as can be replayed in short."""
    packets = found.bytes.sum() / (_packet_bytes(found) or PACKET_BYTES)
    events = EVENTS_A_PACKET * found.workers * max(packets, len(found.names))
    most = int(np.clip(EVENTS / events, ITERATIONS_LEAST, ITERATIONS_MOST))
    begin = max(0, (len(found.ready_s) - most) // 2)
    part = slice(begin, begin + most)
    return replace(found, ready_s=found.ready_s[part], iteration_s=found.iteration_s[part])


def _as_fast_as_others(table: RoundTrips, worker: int) -> RoundTrips:
    """The same pushes, had this worker computed no longer up to each than the others' median."""
    every = computation(table).by_key
    mine = every["worker"] == worker
    place = table.places.code(every["iteration"], every["key"], 0, 0)
    others = group(place[~mine])
    usual = np.append(others.median(every["us"][~mine]), np.inf)  # of pushes that it alone has
    at = np.searchsorted(others.keys[0], place[mine])
    at[~np.isin(place[mine], others.keys[0])] = -1
    longer = np.maximum(every["us"][mine] - usual[at], 0).astype(np.int64)
    rows = np.flatnonzero(table.worker == worker)
    wanted = table.places.code(table.iteration[rows], table.key[rows], 0, 0)
    known = np.isin(wanted, place[mine])
    times = table.times.copy()
    times[W_PUSH_SEND, rows[known]] -= longer[np.searchsorted(place[mine], wanted[known])]
    return replace(table, times=times)


def _packet_bytes(found: Recorded) -> float | None:
    """Of large jobs they are larger, so that a replay takes seconds. None: as they were."""
    most = EVENTS / (EVENTS_A_PACKET * found.workers * ITERATIONS_LEAST)
    least = float(found.bytes.sum()) / most
    return least if least > PACKET_BYTES else None


def _gains(found: Recorded, mended: dict[str, Recorded]) -> tuple[float, dict[str, float]]:
    """Seconds of an iteration replayed as it was; by what would be changed, how much shorter it
    would be, as a share. `mended` are jobs of which that is asked as well, by name."""

    def seconds(job: Recorded, **conditions: Any) -> float:
        return replay(job, Conditions(packet_bytes=packet, **conditions)).mean_s

    packet = _packet_bytes(found)
    own = seconds(found)
    network = found.network
    faster = replace(network, bandwidth=2 * network.bandwidth, connection=2 * network.connection)
    fewer = [[(server, size / 2) for server, size in parts] for parts in found.shares]
    took = {
        "links twice as fast": seconds(replace(found, network=faster)),
        "half the bytes": seconds(replace(found, shares=fewer)),
        "updates that take no time": seconds(
            replace(found, update_s=0 * found.update_s, search_s=0 * found.search_s)
        ),
    }
    took.update((name, seconds(job)) for name, job in mended.items())
    others_s = {
        word: seconds(found, policy=name)
        for name, word in POLICIES.items()
        if name != own_policy(found)
    }
    best = min(others_s, key=lambda word: others_s[word])
    mode = "" if found.mode == MERCURY else "mercury mode with "
    took[f"{mode}the policy {best}"] = others_s[best]
    return own, {name: 1 - after / own for name, after in took.items()}


def _what_helps(gains: dict[str, float], own_s: float, trusted: bool) -> str:
    if not trusted:
        return "What would help is not known, because the simulator does not fit this run."
    ordered = sorted(gains, key=lambda name: -gains[name])
    best = ordered[0]
    rest = ", ".join(f"{name} {max(0.0, gains[name]):.0%}" for name in ordered[1:])
    if gains[best] < HELPS:
        return (
            f"Nothing that the simulator knows would make an iteration {HELPS:.0%} shorter, only "
            f"faster computation would ({best} {max(0.0, gains[best]):.1%}, {rest})."
        )
    shorter = _time(own_s * gains[best])
    return (
        f"By the simulator, {best} would help most: an iteration would be {gains[best]:.0%} "
        f"({shorter}) shorter at best ({rest})."
    )


def _trust(error: float) -> str:
    off = f"{abs(error):.1%} {'longer' if error > 0 else 'shorter'} than it was"
    if abs(error) > ERROR_MOST:
        return f"Replayed as recorded, an iteration is {off}: do not rely on replays of this run."
    if abs(error) > ERROR_GOOD:
        return (
            f"Replayed as recorded, an iteration is {off}: take what would help as give or take "
            f"{abs(error):.0%} of an iteration."
        )
    return f"Replayed as recorded, an iteration is {off}: the simulator fits this run."


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
