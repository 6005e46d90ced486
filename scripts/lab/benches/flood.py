"""How full a link gets, how soon an urgent tensor is back, and what it costs in processor time."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from scripts.lab.benches.case import USUAL, Case, Figure, Figures, Setting, percentile
from scripts.lab.systems.job import Outcome
from scripts.lab.systems.system import System
from scripts.lab.workloads.job_config import Config

BULK = 16  # tensors of 4 MiB: 67 MB under way
BULK_BYTES = 4 << 20
URGENT_BYTES = 100_000
URGENT_EVERY_S = 0.1
PACKETS = (4, 16, 64, 256, 1024)  # KiB


def _goodput(outcome: Outcome) -> float:
    """Bits of gradient per second and worker; as many come back."""
    per_worker = [r["flood_bytes"] / (w["end"]["t"] - w["begin"]["t"]) for r, w in _pairs(outcome)]
    return 8 * statistics.mean(per_worker)


def _pairs(outcome: Outcome) -> list[tuple[dict[str, float], dict[str, dict[str, float]]]]:
    return list(zip(outcome.results, outcome.workers))


def _flow(outcome: Outcome, rate: float | None) -> Figures:
    goodput = _goodput(outcome)
    figures = {"goodput each way": Figure(goodput / 1e6, "Mbit/s")}
    if rate is not None:
        sent, received = (
            min(w[way] for w in outcome.wire_bytes()) * 8 / outcome.seconds / rate for way in (0, 1)
        )
        figures["goodput each way / link"] = Figure(goodput / rate, "")
        figures["interface sent / link"] = Figure(sent, "")
        figures["interface received / link"] = Figure(received, "")
    return figures


def _cost(outcome: Outcome) -> Figures:
    gigabytes = sum(r["flood_bytes"] for r in outcome.results) / 1e9
    return {
        "worker processor time": Figure(sum(outcome.worker_cpu_s()) / gigabytes, "s/GB"),
        "server processor time": Figure(sum(outcome.cpu_s("server")) / gigabytes, "s/GB"),
    }


def _rounds(seconds: float, rate: float | None, count: int, size: int) -> int:
    return max(2, round(seconds * (rate or 4e9) / 8 / (count * size)))


def _bulk(rate: float | None) -> int:
    """At least 50 MB under way on fast links; on slow ones a round must end some time."""
    return BULK if rate is None or rate >= 500e6 else BULK // 2


def goodput(
    systems: Sequence[System],
    seconds: float,
    settings: Sequence[Setting] = (USUAL,),
    bench: str = "goodput",
) -> list[Case]:
    cases = []
    for setting in settings:
        count, size = _bulk(setting.rate), BULK_BYTES
        rounds = _rounds(seconds, setting.rate, count, size)
        config = Config("flood", {"count": count, "bytes": size}, rounds=rounds)
        for system in systems:

            def measure(outcome: Outcome, rate: float | None = setting.rate) -> Figures:
                flow = _flow(outcome, rate)
                if bench == "cpu":
                    return _cost(outcome)
                return {**flow, **_cost(outcome)} if bench == "loopback" else flow

            what = f"{count} tensors of {size >> 10} KiB back to back"
            expected = (rounds + 3) * count * size * 8 / (setting.rate or 3e9) * 1.5
            cases.append(Case(bench, what, system, setting, config, measure, expected))
    return cases


def packet_sizes(system: System, seconds: float, sizes: Sequence[int] = PACKETS) -> list[Case]:
    return [
        case
        for kib in sizes
        for case in goodput(
            [system.variant(f"{kib} KiB", MERCURY_PACKET_BYTES=str(kib << 10))], seconds
        )
    ]


def urgent(
    systems: Sequence[System], pushes: int, setting: Setting = USUAL, bench: str = "urgent"
) -> list[Case]:
    assert setting.rate is not None
    count = _bulk(setting.rate)
    # The bulk lasts longer than the urgent pushes, however fast it is.
    rounds = _rounds(pushes * URGENT_EVERY_S * 1.1, setting.rate, count, BULK_BYTES) + 1
    tensors = {"count": count, "bytes": BULK_BYTES, "urgent_bytes": URGENT_BYTES}
    config = Config("flood", tensors, rounds=rounds, urgent=pushes, urgent_every_s=URGENT_EVERY_S)

    def measure(outcome: Outcome) -> Figures:
        latencies = [1000 * s for r in outcome.results for s in r["urgent_s"]]
        return {
            "urgent, median": Figure(statistics.median(latencies), "ms"),
            "urgent, p95": Figure(percentile(latencies, 0.95), "ms"),
            **_flow(outcome, setting.rate),
        }

    what = f"{URGENT_BYTES // 1000} KB, most urgent, under {count * BULK_BYTES / 1e6:.0f} MB"
    seconds = (rounds + 3) * count * BULK_BYTES * 8 / setting.rate * 1.8
    return [Case(bench, what, s, setting, config, measure, seconds) for s in systems]
