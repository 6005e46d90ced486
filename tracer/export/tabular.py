"""All records of a run as one table, in the time of one clock: CSV and Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tracer.clocks import Alignment
from tracer.errors import MissingExtraError
from tracer.format.record import DEP_LIST, DEP_NAMES, DEP_NONE, OPERATIONS, Trace, node_text
from tracer.output import whole_file
from tracer.progress import Progress
from tracer.run import Run

AT_ONCE = 50_000
COLUMNS = (
    "role", "rank", "iteration", "id", "src", "dst", "length", "num_pp", "operation", "key",
    "op_num", "peer", "dep_type", "d_time_us", "time_us", "aligned_time_us", "id_dep",
)  # fmt: skip


def _chunks(run: Run, alignment: Alignment, progress: Progress) -> Iterator[dict[str, list[Any]]]:
    """Node after node, some records at a time."""
    done = 0
    for trace in run.all:
        clock = None if trace.is_scheduler_traffic else alignment.clocks.get(trace.header.node)
        add = clock.add(trace.records.time) if clock else np.zeros(len(trace.records), np.int64)
        iteration = trace.iteration()
        for begin in range(0, len(trace.records), AT_ONCE):
            rows = slice(begin, begin + AT_ONCE)
            yield _columns(trace, rows, iteration[rows], add[rows])
            done += len(iteration[rows])
            progress.reached(done)


def _count(run: Run) -> int:
    return sum(len(trace.records) for trace in run.all)


def _columns(trace: Trace, rows: slice, iteration: Any, add: Any) -> dict[str, list[Any]]:
    r = trace.records
    count = len(iteration)
    depends = [
        "-1" if kind == DEP_NONE else r.lists[num] if kind == DEP_LIST else
        f"{key}-{num}-{node_text(node)}"
        for kind, key, num, node in zip(
            r.dep_kind[rows].tolist(), r.dep_key[rows].tolist(),
            r.dep_num[rows].tolist(), r.dep_node[rows].tolist(),
        )
    ]  # fmt: skip
    dep_types = r.dep_type[rows].tolist()
    return {
        "role": [trace.header.role] * count,
        "rank": [trace.header.rank] * count,
        "iteration": iteration.tolist(),
        **{
            name: r.column(name)[rows].tolist() for name in ("id", "src", "dst", "length", "num_pp")
        },
        "operation": [OPERATIONS[code] for code in r.operation[rows].tolist()],
        "key": r.key[rows].tolist(),
        "op_num": r.op_num[rows].tolist(),
        "peer": [node_text(code) for code in r.node[rows].tolist()],
        "dep_type": [DEP_NAMES[t] if 0 <= t < len(DEP_NAMES) else str(t) for t in dep_types],
        "d_time_us": r.d_time[rows].tolist(),
        "time_us": r.time[rows].tolist(),
        "aligned_time_us": (r.time[rows] + add).tolist(),
        "id_dep": depends,
    }


def write_csv(run: Run, alignment: Alignment, path: str | Path, quiet: bool = True) -> int:
    """Says how many records were written. No field can hold a comma or a quote."""
    with Progress("writing CSV", _count(run), quiet) as progress, whole_file(path) as file:
        file.write((",".join(COLUMNS) + "\n").encode())
        for chunk in _chunks(run, alignment, progress):
            rows = zip(*(chunk[name] for name in COLUMNS))
            file.write("".join(",".join(map(str, row)) + "\n" for row in rows).encode())
    return _count(run)


def write_parquet(run: Run, alignment: Alignment, path: str | Path, quiet: bool = True) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("Parquet", "pyarrow") from None
    texts = {"role", "operation", "peer", "dep_type", "id_dep"}
    schema = pa.schema([(n, pa.string() if n in texts else pa.int64()) for n in COLUMNS])
    with (
        Progress("writing Parquet", _count(run), quiet) as progress,
        whole_file(path) as file,
        pq.ParquetWriter(file, schema) as writer,
    ):
        for chunk in _chunks(run, alignment, progress):
            writer.write_table(pa.table(chunk, schema=schema))
    return _count(run)
