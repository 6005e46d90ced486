"""The definitions of the overheads once more: loops and dictionaries, straight from their words."""

from __future__ import annotations

from collections import defaultdict

from tracer.format.record import OPERATIONS
from tracer.run import Run

Times = dict[tuple[int, ...], list[int]]


def _times(run: Run, operation: str, *by: str) -> Times:
    """When the operation was seen in training: by rank, key, peer, iteration."""
    found: Times = defaultdict(list)
    for trace in run.traces:
        r = trace.records
        for row, iteration in enumerate(trace.iteration().tolist()):
            if iteration < 0 or OPERATIONS[r.operation[row]] != operation:
                continue
            names = {"rank": trace.header.rank, "key": r.key[row], "peer": r.node[row] // 3}
            names["iteration"] = iteration
            found[tuple(int(names[name]) for name in by)].append(int(r.time[row]))
    return found


def _initialised(run: Run) -> Times:
    """Of each worker, when the values that it pulled before training were there: iteration -1."""
    found: Times = defaultdict(list)
    for trace in run.workers:
        r = trace.records
        for row, iteration in enumerate(trace.iteration().tolist()):
            if iteration < 0 and OPERATIONS[r.operation[row]] == "Pull_Recv_Worker":
                found[trace.header.rank, -1].append(int(r.time[row]))
    return found


def phases(run: Run) -> list[tuple[int, int, int]]:
    """(phase 1, 2, 3) of every worker's iterations; before the first comes initialisation."""
    push = _times(run, "Push_Send_Worker", "rank", "iteration")
    answer = _times(run, "Pull_Recv_Worker", "rank", "iteration") | _initialised(run)
    out = []
    for rank, iteration in push:
        before = answer.get((rank, iteration - 1))
        if before:
            here, last = push[rank, iteration], max(answer[rank, iteration])
            first = min(here)
            out.append((first - max(before), max(here) - first, last - first))
    return sorted(out)


def overheads(run: Run, asynchronous: bool = False) -> dict[str, list[int]]:
    push = _times(run, "Push_Send_Worker", "rank", "iteration")
    answer = _times(run, "Pull_Recv_Worker", "rank", "iteration")
    before = answer | _initialised(run)
    server = ("rank", "key", "iteration")
    each = (*server, "peer")
    came = _times(run, "Push_Recv_Server", *server)
    confirmed = _times(run, "Push_Send_Server", *server)
    asked, answered = (_times(run, f"Pull_{w}_Server", *each) for w in ("Recv", "Send"))
    done = _times(run, "Push_Send_Server", *each)
    update = [min(confirmed[place]) - max(times) for place, times in came.items()]
    if asynchronous:
        one, two = (_times(run, f"Push_{w}_Server", *each) for w in ("Recv", "Send"))
        update = [two[place][0] - times[0] for place, times in one.items()]
    return {
        "computation": sorted(
            max(times) - max(before[rank, iteration - 1])
            for (rank, iteration), times in push.items()
            if (rank, iteration - 1) in before
        ),
        "search": sorted(
            answered[place][0] - max(times[0], done[place][0]) for place, times in asked.items()
        ),
        "update": sorted(update),
        "synchronisation": sorted(max(times) - min(times) for times in came.values()),
        "wait": sorted(max(times) - min(times) for times in answer.values()),
    }
