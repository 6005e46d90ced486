"""What every command of `mercury sim` returns, and how it is shown."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pslite_ext.forecast.model import POLICIES, Job, ModelError, model_name
from pslite_ext.forecast.model.job import number
from pslite_ext.forecast.model.job_file import find_job
from pslite_ext.quantity import seconds, size
from tracer.output import print_json, whole_file
from tracer.report.drawing import Draw, save
from tracer.table import Table

EVENTS_MAX = 200_000_000  # of a simulation


@dataclass
class Answer:
    """A table, what to say before and after it, the same as values, and its picture."""

    table: Table
    draw: Draw
    lines: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    rows: int = 200


def show(answer: Answer, options: argparse.Namespace) -> None:
    if options.csv:
        text = io.StringIO(newline="")
        rows = csv.writer(text)
        rows.writerow(answer.table.names)
        rows.writerows(row.values() for row in answer.table.rows())
        with whole_file(options.csv) as file:
            file.write(text.getvalue().encode())
    if options.plot:
        save(answer.draw, options.plot)
    if options.json:
        whole = {**answer.values, "table": list(answer.table.rows())}
        print_json(whole)
        return
    for line in answer.lines:
        print(line)
    print(answer.table.text(answer.rows))
    for line in answer.after:
        print(line)


def job_of(options: argparse.Namespace, what: str | None = None) -> Job:
    compute_s = None if options.compute is None else seconds(options.compute)
    return find_job(what or options.job, compute_s, options.steps).on_wire(options.wire)


def names_of(jobs: Sequence[str]) -> list[str]:
    """Jobs of one name are told apart by their place."""
    names = [Path(what).stem for what in jobs]
    return [
        f"{name} {place}" if names.count(name) > 1 else name for place, name in enumerate(names, 1)
    ]


def network_of(options: argparse.Namespace) -> dict[str, object]:
    """The model's options that were given."""
    given: dict[str, object] = {
        "latency_s": seconds(options.latency),
        "startup_s": seconds(options.startup),
    }
    for name in ("partition", "credit", "packet", "bucket"):
        text = getattr(options, name)
        if text is not None:
            given[f"{name}_bytes"] = size(text)
    workers = getattr(options, "workers", None)
    if workers is not None:
        given["workers"] = hosts_of(options, workers)
        given["servers"] = getattr(options, "servers", None) or given["workers"]
    return given


def hosts_of(options: argparse.Namespace, workers: int) -> int:
    """That so many workers are on. A host's are summed on it: to links it is one worker."""
    per_host: int = options.per_host
    if workers > per_host and workers % per_host:
        raise ModelError(f"--per-host {per_host}: {workers} workers do not fill their hosts")
    return -(-workers // per_host)


def policies_of(options: argparse.Namespace, known: list[str] | None = None) -> list[str]:
    allowed = known or list(POLICIES)
    if not options.policies:
        return allowed
    wanted = [model_name(name.strip()) for name in options.policies.split(",")]
    for name in wanted:
        if name not in allowed:
            raise ModelError(f"there is no policy '{name}' here; there are {', '.join(allowed)}")
    return list(dict.fromkeys(wanted))


def slowness_of(given: Sequence[str], workers: int) -> list[float]:
    """How many times as long as the job says each worker computes."""
    factors = [1.0] * workers
    for text in given:
        worker, factor = pair(text, "WORKER:FACTOR")
        try:
            value = float(factor)
        except ValueError:
            raise ModelError(f"--slow-worker {text}: '{factor}' is not a number") from None
        number(f"--slow-worker {text}: the factor", value, above_zero=True)
        factors[index_in(text, worker, workers)] = value
    return factors


def pair(text: str, form: str) -> tuple[str, str]:
    first, colon, second = text.partition(":")
    if not (first and colon and second):
        raise ModelError(f"'{text}' is not of the form {form}")
    return first, second


def index_in(text: str, digits: str, count: int) -> int:
    if not digits.isdecimal() or int(digits) >= count:
        raise ModelError(f"'{text}': there is no '{digits}' among 0 to {count - 1}")
    return int(digits)
