"""The files that the nodes of a synthetic run would have written."""

from __future__ import annotations

from pathlib import Path

from tracer.format.record import (
    CODE,
    FIRST_PACKET,
    SCHEDULER,
    Header,
    Note,
    Records,
    Trace,
    node_code,
)
from tracer.format.writer import write_trace
from tracer.output import whole_directory
from tracer.synthetic.numbering import Event, NodeNumbering
from tracer.synthetic.plan import Plan
from tracer.synthetic.run import SyntheticRun

COMMAND_BYTES, REPLY_BYTES = 25, 19


def synthesize(plan: Plan) -> list[Trace]:
    """One trace a worker, one a server, then the scheduler traffic of all nodes."""
    seen = SyntheticRun(plan).run()
    traces = [_node(plan, role, rank, events) for (role, rank), events in seen.items()]
    ends = {t.header.node: int(t.records.time.max(initial=plan.start_us)) for t in traces}
    traces += [
        _scheduler_traffic(plan, t.header.role, t.header.rank, ends[t.header.node]) for t in traces
    ]
    traces.append(_scheduler_traffic(plan, "scheduler", 0, max(ends.values())))
    return traces


def write_run(plan: Plan, folder: str | Path, binary: bool = False) -> list[Path]:
    paths = []
    with whole_directory(folder) as target:
        for trace in synthesize(plan):
            paths.append(target / (trace.path + (".dlc" if binary else ".txt")))
            write_trace(trace, paths[-1])
    return paths


def _header(plan: Plan, role: str, rank: int) -> Header:
    return Header(
        role=role,
        rank=rank,
        workers=plan.workers,
        servers=plan.servers,
        host=f"{role}{rank}",
        run=plan.run,
        mode=plan.mode,
        training=plan.training,
    )


def _node(plan: Plan, role: str, rank: int, events: list[Event]) -> Trace:
    header = _header(plan, role, rank)
    numbering = NodeNumbering(header)
    if role == "worker":
        for server in range(plan.servers):
            numbering.setup(server, COMMAND_BYTES, REPLY_BYTES)
    for event in events:
        numbering.add(event)
    records = numbering.records()
    records.time[records.is_data | (records.operation == FIRST_PACKET)] += plan.ahead(role, rank)
    texts = [
        f"key {key} bytes {tensor.bytes} priority {-key} name {tensor.name}"
        for key, tensor in enumerate(plan.tensors)
    ]
    if plan.clock_notes:
        # Off by half of what it promises, as an honest estimate may be.
        sign = 1 if (rank + len(role)) % 2 else -1
        estimate = -plan.ahead(role, rank) + sign * plan.clock_within_us // 2
        time = plan.start_us + plan.ahead(role, rank)
        texts.append(
            f"clock {time // 1000000} {time % 1000000} add_us {estimate} "
            f"within_us {plan.clock_within_us}"
        )
    notes = [Note(0, text) for text in texts]
    notes.append(Note(len(records), f"end {len(records)} records"))
    return Trace(header, records, notes, f"trace_{role}_{rank}")


def _scheduler_traffic(plan: Plan, role: str, rank: int, end: int) -> Trace:
    """Who registered, met at the barrier and left, as this node saw it."""
    scheduler = plan.workers + plan.servers
    header = _header(plan, role, rank)
    rows: list[dict[str, int]] = []

    def see(name: str, peer: int, peer_role: int, peer_rank: int, time: int, size: int) -> None:
        sends = name.endswith("_Send")
        rows.append(
            {
                "id": len(rows),
                "src": header.rank_id if sends else peer,
                "dst": peer if sends else header.rank_id,
                "length": size,
                "operation": CODE[name],
                "op_num": sum(row["operation"] == CODE[name] for row in rows),
                "node": node_code(peer_role, peer_rank),
                "time": time,
            }
        )

    ahead = plan.ahead(role, rank)
    before, after = plan.start_us - 100_000 + ahead, end + 1000
    sizes = {"Register": 60, "Barrier": 24, "Terminate": 20}
    for name, time in (("Register", before), ("Barrier", before + 5000), ("Terminate", after)):
        order = ("_Send", "_Recv") if role != "scheduler" else ("_Recv", "_Send")
        for turn, suffix in enumerate(order):
            at = time + turn * plan.latency_us * 2
            if role != "scheduler":
                see(name + suffix, scheduler, SCHEDULER, 0, at, sizes[name])
                continue
            for peer in range(scheduler):
                server = peer >= plan.workers
                peer_rank = peer - plan.workers if server else peer
                see(name + suffix, peer, int(server), peer_rank, at + peer, sizes[name])
    columns = {name: [row.get(name, 0) for row in rows] for name in Records.__annotations__}
    columns.pop("lists")
    records = Records.of(columns)
    notes = [Note(len(rows), f"end {len(rows)} records")]
    return Trace(header, records, notes, f"trace_sch_{role}_{rank}")
