"""SketchDLC's evaluation with our tracer: two real networks train, captured and not, in both modes.

Each turn trains without a trace, with one (whose figures are SketchDLC's tables), with one on a
slower link, and at three other rates of that link, to which the capture before is replayed. Repeats
are turns of all of this, so that a busy machine is so for everything.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from scripts.lab.bed.bed import best_bed
from scripts.lab.bed.namespaces import privilege_missing
from scripts.lab.benches.captured_figures import (
    DATA,
    LENGTHS,
    OVERHEADS,
    PHASES,
    captured_figures,
)
from scripts.lab.benches.case import Figure, Figures, Row, Setting
from scripts.lab.systems.job import Outcome, run_job
from scripts.lab.systems.system import MERCURY, System
from scripts.lab.workloads.job_config import Config
from tracer.analysis.phases import phases
from tracer.clocks import aligned
from tracer.replay import Conditions, Recorded, recorded, replay, self_check
from tracer.run import Run, read_run

ROOT = Path(__file__).resolve().parents[3]
FAST = 10e9  # bits a second: for the tables, as in the paper, the link is not what limits
COST = "cost of capture"
PAPER = "SketchDLC's paper"  # on links of 56 Gbit/s, with a K80


@dataclass(frozen=True)
class CapturedModel:
    title: str
    model: str  # as scripts/lab/systems/real_network.py knows it
    warmup: int
    steps: int
    captured_at: float  # bits a second: of the capture that is replayed
    replayed_at: tuple[float, ...]


MODELS = (
    CapturedModel("LeNet-5", "lenet5", 10, 60, 1e9, (250e6, 500e6, 2e9)),
    CapturedModel("ResNet-50", "resnet50", 2, 6, 2e9, (500e6, 1e9, 4e9)),
)
# By model and table: what the paper says of the same.
PAPERS: dict[tuple[str, str], Figures] = {
    ("LeNet-5", DATA): {"to the server": Figure(1.72, "MB"), "to the worker": Figure(1.72, "MB")},
    ("LeNet-5", LENGTHS): {
        f"{name}, {which}": Figure(size, "bytes")
        for name, size in (("push", 33), ("confirmation", 19), ("request", 28), ("answer", 36))
        for which in ("least", "most")
    },
    ("LeNet-5", PHASES): {
        "computation": Figure(4.74, "ms"),
        "communication": Figure(8.82, "ms"),
        "overlap": Figure(11.97, "%"),
    },
    ("LeNet-5", OVERHEADS): {
        "computation": Figure(4.74, "ms"),
        "search": Figure(1007, "us"),
        "update": Figure(564, "us"),
        "synchronisation": Figure(1068, "us"),
    },
    ("ResNet-50", DATA): {
        "to the server": Figure(102.21, "MB"),
        "to the worker": Figure(102.21, "MB"),
    },
    ("ResNet-50", PHASES): {
        "computation": Figure(676, "ms"),
        "communication": Figure(487, "ms"),
        "overlap": Figure(65.72, "%"),
    },
    ("ResNet-50", OVERHEADS): {
        "computation": Figure(676, "ms"),
        "search": Figure(3078, "us"),
        "update": Figure(6262, "us"),
        "synchronisation": Figure(27975, "us"),
    },
}


class Gathered:
    """Rows of one model: a value from each turn."""

    def __init__(self, model: CapturedModel, shaped: bool) -> None:
        self._model, self._shaped = model, shaped
        self._rows: dict[tuple[str, ...], Row] = {}

    def setting(self, rate: float) -> str:
        return str(setting(rate)) + ("" if self._shaped else ", but not shaped")

    def add(self, what: str, system: str, rate: float, figures: Figures) -> None:
        for metric, (value, unit) in figures.items():
            place = (f"{self._model.title}: {what}", system, metric, unit, self.setting(rate))
            self._rows.setdefault(place, Row("captures", *place, [])).values.append(value)

    def rows(self) -> list[Row]:
        """With the paper's beside them."""
        papers = Gathered(self._model, self._shaped)
        for (title, what), figures in PAPERS.items():
            if title == self._model.title:
                papers.add(what, PAPER, FAST, figures)
        return [*self._rows.values(), *papers._rows.values()]


def setting(rate: float) -> Setting:
    return Setting(workers=2, servers=1, rate=rate)


def train(model: CapturedModel, system: System, rate: float, traces: Path | None = None) -> Outcome:
    """Once, on a bed of its own. JobFailed, or LabError."""
    print(f"captures: {model.title}, {setting(rate)}; {system.name}", flush=True)
    env = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "examples")])}
    if traces is not None:
        steps = f"{model.warmup}:{model.warmup + model.steps}"
        env.update(MERCURY_TRACE_DIR=str(traces), MERCURY_TRACE_STEPS=steps)
    trained = replace(system, program=("-m", "scripts.lab.systems.real_network"))
    config = Config("train", {"model": model.model}, rounds=model.steps, warmup=model.warmup)
    places = setting(rate).places()
    with best_bed([*dict.fromkeys(places.values())], rate) as bed:
        return run_job(bed, trained, config, env=env, at=places)


def step_ms(outcome: Outcome, model: CapturedModel) -> float:
    """By the workers' clocks, on average; the slower worker's."""
    return outcome.seconds / model.steps * 1e3


def cost(model: CapturedModel, plain: Outcome, traced: Outcome, traces: Path) -> Figures:
    events = sum(len(trace.records) for trace in read_run(traces).all)
    size = sum(path.stat().st_size for path in traces.glob("trace_*"))
    cpu = [sum(outcome.worker_cpu_s()) for outcome in (plain, traced)]
    before, after = step_ms(plain, model), step_ms(traced, model)
    return {
        "iteration, not captured": Figure(before, "ms"),
        "iteration, captured": Figure(after, "ms"),
        "longer by": Figure((after / before - 1) * 100, "%"),
        "workers' processor time, more by": Figure((cpu[1] / cpu[0] - 1) * 100, "%"),
        "text of an event": Figure(size / events, "bytes"),
    }


def turn(
    model: CapturedModel, system: System, gathered: Gathered, folder: Path, traced_first: bool
) -> None:
    # Who goes first changes, so that a machine that slows down favours nobody.
    outcomes = {
        is_traced: train(model, system, FAST, folder / "fast" if is_traced else None)
        for is_traced in (traced_first, not traced_first)
    }
    plain, traced = outcomes[False], outcomes[True]
    gathered.add(COST, system.name, FAST, cost(model, plain, traced, folder / "fast"))
    run = read_run(folder / "fast")
    for what, figures in captured_figures(run, aligned(run)[0]).items():
        gathered.add(what, system.name, FAST, figures)
    if privilege_missing() is None:
        replays(model, system, gathered, folder)


def replays(model: CapturedModel, system: System, gathered: Gathered, folder: Path) -> None:
    """The capture as it was, and at other rates beside jobs that are really run there."""
    train(model, system, model.captured_at, folder / "captured")
    run = read_run(folder / "captured")
    found, computed_ms = recorded(run), computation_ms(run)
    what = f"captured at {model.captured_at / 1e6:g} Mbit/s, and replayed"
    was, own = self_check(found)
    gathered.add(what, system.name, model.captured_at, compared(was * 1e3, own * 1e3))
    for rate in model.replayed_at:
        traces = folder / f"{rate:.0f}"
        measured = step_ms(train(model, system, rate, traces), model)
        figures = compared(measured, at_rate(found, rate))
        # Where the machine was busier than in the capture, or less, no replay can know of it.
        share = computation_ms(read_run(traces)) / computed_ms
        figures["computation / in the capture"] = Figure(share, "")
        told = at_rate(found, rate, share)
        figures["replayed with that computation / measured"] = Figure(told / measured, "")
        gathered.add(what, system.name, rate, figures)


def computation_ms(run: Run) -> float:
    return float(np.mean(phases(aligned(run)[0])["computation_us"])) / 1e3


def at_rate(found: Recorded, rate: float, slowness: float = 1.0) -> float:
    """Milliseconds, on links that carry as much data as headers leave of the rate; `slowness`: of
    all computation, beside the capture's."""
    conditions = Conditions(bandwidth=setting(rate).bandwidth, slowness=(slowness,) * found.workers)
    return replay(found, conditions).mean_s * 1e3


def compared(measured_ms: float, replayed_ms: float) -> Figures:
    return {
        "iteration, measured": Figure(measured_ms, "ms"),
        "iteration, replayed": Figure(replayed_ms, "ms"),
        "replayed / measured": Figure(replayed_ms / measured_ms, ""),
    }


def captures(systems: Sequence[System], length: str, repeats: int) -> Iterator[Row]:
    """Of all that there is; in short, of the smaller network."""
    yield from run(systems, MODELS[:1] if length == "quick" else MODELS, repeats)


def run(systems: Sequence[System], models: Sequence[CapturedModel], repeats: int) -> Iterator[Row]:
    """Model by model. Raises JobFailed with the last lines of the job that failed."""
    ours = [system for system in systems if system.name in ("zmq", MERCURY)]
    reason = privilege_missing()
    if reason is not None:
        print(f"captures: nothing is replayed at other rates, because {reason}", file=sys.stderr)
    for model in models:
        gathered = Gathered(model, reason is None)
        for repeat in range(repeats):
            for system in ours:
                with tempfile.TemporaryDirectory() as folder:
                    turn(model, system, gathered, Path(folder), repeat % 2 == 1)
        yield from gathered.rows()
