"""Long runs, many tensors, many processes, one huge tensor, and doing nothing."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from scripts.lab.benches.case import Case, Figure, Figures, Setting
from scripts.lab.systems.job import Outcome
from scripts.lab.systems.system import System
from scripts.lab.workloads.job_config import Config

LOOPBACK = Setting(rate=None, loopback=True)
IDLE_S = 10.0
HUGE_BYTES = 4_000_000_000
# A worker's gradient and its first value, the servers' sums, and as much again under way. One
# worker, so that it fits ordinary machines; a virtual one may need minutes to find the memory.
HUGE_MEMORY = 4.0 * HUGE_BYTES
HUGE_TIMEOUT_S = 1800


def idle(systems: Sequence[System]) -> list[Case]:
    config = Config("idle", {"count": 4, "bytes": 1 << 16}, idle_s=IDLE_S)

    def measure(outcome: Outcome) -> Figures:
        begin, end = outcome.samples["begin"], outcome.samples["end"]
        seconds = end.t - begin.t
        shares: dict[str, list[float]] = {}
        for host, spent in end.cpu_s.items():
            role = host.rstrip("0123456789")
            shares.setdefault(role, []).append((spent - begin.cpu_s[host]) / seconds)
        return {f"core, {role}": Figure(100 * max(s), "%") for role, s in shares.items()}

    what = f"{IDLE_S:g} s of waiting"
    return [Case("idle", what, s, LOOPBACK, config, measure, IDLE_S) for s in systems]


def _memory(outcome: Outcome, marks: Sequence[str]) -> Figures:
    figures: Figures = {}
    for role in ("worker", "server"):
        for mark in marks:
            resident = [
                m.get("now", 0)
                for host, m in outcome.samples[f"progress {mark}"].memory_kb.items()
                if host.startswith(role)
            ]
            figures[f"{role} memory after {mark} rounds"] = Figure(max(resident) / 1024, "MiB")
    return figures


def soak(systems: Sequence[System], rounds: int = 10_000) -> list[Case]:
    reports = [rounds // 10, rounds // 2, rounds]
    config = Config("rounds", {"count": 20, "bytes": 40_000}, rounds=rounds, reports=reports)

    def measure(outcome: Outcome) -> Figures:
        took = statistics.median(t for r in outcome.results for t in r["times_s"])
        return {
            **_memory(outcome, [str(n) for n in reports]),
            "median round": Figure(1000 * took, "ms"),
        }

    what = f"{rounds} rounds of 20 tensors of 40 KB"
    seconds = rounds * 0.02
    return [
        Case("soak", what, s, LOOPBACK, config, measure, seconds, timeout_s=6 * seconds + 120)
        for s in systems
    ]


def _round_time(outcome: Outcome) -> Figures:
    took = statistics.median(t for r in outcome.results for t in r["times_s"])
    return {
        "median round": Figure(took, "s"),
        "worker memory, most": Figure(outcome.peak_kb("worker") / 1024, "MiB"),
        "server memory, most": Figure(outcome.peak_kb("server") / 1024, "MiB"),
    }


def many_tensors(systems: Sequence[System], count: int = 1000) -> list[Case]:
    config = Config("rounds", {"count": count, "bytes": 40_000}, rounds=10)
    what = f"{count} tensors of 40 KB"
    return [Case("soak", what, s, LOOPBACK, config, _round_time, 15) for s in systems]


def many_processes(systems: Sequence[System], each: int = 8) -> list[Case]:
    setting = Setting(each, each, None, loopback=True)
    config = Config("rounds", {"model": "lenet5"}, rounds=20)
    what = f"{each} workers and {each} servers, LeNet-5"
    return [Case("soak", what, s, setting, config, _round_time, 10) for s in systems]


def huge_tensor(systems: Sequence[System]) -> list[Case]:
    setting = Setting(1, 2, None, loopback=True)
    config = Config("rounds", {"count": 1, "bytes": HUGE_BYTES}, rounds=1, warmup=0)
    what = f"one tensor of {HUGE_BYTES / 1e9:g} GB"
    return [
        Case("soak", what, s, setting, config, _round_time, 60, {}, HUGE_TIMEOUT_S, HUGE_MEMORY)
        for s in systems
    ]
