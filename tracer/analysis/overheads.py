"""Where does the time of an iteration go: computation, search, update, synchronisation, wait?

computation      last Pull_Recv_Worker to last Push_Send_Worker of the next iteration
search           Pull_Recv_Server to Pull_Send_Server of one key and worker; from the sum's
                 confirmation on, if it was asked for ahead
synchronisation  first to last Push_Recv_Server of one key in one iteration; asynchronous: none
update           last Push_Recv_Server to first Push_Send_Server of one key in one iteration;
                 asynchronous training: Push_Recv_Server to Push_Send_Server of one worker
wait             first to last Pull_Recv_Worker of one iteration

Per key, computation ends with that key's Push_Send_Worker and wait with its Pull_Recv_Worker; of a
tensor in pieces with the last piece's. Where tensors travel as packets, a server's Push_Send is the
last packet in and its Pull_Send the last sum out, so update is last packet in to first tensor out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracer import round_trip as rt
from tracer.analysis.phases import edges, follows
from tracer.analysis.summary import (
    curves,
    distributions,
    distributions_per_key,
    of_each_key,
    per_key,
    summaries,
)
from tracer.format.record import ASYNCHRONOUS, Bools, Ints
from tracer.grouping import group
from tracer.round_trip import RoundTrips
from tracer.table import Section, Table

NAME, TITLE = "overheads", "Overheads"
QUESTION = "Where does the time of an iteration go?"
KINDS = ("computation", "search", "update", "synchronisation", "wait")
CURVES_MOST, CURVE_POINTS_OF_A_KEY = 8, 21  # in a picture; the tables have all keys


@dataclass
class Samples:
    """One overhead: each time it occurred, as a whole and by key."""

    kind: str
    overall: Table
    by_key: Table


def overheads(table: RoundTrips) -> list[Samples]:
    return [kind(table) for kind in (computation, search, update, synchronisation, wait)]


def computation(table: RoundTrips) -> Samples:
    edge = edges(table)
    now = follows(edge)
    overall = Table(
        "computation",
        {
            "worker": edge["worker"][now],
            "iteration": edge["iteration"][now],
            "us": edge["last_push"][now] - edge["before"][now],
        },
    )
    return Samples("computation", overall, _worker_keys(table, rt.W_PUSH_SEND, "computation"))


def wait(table: RoundTrips) -> Samples:
    edge = edges(table)
    overall = Table(
        "wait",
        {
            "worker": edge["worker"],
            "iteration": edge["iteration"],
            "us": edge["last_answer"] - edge["first_answer"],
        },
    )
    return Samples("wait", overall, _worker_keys(table, rt.W_PULL_RECV, "wait"))


def _worker_keys(table: RoundTrips, end: int, kind: str) -> Table:
    """Per worker, iteration and key: from the overhead's beginning to the key's own end of it."""
    edge = edges(table)
    if kind == "computation":
        now = follows(edge)
        since = edge["before"][now]
    else:
        now = np.arange(len(edge["worker"]))
        since = edge["first_answer"]
    rows = table.take(table.has(rt.W_PUSH_SEND, rt.W_PULL_RECV))
    groups = group(rows.worker, rows.iteration, rows.key)
    last = groups.most(rows.times[end])
    width = int(rows.iteration.max(initial=0)) + 1
    place = edge["worker"][now] * width + edge["iteration"][now]
    wanted = groups.keys[0] * width + groups.keys[1]
    at = np.searchsorted(place, wanted)
    inside: Bools = at < len(place)
    inside[inside] = place[at[inside]] == wanted[inside]
    return Table(
        kind,
        {
            **groups.named("worker", "iteration", "key", rows=inside),
            "us": last[inside] - since[at[inside]],
        },
    )


def search(table: RoundTrips) -> Samples:
    rows = table.take(table.has(rt.S_PULL_RECV, rt.S_PULL_SEND)).in_turn()
    found = Table(
        "search",
        {
            **rows.columns("server", "worker", "iteration", "key"),
            "us": rows.times[rt.S_PULL_SEND] - rows.times[rt.S_PULL_RECV],
        },
    )
    return Samples("search", found, found)


def synchronisation(table: RoundTrips) -> Samples:
    together = table.training != ASYNCHRONOUS  # otherwise nobody waits for others
    rows = table.take(table.has(rt.S_PUSH_RECV) & together)
    groups = group(rows.iteration, rows.key, rows.server)
    time = rows.times[rt.S_PUSH_RECV]
    found = Table(
        "synchronisation",
        {
            **groups.named("iteration", "key", "server"),
            "us": groups.most(time) - groups.least(time),
        },
    )
    return Samples("synchronisation", found, found)


def update(table: RoundTrips) -> Samples:
    begin, end = table.push_is_in, rt.S_PULL_SEND if table.by_packets else rt.S_PUSH_SEND
    rows = table.take(table.has(begin, end))
    names = ("iteration", "key", "server")
    if table.training == ASYNCHRONOUS:
        took = rows.times[end] - rows.times[begin]
        found = Table("update", {**rows.columns(*names), "us": took})
    else:
        groups = group(rows.iteration, rows.key, rows.server)
        took = groups.least(rows.times[end]) - groups.most(rows.times[begin])
        # Where a worker's records are missing, the last push may be the one that is not there.
        whole = groups.count() == _pushers(table, *groups.keys)
        found = Table("update", {**groups.named(*names, rows=whole), "us": took[whole]})
    return Samples("update", found, found)


def _pushers(table: RoundTrips, iteration: Ints, key: Ints, server: Ints) -> Ints:
    """How many workers push these keys to these servers: of a host, one may for all.

    Of those, the ones that take part in these iterations: others may have been lost before.
    """
    rows = table.take(table.has(rt.W_PUSH_SEND) | table.has(table.push_is_in))
    workers = group(rows.worker)
    senders = group(rows.key, rows.server, rows.worker)
    of_sender = np.searchsorted(workers.keys[0], senders.keys[2])
    width = int(table.iteration.max(initial=0)) + 1

    def place(key: Ints, server: Ints, iteration: Ints) -> Ints:
        found: Ints = (key * table.servers + server) * width + iteration
        return found

    keys, servers, _ = senders.keys
    first, last = (
        np.sort(place(keys, servers, end[of_sender]))
        for end in (workers.least(rows.iteration), workers.most(rows.iteration))
    )
    now = place(key, server, iteration)
    begun: Ints = np.searchsorted(first, now, "right")
    return begun - np.searchsorted(last, now)


def section(table: RoundTrips) -> Section:
    found = overheads(table)
    overall = [(s.kind, s.overall["us"]) for s in found]
    tables = [
        summaries("Overheads, overall", overall),
        distributions("Distribution of the overheads, overall", overall),
    ]
    for samples in found:
        title = f"{samples.kind.capitalize()} per key"
        tables.append(per_key(title, samples.by_key, table))
        tables.append(distributions_per_key(f"{title}: distribution", samples.by_key, table))
    figures = {"distributions": curves("Overheads", overall)}
    figures.update((samples.kind, _key_curves(samples, table)) for samples in found)
    return Section(NAME, TITLE, QUESTION, tables, figures)


def _key_curves(samples: Samples, table: RoundTrips) -> Table:
    """Of the keys that take the longest on average."""
    keys, named = of_each_key(samples.by_key, table)
    labelled = [(f"{key} {name}", values) for key, (name, values) in zip(keys.tolist(), named)]
    longest = sorted(labelled, key=lambda one: -float(one[1].mean()))[:CURVES_MOST]
    return curves(samples.kind, longest, CURVE_POINTS_OF_A_KEY)
