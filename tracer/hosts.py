"""Runs in which several workers share a host: what belongs together.

The host's sums are a server of their own in the traces (docs/trace-format.md): the leader's host's
other workers push to it, and the leader sends what they have brought, with its own, to the servers.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from tracer import round_trip as rt
from tracer.format.record import Ints
from tracer.grouping import group
from tracer.round_trip import RoundTrips


class HostRows:
    """Which row of a table belongs to which, within a host."""

    def __init__(self, rows: RoundTrips) -> None:
        self._rows = rows
        self._leader_of = np.full(rows.servers, -1, np.int64)  # by server
        for server, worker in rows.leaders.items():
            if server < rows.servers:
                self._leader_of[server] = worker
        self.at_host = self._leader_of[rows.server] >= 0

    @cached_property
    def _last_sum(self) -> tuple[Ints, Ints]:
        away = np.flatnonzero(~self.at_host)
        return self._by_place(away, self._rows.worker[away], rt.W_PULL_RECV)

    @cached_property
    def _last_push(self) -> tuple[Ints, Ints]:
        here = np.flatnonzero(self.at_host)
        return self._by_place(here, self._leader_of[self._rows.server[here]], rt.S_PUSH_RECV)

    def leaders_row(self, at: Ints) -> Ints:
        """Of rows at a host's sums: the leader's whose sum came last; -1: there is none."""
        return self._look(self._last_sum, at, self._leader_of[self._rows.server[at]])

    def others_row(self, at: Ints) -> Ints:
        """Of rows of a leader: the other worker's whose push came last; -1: there is none."""
        return self._look(self._last_push, at, self._rows.worker[at])

    def last_within(self, at: Ints) -> tuple[Ints, Ints]:
        """Of rows of leaders: who came last into the host's sum, and by how much; -1: not known.

        Nothing of the leader's own travels within the host: it is there when it is handed over.
        """
        rows = self._rows
        others = np.flatnonzero(self.at_host & rows.has(rt.S_PUSH_RECV))
        own = np.flatnonzero(~self.at_host & rows.has(rt.W_PUSH_SEND))
        codes = (
            self._code(others, self._leader_of[rows.server[others]]),
            self._code(own, rows.worker[own]),
        )
        times = rows.times[rt.S_PUSH_RECV][others], rows.times[rt.W_PUSH_SEND][own]
        code = np.concatenate(codes)
        both = np.isin(code, np.intersect1d(*codes))
        # Of a tensor in pieces, the leader has a row each.
        each = group(code[both], rows.worker[np.append(others, own)][both])
        hosts = group(each.keys[0])
        last, by = hosts.lead(each.most(np.concatenate(times)[both]))
        found = self._look((hosts.keys[0], np.arange(len(hosts))), at, rows.worker[at])
        return np.append(each.keys[1][last], -1)[found], np.append(by, -1)[found]

    def _code(self, index: Ints, worker: Ints) -> Ints:
        rows = self._rows
        width = int(rows.key.max(initial=0)) + 1
        code: Ints = (rows.iteration[index] * width + rows.key[index]) * rows.workers + worker
        return code

    def _by_place(self, index: Ints, worker: Ints, instant: int) -> tuple[Ints, Ints]:
        groups = group(self._code(index, worker))
        return groups.keys[0], index[groups.row_of_most(self._rows.times[instant][index])]

    def _look(self, table: tuple[Ints, Ints], at: Ints, worker: Ints) -> Ints:
        codes, rows = table
        if not len(codes):
            return np.full(len(at), -1, np.int64)
        wanted = self._code(at, worker)
        place = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
        found: Ints = np.where(codes[place] == wanted, rows[place], -1)
        return found


def by_host(rows: RoundTrips) -> RoundTrips:
    """A run of hosts instead of workers: each sends its copy when its last worker has given it."""
    if not rows.leaders:
        return rows
    leader = np.arange(rows.workers)
    for server, worker in rows.leaders.items():
        leader[np.unique(rows.worker[rows.server == server])] = worker
    hosts = np.unique(leader)
    at = np.searchsorted(hosts, leader[rows.worker])
    given = group(rows.iteration, rows.key, at)
    last = given.most(rows.times[rt.W_PUSH_SEND])[given.index]
    keep = (leader[rows.worker] == rows.worker) & ~HostRows(rows).at_host
    moved = replace(rows, worker=at, times=rows.times.copy())
    known = rows.has(rt.W_PUSH_SEND)
    moved.times[rt.W_PUSH_SEND] = np.where(known, last, rt.MISSING)
    real = rows.servers - len(rows.leaders)
    kept = moved.take(np.flatnonzero(keep))
    return replace(kept, workers=len(hosts), servers=real, leaders={})
