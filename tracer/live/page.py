"""A picture of a running job as a page for a terminal, or as one line."""

from __future__ import annotations

from tracer.live.watch import LinkFigures, Picture, WorkerFigures

BAR = 12
FULL, EMPTY = "█", "·"
STALL_S = 5.0  # without news; files are two seconds behind at most
HEADS = ("step", "steps/s", "ms a step", "of it waiting", "last", "behind ms")


def line(picture: Picture, silent_s: float = 0.0) -> str:
    """All that matters, for a log."""
    if not picture.seen:
        return "waiting for trace files"
    parts = [_step(picture)]
    if picture.steps_per_s is not None:
        parts.append(f"{picture.steps_per_s:.2f} steps/s")
    waits = [share for w in picture.workers if (share := _waiting_share(w)) is not None]
    if waits:
        parts.append(f"waiting {100 * max(waits):.0f} %")
    slowest = picture.slowest
    if slowest is not None and len(picture.workers) > 1:
        parts.append(f"slow: {_blame(slowest)}")
    if picture.links:
        parts.append(f"to servers {_mbit(sum(link.to_server for link in picture.links))} Mbit/s")
        parts.append(f"to workers {_mbit(sum(link.to_worker for link in picture.links))} Mbit/s")
    return ", ".join([*parts, *state(picture, silent_s)])


def state(picture: Picture, silent_s: float) -> list[str]:
    """What is out of the ordinary."""
    out = [f"without {', '.join(picture.lost)}"] if picture.lost else []
    if picture.failure:
        return [*out, f"failed: {picture.failure}"]
    if picture.over:
        return [*out, "the job has ended"]
    if picture.off:
        return [*out, f"steps after {picture.step} are not recorded for now"]
    if picture.seen and silent_s >= STALL_S:
        steps = sorted((worker.step, worker.rank) for worker in picture.workers)
        behind = steps and steps[0][0] < steps[-1][0]
        who = f"; worker {steps[0][1]} is at step {steps[0][0]}, others further" if behind else ""
        return [*out, f"nothing new for {silent_s:.0f} s{who}"]
    return out


def page(
    picture: Picture, directory: str, rows: int, columns: int, fastest: float, silent_s: float
) -> list[str]:
    """As many lines as fit. Bars are shares of `fastest`, bytes a second."""
    if not picture.seen:
        return [f"{directory}: waiting for trace files"[:columns]]
    missing = picture.expected - picture.seen
    there = f"{picture.seen} of {picture.expected} nodes" if missing else f"{picture.seen} nodes"
    named = f"run {picture.run}: " if picture.run else ""
    out = [f"{named}{picture.mode}, {picture.training}, {there} in {directory}"]
    speed = picture.steps_per_s
    out.append(_step(picture) + ("" if speed is None else f", {speed:.2f} steps/s"))
    slowest = picture.slowest
    if slowest is not None and len(picture.workers) > 1:
        out.append(f"slow: {_blame(slowest)}")
    out += [*(text[:1].upper() + text[1:] for text in state(picture, silent_s)), ""]
    table = [["", *HEADS], *(_worker(worker) for worker in picture.workers)]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    out += ["  ".join(c.rjust(w) for c, w in zip(row, widths)).rstrip() for row in table]
    if picture.links:
        out += ["", f"{'links, Mbit/s':>20}  {'to the server':<{BAR + 8}}  to the worker"]
        links = sorted(picture.links, key=lambda one: -max(one.to_server, one.to_worker))
        room = max(rows - len(out) - 1, 1)
        out += [_link(one, fastest) for one in links[:room]]
        if len(links) > room:
            out.append(f"{len(links) - room} more links, less busy")
    return [text[:columns] for text in out[:rows]]


def _step(picture: Picture) -> str:
    return f"step {picture.step}" if picture.step >= 0 else "no step yet"


def _worker(worker: WorkerFigures) -> list[str]:
    share = _waiting_share(worker)
    waiting = "-" if share is None else f"{worker.waiting_ms:.1f} ({100 * share:.0f} %)"
    return [
        f"worker {worker.rank}",
        str(worker.step) if worker.step >= 0 else "-",
        _number(worker.steps_per_s, 2),
        _number(worker.step_ms, 1),
        waiting,
        "-" if worker.last_share is None else f"{100 * worker.last_share:.0f} %",
        _number(worker.behind_ms, 1),
    ]


def _link(link: LinkFigures, fastest: float) -> str:
    name = f"worker {link.worker} - server {link.server}"
    ways = (f"{_bar(rate, fastest)} {_mbit(rate):>7}" for rate in (link.to_server, link.to_worker))
    return f"{name:>20}  " + "  ".join(ways)


def _bar(rate: float, fastest: float) -> str:
    filled = round(BAR * min(rate / fastest, 1.0)) if fastest > 0 else 0
    return FULL * filled + EMPTY * (BAR - filled)


def _waiting_share(worker: WorkerFigures) -> float | None:
    if worker.waiting_ms is None or not worker.step_ms:
        return None
    return min(worker.waiting_ms / worker.step_ms, 1.0)


def _blame(worker: WorkerFigures) -> str:
    share = 100 * (worker.last_share or 0)
    return (
        f"worker {worker.rank}, last in {share:.0f} % of sums by {_number(worker.behind_ms, 1)} ms"
    )


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _mbit(rate: float) -> str:
    return f"{rate * 8 / 1e6:.1f}" if rate * 8 < 1e8 else f"{rate * 8 / 1e6:.0f}"
