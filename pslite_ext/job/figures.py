"""This process's live figures: as a table for scripts, and on a page that Prometheus reads."""

from __future__ import annotations

import contextlib
import errno
import json
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from pslite_ext import __version__, _core
from pslite_ext.job import metrics
from pslite_ext.job.page_server import PageServer
from pslite_ext.job.steps import STEPS

PORTS_TRIED = 64  # of processes that share a machine, each has its own


def _of_core() -> dict[str, Any]:
    figures: dict[str, Any] = json.loads(_core.figures())
    return figures


_source = _of_core
_added: dict[str, Any] = {}


def add(name: str, value: Any) -> None:
    """One more figure, a front end's."""
    _added[name] = value


def come_from(source: Callable[[], dict[str, Any]]) -> None:
    """Of a worker under MLfabric, which counts other things than the core does elsewhere."""
    global _source
    _source = source


def now() -> dict[str, Any]:
    """This process's figures, now: {} unless it is in a job that has begun.

    In an MLfabric job, `fabric` says how many updates were pushed and what became of them. Else
    `peers` has an entry for each node with which this one exchanges packets; `queue` in it lists
    [priority, how many wait], the most urgent first. `messages` has one for each with which it
    exchanges messages.
    """
    return {**_source(), **_added}


def page(openmetrics: bool = False) -> tuple[str, str]:
    """Its type and its text."""
    text = metrics.page(now(), STEPS.histogram(), __version__, openmetrics)
    return metrics.OPENMETRICS if openmetrics else metrics.PLAIN, text


def serve(settings: Mapping[str, int | str]) -> None:
    """Opens the page where they say, or at the next port that is free; port 0: does nothing.

    A page is not worth a job: without one, the job goes on.
    """
    host, port = str(settings["MERCURY_METRICS_HOST"]), int(settings["MERCURY_METRICS_PORT"])
    if port == 0:
        return
    last = min(port + PORTS_TRIED, 65536) - 1
    why = ""
    for number in range(port, last + 1):
        try:
            server = PageServer(host, number, page)
        except OSError as error:
            why = error.strerror or str(error)
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                continue
            last = number  # another port of that host would not do either
            break
        threading.Thread(target=server.serve_forever, daemon=True, name="mercury-metrics").start()
        shown = f"[{host}]" if ":" in host else host
        print(f"mercury: live figures are at http://{shown}:{number}/metrics", file=sys.stderr)
        return
    print(
        f"mercury: no live figures: MERCURY_METRICS_PORT is '{port}', and no port of {host} from "
        f"{port} to {last} can be opened ({why}); the job goes on",
        file=sys.stderr,
    )


def summary(figures: dict[str, Any]) -> str:
    """One line for the log; empty if nothing was carried."""
    if "fabric" in figures:
        return _of_updates(figures["rank"], dict(figures["fabric"]))
    peers = [p for p in figures.get("peers", []) if "bytes_sent" in p]
    messages = figures.get("messages", [])
    sent, received = (
        sum(p[f"bytes_{way}"] for p in (*peers, *messages)) for way in ("sent", "received")
    )
    if sent + received == 0:
        return _of_prophet(figures)
    how = [
        _count(sum(p[f"{what}s_sent"] for p in of), what)
        for what, of in (("packet", peers), ("message", messages))
        if sum(p["bytes_sent"] for p in of)
    ]
    into = f" in {' and '.join(how)}" if how else ""
    parts = [
        f"{figures['role']} {figures['rank']}: {_size(sent)} sent{into}",
        f"{_size(received)} received",
    ]
    full_s = sum(p["blocked_us"] for p in peers) / 1e6
    overtaken = sum(p["preemptions"] for p in peers)
    if full_s >= 0.05:
        parts.append(f"sockets full for {full_s:.1f} s")
    if overtaken and figures["role"] == "worker":
        parts.append(_count(overtaken, "preemption"))
    return "; ".join(filter(None, (", ".join(parts), _of_prophet(figures))))


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _size(number: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"


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


def _of_updates(rank: int, fates: dict[str, int]) -> str:
    pushed, committed, lost = (fates.pop(name, 0) for name in ("pushed", "committed", "lost"))
    if not pushed:
        return ""
    dropped = [f"{count} {reason}" for reason, count in fates.items() if count]
    return ", ".join(
        [
            f"worker {rank}: {pushed} updates pushed",
            f"{committed} committed",
            f"{sum(fates.values())} dropped" + (f" ({', '.join(dropped)})" if dropped else ""),
            f"{lost} lost with the server",
        ]
    )


def say() -> None:
    """This process's last word. Whoever ends goes on ending if nobody can read it."""
    if line := summary(now()):
        with contextlib.suppress(OSError, ValueError):
            print(f"mercury: {line}", file=sys.stderr)
