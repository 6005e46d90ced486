"""The definitions of the overheads once more: loops and dictionaries, straight from their words."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from tracer.format.record import OPERATIONS
from tracer.run import Run


@dataclass(frozen=True)
class Seen:
    role: str
    rank: int
    operation: str
    key: int
    peer: int
    iteration: int
    time: int


def seen(run: Run) -> list[Seen]:
    out = []
    for trace in run.traces:
        r = trace.records
        for row, iteration in enumerate(trace.iteration().tolist()):
            if iteration >= 0:
                out.append(
                    Seen(
                        trace.header.role,
                        trace.header.rank,
                        OPERATIONS[r.operation[row]],
                        int(r.key[row]),
                        int(r.node[row]) // 3,
                        iteration,
                        int(r.time[row]),
                    )
                )
    return out


Times = dict[tuple[int, ...], list[int]]


def _times(records: list[Seen], operation: str, *by: str) -> Times:
    found: Times = defaultdict(list)
    for record in records:
        if record.operation == operation:
            found[tuple(int(getattr(record, name)) for name in by)].append(record.time)
    return found


def phases(run: Run) -> list[tuple[int, int, int]]:
    """(phase 1, 2, 3) of every worker's iterations but the first."""
    records = seen(run)
    push = _times(records, "Push_Send_Worker", "rank", "iteration")
    answer = _times(records, "Pull_Recv_Worker", "rank", "iteration")
    out = []
    for rank, iteration in push:
        before = answer.get((rank, iteration - 1))
        if before:
            here = push[rank, iteration]
            out.append(
                (
                    min(here) - max(before),
                    max(here) - min(here),
                    max(answer[rank, iteration]) - min(here),
                )
            )
    return sorted(out)


def overheads(run: Run, asynchronous: bool = False) -> dict[str, list[int]]:
    records = seen(run)
    push = _times(records, "Push_Send_Worker", "rank", "iteration")
    answer = _times(records, "Pull_Recv_Worker", "rank", "iteration")
    server = ("rank", "key", "iteration")
    each = (*server, "peer")
    came = _times(records, "Push_Recv_Server", *server)
    confirmed = _times(records, "Push_Send_Server", *server)
    asked, answered = (_times(records, f"Pull_{w}_Server", *each) for w in ("Recv", "Send"))
    update = [min(confirmed[place]) - max(times) for place, times in came.items()]
    if asynchronous:
        one, two = (_times(records, f"Push_{w}_Server", *each) for w in ("Recv", "Send"))
        update = [two[place][0] - times[0] for place, times in one.items()]
    return {
        "computation": sorted(
            max(times) - max(answer[rank, iteration - 1])
            for (rank, iteration), times in push.items()
            if (rank, iteration - 1) in answer
        ),
        "search": sorted(answered[place][0] - times[0] for place, times in asked.items()),
        "update": sorted(update),
        "synchronisation": sorted(max(times) - min(times) for times in came.values()),
        "wait": sorted(max(times) - min(times) for times in answer.values()),
    }
