"""A captured trace without what differs from run to run: for golden files.

    python -m tests.normal_trace TRACES FOLDER    # writes the golden files of a run anew

Left out: times, ids and the order in the file, dispatch numbers, run and host, clock notes.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from tracer.format.header import header_lines
from tracer.format.record import INITIAL_NUM_PP, SETUP_NUM_PP, Trace
from tracer.format.writer import record_lines
from tracer.run import Run, read_run


def normal(trace: Trace) -> str:
    header = header_lines(replace(trace.header, run="RUN", host="HOST"))
    notes = [f"# {note.text}" for note in trace.notes if not note.text.startswith("clock ")]
    r = trace.records
    rows = []
    for row, line in enumerate(record_lines(r, 0, len(r))):
        words = line.split()
        words[0] = "ID"
        if int(words[4]) not in (INITIAL_NUM_PP, SETUP_NUM_PP):
            words[4] = "N"
        if len(words) > 7:  # set-up records end here
            words[9:12] = ["D", "SEC", "USEC"]
        rows.append(((int(r.key[row]), int(r.node[row]), int(r.op_num[row])), " ".join(words)))
    return "\n".join([*header, *notes[:-1], *(line for _, line in sorted(rows)), notes[-1]]) + "\n"


def write(run: Run, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for trace in run.traces:
        (folder / f"{Path(trace.path).stem}.txt").write_text(normal(trace))


if __name__ == "__main__":
    write(read_run(sys.argv[1]), Path(sys.argv[2]))
