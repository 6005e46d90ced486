"""What each command of `mercury trace` does. Each prints its result and returns an exit code."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tracer.analysis import NAMES, compare, sections
from tracer.check import ERROR, check_run
from tracer.clocks import Alignment, aligned, doubts
from tracer.errors import TraceError, UsageError
from tracer.format.reader import read_trace
from tracer.format.writer import write_trace
from tracer.output import print_json, whole_directory
from tracer.progress import Progress
from tracer.round_trip import RoundTrips
from tracer.run import Run, read_run, trace_paths

OK, FOUND = 0, 1


def _load(options: argparse.Namespace, path: str = "") -> tuple[Run, RoundTrips, Alignment]:
    """RUN, or what `path` says."""
    path = path or options.run
    run = read_run(path, options.strict, options.quiet)
    table, alignment = aligned(run)
    if not len(table):
        raise TraceError(
            f"{path}: holds no training record; was the job stopped before its first push?"
        )
    _note([*_absent(run), *run.problems, *doubts(run, alignment)])
    return run, table, alignment


def _absent(run: Run) -> Iterator[str]:
    for role, count, ranks in run.missing():
        if ranks:
            names = ", ".join(map(str, ranks[:5])) + (", ..." if ranks[5:] else "")
            yield f"{run.path}: there is no file of {role} {names}, of {count} {role}s"


def _note(problems: Sequence[object]) -> None:
    for problem in problems[:5]:
        print(f"note: {problem}", file=sys.stderr)
    if len(problems) > 5:
        more = len(problems) - 5
        print(f"note: {more} more such notes; run mercury trace check", file=sys.stderr)


def stats(options: argparse.Namespace) -> int:
    wanted = options.only or list(NAMES)
    unknown = sorted(set(wanted) - set(NAMES))
    if unknown:
        raise UsageError(
            f"--only {unknown[0]}: there is no such section; choose from {', '.join(NAMES)}"
        )
    run, table, _ = _load(options)
    found = [section for section in sections(run, table) if section.name in wanted]
    if not found:
        raise TraceError(f"{options.run}: has nothing about {', '.join(wanted)}")
    if options.json:
        print_json(
            {
                "workers": run.num_workers,
                "servers": run.num_servers,
                "mode": run.mode,
                "training": run.training,
                "records": sum(len(trace.records) for trace in run.all),
                "problems": [str(problem) for problem in run.problems],
                "sections": [section.as_dict() for section in found],
            }
        )
        return OK
    for number, section in enumerate(found):
        print(("\n" if number else "") + f"== {section.title}")
        for one in section.tables:
            print(one.text(options.rows))
    return OK


def check(options: argparse.Namespace) -> int:
    run = read_run(options.run, options.strict, options.quiet)
    findings = check_run(run)
    errors = sum(finding.severity == ERROR for finding in findings)
    records = sum(len(trace.records) for trace in run.all)
    if options.json:
        print_json(
            {
                "ok": errors == 0,
                "files": len(run.all),
                "records": records,
                "findings": [finding.as_dict() for finding in findings],
            }
        )
    else:
        for finding in findings:
            print(finding)
        verdict = f"{errors} errors, {len(findings) - errors} warnings" if findings else "clean"
        print(f"{verdict}: {len(run.all)} files, {records:,} records")
    return FOUND if errors else OK


def report(options: argparse.Namespace) -> int:
    from tracer.report.page import write_report

    run, table, alignment = _load(options)
    path = Path(options.output)
    advice = write_report(run, table, alignment, check_run(run), path, options.quiet)
    if options.json:
        print_json({"wrote": [str(path)], "advice": advice.sentences, **advice.values})
        return OK
    print(*advice.sentences, sep="\n")
    _wrote(options, [path])
    return OK


def live(options: argparse.Namespace) -> int:
    from pslite_ext.command.trace.live import live as follow

    return follow(options)


def plot(options: argparse.Namespace) -> int:
    from tracer.report import timeline
    from tracer.report.drawing import save
    from tracer.report.page import pictures

    run, table, _ = _load(options)
    drawings = pictures(run, table)
    if options.iteration is not None:
        if not (table.iteration == options.iteration).any():
            raise UsageError(
                f"--iteration {options.iteration}: the trace holds iterations "
                f"{table.iteration.min()} to {table.iteration.max()}"
            )
        drawings["timeline-iteration"] = lambda canvas: timeline.draw(
            canvas, table, options.iteration
        )
    paths = []
    with (
        whole_directory(options.output) as folder,
        Progress("drawing", len(drawings), options.quiet) as progress,
    ):
        for number, (name, draw) in enumerate(drawings.items()):
            paths.append(folder / f"{name}.png")
            save(draw, paths[-1])
            progress.reached(number + 1)
    _wrote(options, paths)
    return OK


def export(options: argparse.Namespace) -> int:
    for name, value in (("profile", options.profile), ("iterations", options.iterations)):
        if value and options.format != "chrome":
            raise UsageError(f"--{name}: goes with the format chrome alone")
    run, table, alignment = _load(options)
    if options.format == "chrome":
        from tracer.export.chrome import write_chrome
        from tracer.export.profile import of_workers

        path = options.output or "trace.json"
        profiles = of_workers(options.profile, run.num_workers)
        write_chrome(run, table, path, options.quiet, profiles, alignment, options.iterations)
        _wrote(options, [Path(path)])
    elif options.format == "chakra":
        from tracer.export.chakra import write_chakra

        _wrote(options, write_chakra(run, options.output or "chakra", options.quiet))
    else:
        from tracer.export import tabular

        path = options.output or f"trace.{options.format}"
        write = tabular.write_csv if options.format == "csv" else tabular.write_parquet
        write(run, alignment, path, options.quiet)
        _wrote(options, [Path(path)])
    return OK


def convert(options: argparse.Namespace) -> int:
    """One file, or all of a directory; scheduler traffic too."""
    source = Path(options.run)
    target = Path(options.output)
    if source.is_dir():
        if not options.to:
            raise UsageError(f"{source}: is a directory; say --to txt or --to dlc")
        jobs = [(path, target / f"{path.stem}.{options.to}") for path in trace_paths(source)]
    else:
        if options.to and target.suffix != f".{options.to}":
            target = target.with_name(f"{target.name}.{options.to}")
        if target.suffix not in (".txt", ".dlc"):
            raise UsageError(f"{target}: ends in neither .txt nor .dlc; say --to txt or --to dlc")
        jobs = [(source, target)]
    for one, two in jobs:
        if two.exists() and one.exists() and os.path.samefile(one, two):
            raise UsageError(f"{two}: is the file to be converted; choose another name")
    made = whole_directory(target) if source.is_dir() else contextlib.nullcontext()
    with made, Progress("converting", len(jobs), options.quiet) as progress:
        for number, (one, two) in enumerate(jobs):
            trace = read_trace(one, options.strict)
            _note(trace.problems)
            write_trace(trace, two)
            progress.reached(number + 1)
    _wrote(options, [two for _, two in jobs])
    return OK


def diff(options: argparse.Namespace) -> int:
    run, before, _ = _load(options)
    _, after, _ = _load(options, options.other)
    section = compare.section(before, after)
    whole = section.tables[0].row(what="whole_us")["change"]
    change = math.nan if whole is None else 100 * whole
    if options.fail_above is not None and math.isnan(change):
        raise TraceError(
            f"{options.run} and {options.other}: there are no two whole iterations in a row in "
            "both, so nothing can be compared; record more steps"
        )
    worse = options.fail_above is not None and change > options.fail_above
    if options.json:
        print_json({**section.as_dict(), "iteration_change_percent": change, "worse": worse})
    else:
        for table in section.tables:
            print(table.text())
        if worse:
            print(f"an iteration takes {change:.1f}% longer, more than {options.fail_above:g}%")
    return FOUND if worse else OK


def example(options: argparse.Namespace) -> int:
    from tracer.synthetic import Plan, write_run

    if any(Path(options.output).glob("trace_*")):
        raise UsageError(f"{options.output}: holds traces already; choose another directory")
    plan = Plan(
        workers=options.workers,
        servers=options.servers,
        iterations=options.iterations,
        mode=options.mode,
        seed=options.seed,
        jitter_us=2000,
        slower_us=(0, 500),
        ahead_us=(0, 1500, -700),
    )
    _wrote(options, write_run(plan, options.output, options.binary))
    return OK


def _wrote(options: argparse.Namespace, paths: list[Path]) -> None:
    if options.json:
        print_json({"wrote": [str(path) for path in paths]})
    else:
        for path in filter(Path.is_file, paths):  # behind what went into a pipe come no words
            print(f"wrote {path}")
