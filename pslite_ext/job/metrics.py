"""The live figures as Prometheus reads them: as OpenMetrics, or in its older text format.

Pure: figures go in, text comes out. Units are seconds and bytes; every sample says the role and the
rank of its process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pslite_ext.job.steps import BOUNDS_S

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PLAIN = "text/plain; version=0.0.4; charset=utf-8"
_MICRO = 1e-6


@dataclass(frozen=True)
class Metric:
    figure: str  # its key in the figures
    name: str  # without mercury_ in front and, of a counter, _total behind
    kind: str
    says: str
    factor: float = 1

    @property
    def unit(self) -> str:
        return next((u for u in ("bytes", "seconds") if self.name.endswith(f"_{u}")), "")


def _counter(figure: str, name: str, says: str, factor: float = 1) -> Metric:
    return Metric(figure, name, "counter", says, factor)


def _gauge(figure: str, name: str, says: str, factor: float = 1) -> Metric:
    return Metric(figure, name, "gauge", says, factor)


# Of both paths, with path="packets" or "messages".
TRAFFIC = (
    _counter("bytes_sent", "sent_bytes", "Bytes sent to the peer, headers and all"),
    _counter("bytes_received", "received_bytes", "Bytes received from the peer, headers and all"),
)
PEER = (
    _gauge("connected", "connected", "1: the link is up"),
    _counter("packets_sent", "sent_packets", "Packets sent to the peer"),
    _counter("packets_received", "received_packets", "Packets received from the peer"),
    _counter("segments_sent_again", "retransmitted_segments", "Segments that TCP sent again"),
    _counter("send_calls", "send_calls", "Calls of the system that sent"),
    _counter("receive_calls", "receive_calls", "Calls of the system that received"),
    _counter("blocked_us", "blocked_seconds", "Time with something to send, socket full", _MICRO),
    _counter("preemptions", "preemptions", "Times a more urgent tensor overtook another"),
    _gauge("rate_bytes_per_s", "rate_bytes_per_second", "Best measured rate of the last moments"),
    _gauge("round_trip_us", "round_trip_seconds", "The network's, without queues", _MICRO),
    _gauge("window_bytes", "window_bytes", "What may be under way"),
    _gauge("under_way_bytes", "under_way_bytes", "What is under way"),
    _gauge("packet_bytes", "packet_bytes", "Largest packet now"),
    _gauge(
        "awaited_permille",
        "awaited_ratio",
        "Part of the time, lately, for which a server's sums waited for it alone",
        1e-3,
    ),
    # The policy prophet's:
    _counter("blocks", "blocks", "Blocks of gradients"),
    _counter("block_bytes", "block_bytes", "Bytes in blocks"),
    _counter(
        "held_us", "held_seconds", "Time in which nothing was sent, as nothing fitted", _MICRO
    ),
    _gauge("transfer_error_us", "transfer_error_seconds", "How far blocks' times were off", _MICRO),
    _gauge("block_rate_bytes_per_s", "block_rate_bytes_per_second", "Rate blocks are made for"),
)
MESSAGES = (
    _counter("messages_sent", "sent_messages", "Messages sent to the peer"),
    _counter("messages_received", "received_messages", "Messages received from the peer"),
)
PROCESS = (
    _gauge("workers", "workers", "Workers that are in the job"),
    _gauge("tensors_under_way", "tensors_under_way", "Tensors whose sum is not in"),
    _gauge("pool_bytes", "pool_bytes", "Memory for packets on a server"),
    _gauge("pool_bytes_in_use", "pool_used_bytes", "Part of it that holds something"),
    _gauge("tensors", "tensors", "Tensors that a server knows"),
    _counter(
        "connections_refused", "refused_connections", "Data links that did not prove themselves"
    ),
    _counter("control_refused", "refused_control", "Control connections and messages, refused"),
    _counter("trace_events_lost", "dropped_trace_events", "Events for which a trace had no room"),
    # The policy prophet's:
    _gauge("profile_known", "profile_known", "1: there is a profile that holds"),
    _counter("profiles", "profiles", "Profiles that were learnt or loaded"),
    _counter("iterations", "profiled_iterations", "Iterations that were seen"),
    _gauge("production_error_us", "production_error_seconds", "How far gradients were off", _MICRO),
    _counter("waits", "waits", "Iterations whose waits were measured"),
    _counter("wait_first_us", "wait_first_seconds", "Until the most urgent sum was in", _MICRO),
    _counter("wait_later_us", "wait_later_seconds", "After that, beyond the forward pass", _MICRO),
)


# Of an MLfabric job's worker: what became of its updates, by fate.
UPDATES = _counter("", "fabric_updates", "Updates of this worker, by what became of them")
PUSHED = _counter("", "fabric_pushed_updates", "Updates that this worker has pushed")


class _Page:
    def __init__(self, openmetrics: bool, me: Mapping[str, Any]) -> None:
        self._openmetrics = openmetrics
        self._me = me
        self._lines: list[str] = []

    def family(
        self, metric: Metric, samples: Iterable[tuple[str, Mapping[str, Any], float]]
    ) -> None:
        """A sample: what is behind the name, further labels, the value."""
        name = f"mercury_{metric.name}"
        total = "_total" if metric.kind == "counter" else ""
        head = name if self._openmetrics else name + total
        self._lines.append(f"# TYPE {head} {metric.kind}")
        if self._openmetrics and metric.unit:
            self._lines.append(f"# UNIT {head} {metric.unit}")
        self._lines.append(f"# HELP {head} {metric.says}")
        for behind, labels, value in samples:
            said = ",".join(f'{key}="{text}"' for key, text in {**self._me, **labels}.items())
            number = value * metric.factor
            shown = repr(number) if isinstance(number, float) else str(number)
            self._lines.append(f"{name}{total or behind}{{{said}}} {shown}")

    def text(self) -> str:
        return "\n".join([*self._lines, *["# EOF"] * self._openmetrics]) + "\n"


def page(
    figures: Mapping[str, Any],
    steps: tuple[list[int], float],
    version: str,
    openmetrics: bool = False,
) -> str:
    """Of this process; without a job there is nothing in it."""
    me = {key: figures[key] for key in ("role", "rank") if key in figures}
    written = _Page(openmetrics, me)
    if not figures:
        return written.text()
    info = {"version": version, "policy": figures["policy"]}
    written.family(Metric("", "build_info", "gauge", "What this process runs"), [("", info, 1)])
    if "fabric" in figures:
        fates = {**figures["fabric"]}
        written.family(PUSHED, [("", {}, fates.pop("pushed"))])
        written.family(UPDATES, [("", {"fate": fate}, count) for fate, count in fates.items()])
        _write_steps(written, *steps)
        return written.text()
    packets, messages = figures["peers"], figures["messages"]
    for metric in TRAFFIC:
        written.family(
            metric,
            [
                ("", {"peer": peer["peer"], "path": path}, peer[metric.figure])
                for path, peers in (("packets", packets), ("messages", messages))
                for peer in peers
            ],
        )
    for metrics, peers in ((PEER, packets), (MESSAGES, messages)):
        for metric in metrics:
            having = [p for p in peers if metric.figure in p]
            if having:
                samples = [("", {"peer": p["peer"]}, p[metric.figure]) for p in having]
                written.family(metric, samples)
    queue = [
        ("", {"peer": p["peer"], "priority": priority}, waiting)
        for p in packets
        for priority, waiting in p["queue"]
    ]
    written.family(_gauge("", "queue_depth", "What waits to be sent, by priority"), queue)
    for metric in PROCESS:
        if metric.figure in figures:
            written.family(metric, [("", {}, figures[metric.figure])])
    if figures["role"] == "worker":
        _write_steps(written, *steps)
    return written.text()


def _write_steps(written: _Page, counts: list[int], seconds: float) -> None:
    bounds = [*map(str, BOUNDS_S), "+Inf"]
    samples: list[tuple[str, Mapping[str, Any], float]] = [
        ("_bucket", {"le": bound}, count) for bound, count in zip(bounds, counts)
    ]
    samples += [("_count", {}, counts[-1]), ("_sum", {}, seconds)]
    says = "From a key's push to its next one"
    written.family(Metric("", "step_seconds", "histogram", says), samples)
    written.family(_counter("", "steps", "Training steps"), [("", {}, counts[-1])])
