"""ByteScheduler tuned as its authors tune it: Bayesian optimisation of partition and credit.

For each of two rates the search tries settings, each in a job of its own: what is set here is set
for a job's life. Then the best settings of the search, those of the other rate, ByteScheduler's
own and mercury-ps take turns.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from pslite_ext.forecast.model import predict
from scripts.lab.bed.bed import best_bed
from scripts.lab.bed.namespaces import LabError, privilege_missing
from scripts.lab.benches.case import Row, Setting
from scripts.lab.systems.job import ROOT, run_job
from scripts.lab.systems.peers import TUNER, PeerMissing, peer_python
from scripts.lab.systems.system import MERCURY, System
from scripts.lab.workloads.job_config import Config, workload_of
from scripts.lab.workloads.workload import load

BYTESCHEDULER = "mercury-bytescheduler"
PROGRAM = ("-m", "scripts.lab.systems.settings_search")
MODEL, SCALE = "vgg16", 0.08
RATES = (1e9, 100e6)
COMPUTE_S = 0.213  # at the first rate network-bound: 0.6 times what all bytes need
MEASURED_S = 4.0  # of a job, about, but at least FEWEST iterations
FEWEST = 2
TRIALS = 12  # of each rate
REPEATS = 3
# Between which is searched, as powers of two: bytes of a partition, and how many are a credit.
BOUNDS = ((14.0, 23.0), (0.0, 5.0))

MODELLED = ("vgg16", "resnet50")
MODELLED_RATES = (10e9, 1e9, 0.5e9)
STARTUP_S = 0.5e-3  # before a partition; its authors say: less than a millisecond
LATENCY_S = 50e-6
PARTITIONS = (64, 256, 1024, 4096, 16384)  # KiB
CREDITS = (1, 2, 4, 16)  # partitions


class Sizes(NamedTuple):
    partition: int  # bytes
    credit: int

    @classmethod
    def of(cls, point: Sequence[float]) -> Sizes:
        """From a point of the search, in whole KiB."""
        partition = round(2 ** point[0] / 1024) * 1024
        return cls(partition, round(partition * 2 ** point[1] / 1024) * 1024)

    def __str__(self) -> str:
        return f"{self.partition >> 10}/{self.credit >> 10} KiB"


OWN = Sizes(4 << 20, 16 << 20)  # ByteScheduler's


class Found(NamedTuple):
    best: Sizes
    trials: list[float]  # seconds of an iteration
    took_s: float


def with_sizes(system: System, sizes: Sizes, name: str) -> System:
    partition, credit = map(str, sizes)
    return system.variant(name, MERCURY_PARTITION_BYTES=partition, MERCURY_CREDIT_BYTES=credit)


def _iteration_s(system: System, setting: Setting, config: Config) -> float:
    hosts = [*dict.fromkeys(setting.places().values())]
    with best_bed(hosts, setting.rate) as bed:
        outcome = run_job(bed, system, config, at=setting.places())
    return statistics.median(outcome.rounds_s)


@contextmanager
def _asked(python: str) -> Iterator[Callable[[float | None], Sequence[float]]]:
    """The search, in a process of its own: from the seconds at the last point to the next one."""
    process = subprocess.Popen(
        [python, *PROGRAM], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    points, told = process.stdout, process.stdin

    def ask(seconds: float | None) -> Sequence[float]:
        with suppress(BrokenPipeError):
            print(json.dumps(BOUNDS if seconds is None else seconds), file=told, flush=True)
        if not (line := points.readline()):
            raise LabError("the search has ended before its time")
        return [float(number) for number in json.loads(line)]

    try:
        yield ask
    finally:
        process.kill()
        process.communicate()


def search(measure: Callable[[Sizes], float], python: str, trials: int = TRIALS) -> Found:
    """The best of so many settings that were tried."""
    began = time.monotonic()
    tried: dict[Sizes, list[float]] = {}
    times: list[float] = []
    with _asked(python) as ask:
        point = ask(None)
        for number in range(trials):
            sizes = Sizes.of(point)
            times.append(measure(sizes))
            tried.setdefault(sizes, []).append(times[-1])
            print(f"    {number + 1}: {sizes}: {times[-1]:.3g} s", flush=True)
            if number < trials - 1:
                point = ask(times[-1])
    best = min(tried, key=lambda sizes: statistics.mean(tried[sizes]))
    return Found(best, times, time.monotonic() - began)


def _job(rate: float) -> tuple[Setting, Config]:
    """The same at every rate, as a model and its GPU are."""
    setting = Setting(rate=rate)
    shape = {"model": MODEL, "scale": SCALE, "compute_s": COMPUTE_S}
    about_s = 1.2 * max(COMPUTE_S, setting.link_s(workload_of(shape).bytes))
    return setting, Config("train", shape, rounds=max(FEWEST, round(MEASURED_S / about_s)))


def _rate(rate: float) -> str:
    return f"{rate / 1e6:g} Mbit/s"


def compared(bytescheduler: System, mercury: System, found: dict[float, Found]) -> list[Row]:
    """What the search has found for each rate, by turns with what else there is."""
    rows: list[Row] = []
    for rate, here in found.items():
        (other,) = [there for there in found if there != rate]
        tuned = with_sizes(bytescheduler, here.best, "tuned")
        swapped = with_sizes(bytescheduler, found[other].best, f"tuned for {_rate(other)}")
        systems = (tuned, bytescheduler, swapped, mercury)
        setting, config = _job(rate)
        what = f"{MODEL} x {SCALE:g}, {COMPUTE_S:g} s of computation"
        times: dict[str, list[float]] = {system.name: [] for system in systems}
        for _ in range(REPEATS):
            for system in systems:
                print(f"tuning: {_rate(rate)}; {system.name}", flush=True)
                times[system.name].append(_iteration_s(system, setting, config))
        figures: dict[str, list[tuple[str, str, list[float]]]] = {
            name: [
                ("time", "s", taken),
                ("time / tuned", "", [a / b for a, b in zip(taken, times[tuned.name])]),
            ]
            for name, taken in times.items()
        }
        sizes = ((tuned, here.best), (bytescheduler, OWN), (swapped, found[other].best))
        for system, (partition, credit) in sizes:
            figures[system.name] += [
                ("partition", "KiB", [partition / 1024]),
                ("credit", "KiB", [credit / 1024]),
            ]
        figures[tuned.name] += [
            ("trials", "", [len(here.trials)]),
            ("search", "s", [here.took_s]),
            ("slowest trial", "s", [max(here.trials)]),
        ]
        rows += [
            Row("tuning", what, name, metric, unit, str(setting), values)
            for name, those in figures.items()
            for metric, unit, values in those
        ]
    return rows


def by_model(models: Sequence[str] = MODELLED) -> list[Row]:
    """Maps of partition and credit: the best of each, over the time that the model foretells."""
    rows: list[Row] = []
    setting = f"startup {STARTUP_S * 1e3:g} ms, latency {LATENCY_S * 1e6:g} us"
    for model in models:
        job = load(model).job()
        for rate in MODELLED_RATES:
            bandwidth = Setting(rate=rate).bandwidth
            times = {
                (partition, credit): predict(
                    *(job, bandwidth, "bytescheduler"),
                    startup_s=STARTUP_S,
                    latency_s=LATENCY_S,
                    partition_bytes=partition << 10,
                    credit_bytes=credit * partition << 10,
                ).iteration_s
                for partition in PARTITIONS
                for credit in CREDITS
            }
            best = min(times.values())
            rows += [
                Row(
                    *("tuning", f"{model} at {rate / 1e9:g} Gbit/s, by the model"),
                    f"partitions of {partition} KiB",
                    f"credit of {credit}",
                    *("", setting),
                    [best / seconds],
                )
                for (partition, credit), seconds in times.items()
            ]
    return rows


def _searched(bytescheduler: System, python: str) -> dict[float, Found]:
    found = {}
    for rate in RATES:
        print(f"tuning: {_rate(rate)}; {TRIALS} trials", flush=True)
        setting, config = _job(rate)

        def measure(sizes: Sizes, setting: Setting = setting, config: Config = config) -> float:
            return _iteration_s(with_sizes(bytescheduler, sizes, str(sizes)), setting, config)

        found[rate] = search(measure, python)
    return found


def run(systems: Sequence[System], length: str = "usual") -> list[Row]:
    """In short, and without the tuner's environment, or root: the model's maps alone."""
    rows = by_model()
    if length == "quick":
        return rows
    named = {system.name: system for system in systems}
    if not {BYTESCHEDULER, MERCURY} <= named.keys():
        return rows
    try:
        if (reason := privilege_missing()) is not None:
            raise LabError(f"it needs links of a given rate, but {reason}")
        python = peer_python(TUNER)
    except (LabError, PeerMissing) as missing:
        print(f"skipped: tuning by jobs: {missing}", flush=True)
        return rows
    found = _searched(named[BYTESCHEDULER], python)
    return rows + compared(named[BYTESCHEDULER], named[MERCURY], found)
