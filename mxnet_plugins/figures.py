"""The data plane's live figures: as a table for scripts, and as a page that Prometheus reads."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError

# Per peer: the key in the figures, Prometheus's kind, what it means.
PEER_FIGURES = (
    ("connected", "gauge", "1: the link is up"),
    ("bytes_sent", "counter", "Bytes sent to the peer, headers and all"),
    ("bytes_received", "counter", "Bytes received from the peer, headers and all"),
    ("packets_sent", "counter", "Packets sent to the peer"),
    ("packets_received", "counter", "Packets received from the peer"),
    ("send_calls", "counter", "Calls of the system that sent"),
    ("receive_calls", "counter", "Calls of the system that received"),
    ("blocked_us", "counter", "Microseconds with something to send and a full socket"),
    ("preemptions", "counter", "Times a tensor was overtaken by a more urgent one"),
    ("rate_bytes_per_s", "gauge", "Best measured rate of the last moments"),
    ("round_trip_us", "gauge", "The network's round trip, without queues"),
    ("window_bytes", "gauge", "What may be under way"),
    ("under_way_bytes", "gauge", "What is under way"),
    ("packet_bytes", "gauge", "Largest packet now"),
    # The policy prophet's:
    ("blocks", "counter", "Blocks of gradients"),
    ("block_bytes", "counter", "Bytes in blocks"),
    ("held_us", "counter", "Microseconds in which nothing was sent, as nothing fitted"),
    ("transfer_error_us", "gauge", "How far blocks' times were off, on average lately"),
    ("block_rate_bytes_per_s", "gauge", "Rate that blocks are made for"),
)
PROCESS_FIGURES = (
    ("tensors_under_way", "gauge", "Tensors whose sum is not in"),
    ("pool_bytes", "gauge", "Memory for packets on a server"),
    ("pool_bytes_in_use", "gauge", "Part of it that holds something"),
    ("tensors", "gauge", "Tensors that a server knows"),
    # The policy prophet's:
    ("profile_known", "gauge", "1: there is a profile that holds"),
    ("profiles", "counter", "Profiles that were learnt or loaded"),
    ("iterations", "counter", "Iterations that were seen"),
    ("production_error_us", "gauge", "How far half the last iteration's gradients were off"),
    ("waits", "counter", "Iterations whose waits were measured"),
    ("wait_first_us", "counter", "Microseconds until the most urgent sum was in"),
    ("wait_later_us", "counter", "Microseconds after that, beyond the shortest forward pass"),
    ("connections_refused", "counter", "Connections for packets that did not prove themselves"),
    ("control_refused", "counter", "The control plane's connections and messages, refused"),
)


def now() -> dict[str, Any]:
    """This process's figures, now: {} unless it is in a job whose tensors go as packets, or in
    Prophet's queue.

    `peers` has an entry for each node this one is connected to; `queue` in it lists [priority,
    how many wait], the most urgent first.
    """
    figures: dict[str, Any] = json.loads(_core.figures())
    return figures


def prometheus(figures: dict[str, Any]) -> str:
    """The figures in Prometheus's text format."""
    if not figures:
        return ""
    me = f'role="{figures["role"]}",rank="{figures["rank"]}",policy="{figures["policy"]}"'
    peers = figures["peers"]
    lines: list[str] = []

    def family(name: str, kind: str, meaning: str, samples: Iterable[tuple[str, Any]]) -> None:
        name = "mercury_" + name + ("_total" if kind == "counter" else "")
        lines.extend((f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"))
        lines.extend(f"{name}{{{me}{labels}}} {value}" for labels, value in samples)

    for name, kind, meaning in PROCESS_FIGURES:
        if name in figures:
            family(name, kind, meaning, [("", figures[name])])
    for name, kind, meaning in PEER_FIGURES:
        if not any(name in p for p in peers):
            continue
        family(name, kind, meaning, _of_peers(peers, name))
    depths = [
        (f',peer="{p["peer"]}",priority="{priority}"', waiting)
        for p in peers
        for priority, waiting in p["queue"]
    ]
    family("queue_depth", "gauge", "What waits to be sent, by priority", depths)
    return "\n".join(lines) + "\n"


def _of_peers(peers: list[dict[str, Any]], name: str) -> list[tuple[str, Any]]:
    return [(f',peer="{p["peer"]}"', p[name]) for p in peers]


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path not in ("/", "/metrics"):
            self.send_error(404, "there is /metrics")
            return
        body = prometheus(now()).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a page that is read every few seconds would fill the log."""


def serve(port: int) -> None:
    """Opens the page on 127.0.0.1; port 0: does nothing."""
    if port == 0:
        return
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), _Page)
    except OSError as error:
        raise InvalidArgumentError(
            f"MERCURY_METRICS_PORT is '{port}', which cannot be opened: {error.strerror}; every "
            "process of a machine needs a port of its own"
        ) from None
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True, name="mercury-metrics").start()


def summary(figures: dict[str, Any]) -> str:
    """One line for the log; empty if nothing was carried."""
    peers = figures.get("peers", [])
    sent, received = (sum(p[f"bytes_{way}"] for p in peers) for way in ("sent", "received"))
    if sent + received == 0:
        return _of_prophet(figures)
    packets = sum(p["packets_sent"] for p in peers)
    blocked = sum(p["blocked_us"] for p in peers) / 1e6
    line = (
        f"{figures['role']} {figures['rank']}: {sent / 1e6:.1f} MB sent in {packets} packets, "
        f"{received / 1e6:.1f} MB received, sockets full for {blocked:.1f} s"
    )
    if figures["role"] == "worker":
        line += f", {sum(p['preemptions'] for p in peers)} preemptions"
        return "; ".join(filter(None, (line, _of_prophet(figures))))
    return line + f", {figures['pool_bytes'] / 1e6:.1f} MB in packets"


def _of_prophet(figures: dict[str, Any]) -> str:
    if not figures.get("iterations"):
        return ""
    blocks, size = (sum(p[name] for p in figures["peers"]) for name in ("blocks", "block_bytes"))
    waits = max(figures["waits"], 1)
    return (
        f"Prophet: {blocks / figures['iterations']:.1f} blocks an iteration, "
        f"{size / max(blocks, 1) / 1e3:.0f} kB each; waited "
        f"{figures['wait_first_us'] / waits / 1e3:.1f} ms for the most urgent sum, "
        f"{figures['wait_later_us'] / waits / 1e3:.1f} ms later"
    )


def say() -> None:
    """The last word of a process whose tensors went as packets."""
    if line := summary(now()):
        print(f"mercury: {line}", file=sys.stderr)
