"""What is the same in every right trace of a job, whatever its times: for golden tests.

A captured file must have the shape of the synthetic one for the same workers, servers, tensors and
iterations. Times, lengths, ids and dispatch numbers are left out, for they depend on the run.
"""

from __future__ import annotations

from tracer.format.record import Trace
from tracer.format.writer import record_lines


def shape(trace: Trace) -> list[str]:
    """A line a record of training or initial values: src dst operation op_id dep_type id_dep."""
    r = trace.records
    lines = []
    for row, line in enumerate(record_lines(r, 0, len(r))):
        if r.is_data[row]:
            _, src, dst, _, _, _, operation, op_id, dep_type, *_, depends = line.split()
            text = f"{src} {dst} {operation} {op_id} {dep_type} {depends}"
            lines.append(((int(r.key[row]), int(r.node[row]), int(r.op_num[row])), text))
    return [text for _, text in sorted(lines)]
