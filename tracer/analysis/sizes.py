"""How large are the messages, and how much data does an iteration move?"""

from __future__ import annotations

import numpy as np

from tracer.format.record import (
    OPERATIONS,
    SERVER,
    WHOLE_MESSAGES,
    WORKER,
    Array,
    Ints,
    whole_number,
)
from tracer.grouping import group
from tracer.run import Run
from tracer.table import Section, Table

LONG_BYTES = 4096  # longer messages are long, others short: commands and confirmations
NAME, TITLE = "sizes", "Message sizes and data volume"
QUESTION = __doc__


def training_columns(run: Run) -> dict[str, Array]:
    """Key, operation, length, iteration and node of all training messages, each seen once.

    A message is in two files, its sender's and its receiver's. The workers' are taken; servers'
    files count only for workers of whom there is no file. Where tensors travel as packets, a push
    is one message, with all of its packets, and so is a sum.
    """
    have = {trace.header.rank for trace in run.workers}
    parts: dict[str, list[Array]] = {n: [] for n in ("key", "operation", "length", "iteration")}
    for role, traces in ((WORKER, run.workers), (SERVER, run.servers)):
        for trace in traces:
            iteration = trace.iteration()
            keep = (iteration >= 0) & np.isin(trace.records.operation, WHOLE_MESSAGES[run.mode])
            if role == SERVER:
                keep &= ~np.isin(trace.records.node // 3, list(have))
            records = trace.records
            parts["key"].append(records.key[keep])
            # As the worker sees it: slots are the same at both ends.
            parts["operation"].append(records.operation[keep] % 4)
            parts["length"].append(records.length[keep])
            parts["iteration"].append(iteration[keep])
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


def per_key_and_operation(columns: dict[str, Array], run: Run) -> Table:
    keys = run.keys()
    groups = group(columns["key"], columns["operation"])
    lengths = columns["length"]
    count = groups.count()
    total = groups.total(lengths)
    return Table(
        "Messages per key and operation",
        {
            "key": groups.keys[0],
            "name": [keys[int(k)].name for k in groups.keys[0]],
            "tensor_bytes": [keys[int(k)].bytes for k in groups.keys[0]],
            "operation": [OPERATIONS[int(code)] for code in groups.keys[1]],
            "count": count,
            "min_bytes": groups.least(lengths),
            "mean_bytes": total / count,
            "max_bytes": groups.most(lengths),
            "total_bytes": total,
        },
    )


def per_iteration(columns: dict[str, Array]) -> Table:
    groups = group(columns["iteration"])
    lengths, operation = columns["length"], columns["operation"]

    def volume(*codes: int) -> Ints:
        return groups.total(np.where(np.isin(operation, codes), lengths, 0))

    return Table(
        "Data volume per iteration",
        {
            "iteration": groups.keys[0],
            "messages": groups.count(),
            "to_servers_bytes": volume(0, 2),
            "to_workers_bytes": volume(1, 3),
            "total_bytes": volume(0, 1, 2, 3),
        },
    )


def long_and_short(columns: dict[str, Array]) -> Table:
    is_long = columns["length"] > LONG_BYTES
    lengths = columns["length"]
    return Table(
        "Long and short messages",
        {
            "messages": [f"long (more than {LONG_BYTES} bytes)", "short"],
            "count": [int(is_long.sum()), int((~is_long).sum())],
            "total_bytes": [int(lengths[is_long].sum()), int(lengths[~is_long].sum())],
        },
    )


def wires(run: Run) -> Table:
    """As what gradients travelled that were not sent as they are, one word after the other."""
    words: dict[int, list[str]] = {}
    first = min(run.workers, key=lambda trace: trace.header.rank, default=None)
    for note in first.notes if first is not None else ():
        number = whole_number(note.words[1]) if len(note.words) == 3 else None
        if note.words[:1] == ["wire"] and number is not None:
            words.setdefault(number, []).append(note.words[2])
    keys = run.keys()
    known = sorted(words.keys() & keys.keys())
    return Table(
        "What gradients travelled as",
        {
            "key": known,
            "name": [keys[key].name for key in known],
            "as": [", then ".join(words[key]) for key in known],
        },
    )


def section(run: Run) -> Section:
    columns = training_columns(run)
    sizes = per_key_and_operation(columns, run)
    tables = [long_and_short(columns), sizes, per_iteration(columns)]
    coded = wires(run)
    tables += [coded] if coded else []
    return Section(NAME, TITLE, str(QUESTION), tables, {"keys": sizes})
