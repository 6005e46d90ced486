"""What is the same in every right trace of a job, whatever its times: for golden tests.

A captured file must have the shape of the synthetic one for the same workers, servers, tensors and
iterations. Times, lengths, ids and dispatch numbers are left out, for they depend on the run.
"""

from __future__ import annotations

from tracer.format.record import DEP_LIST, DEP_ONE, OPERATIONS, Trace, node_text


def shape(trace: Trace) -> list[str]:
    """A line a record of training or initial values: src dst operation op_id dep_type id_dep."""
    r = trace.records
    lines = []
    for row in range(len(r)):
        if not bool(r.is_data[row]):
            continue
        depends = "-1"
        if r.dep_kind[row] == DEP_ONE:
            depends = f"{r.dep_key[row]}-{r.dep_num[row]}-{node_text(int(r.dep_node[row]))}"
        elif r.dep_kind[row] == DEP_LIST:
            depends = r.lists[int(r.dep_num[row])]
        order = (int(r.key[row]), int(r.node[row]), int(r.op_num[row]))
        text = (
            f"{r.src[row]} {r.dst[row]} {OPERATIONS[r.operation[row]]} "
            f"{order[0]}-{order[2]}-{node_text(order[1])} {r.dep_type[row]} {depends}"
        )
        lines.append((order, text))
    return [text for _, text in sorted(lines)]
