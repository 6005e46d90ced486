"""What a job under MLfabric did, from its scheduler's record (docs/fabric.md)."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracer.errors import TraceError

NAME = "trace_fabric.jsonl"
VERSION = 1

Update = tuple[int, int]  # worker and number


@dataclass(frozen=True)
class Carriage:
    """What one node carried to another without a pause; seconds since the job began."""

    source: str
    target: str
    start_s: float
    end_s: float
    bits: float


@dataclass(frozen=True)
class Lack:
    """What the replica lacks from then on."""

    at_s: float
    updates: int
    norm: float  # the sum of these updates' norms


@dataclass
class LinkTotals:
    bits: float = 0
    busy_s: float = 0  # while it carried what was timed


@dataclass
class History:
    job: dict[str, Any]
    span_s: float = 0
    updates: int = 0
    fates: Counter[str] = field(default_factory=Counter)
    plans: int = 0
    groups: int = 0
    trees: Counter[str] = field(default_factory=Counter)  # models down trees, by who gives them
    delays: Counter[int] = field(default_factory=Counter)
    heard_after_s: list[float] = field(default_factory=list)  # from push to request
    planned_after_s: list[float] = field(default_factory=list)  # from request to first plan
    planning_s: list[float] = field(default_factory=list)  # from there until its orders went out
    told_after_s: list[float] = field(default_factory=list)  # until the worker heard its own
    control_s: list[float] = field(default_factory=list)  # from push to there, but for the wait
    applied_after_s: list[float] = field(default_factory=list)  # from request to commit
    links: dict[tuple[str, str], LinkTotals] = field(default_factory=dict)
    took_over: list[int] = field(default_factory=list)  # versions at which a replica did
    missed: int = 0  # lines that found no room
    behind_most: int = 0  # updates that the replica lacked after a commit
    runs: list[Carriage] = field(default_factory=list)
    lacks: list[Lack] = field(default_factory=list)
    applied: list[tuple[float, int]] = field(default_factory=list)  # when, and how late

    @property
    def dropped(self) -> dict[str, int]:
        """How many, by reason."""
        return {n: c for n, c in sorted(self.fates.items()) if n not in ("committed", "lost")}

    @property
    def passed_on(self) -> int:
        """Models that workers gave to others."""
        return sum(n for node, n in self.trees.items() if node != "server")

    @property
    def takeovers(self) -> str:
        """In words; "": there were none."""
        if len(self.took_over) < 2:
            return "".join(f"the replica became the server at version {v}" for v in self.took_over)
        *others, last = self.took_over
        listed = ", ".join(map(str, others))
        return f"a replica became the server at versions {listed} and {last}"

    @property
    def waits(self) -> dict[str, list[float]]:
        """How long updates took, from what to what, in seconds; what is known."""
        all_of_them = {
            "push to request": self.heard_after_s,
            "request to plan": self.planned_after_s,
            "plan to its orders": self.planning_s,
            "orders to the worker": self.told_after_s,
            "push to the worker, but for request to plan": self.control_s,
            "request to commit": self.applied_after_s,
        }
        return {what: times for what, times in all_of_them.items() if times}


def events(path: str | Path) -> Iterator[dict[str, Any]]:
    """Line by line; a last one that was cut off does not count."""
    file = Path(path)
    if file.is_dir():
        file /= NAME
    try:
        text = file.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise TraceError(f"{file}: cannot be read: {reason}") from None
    lines = text.split("\n")[:-1]
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
            if not isinstance(event, dict) or not isinstance(event.get("event"), str):
                raise ValueError
        except (ValueError, RecursionError):
            raise TraceError(
                f"{file}:{number}: this is not an event of a job under MLfabric"
            ) from None
        if number == 1 and (event["event"], event.get("version")) != ("job", VERSION):
            raise TraceError(f"{file}: it does not begin as version {VERSION} of such a record")
        yield event
    if not lines:
        raise TraceError(f"{file}: it is empty")


def read(path: str | Path) -> History:
    history: History | None = None
    reader = _HistoryReader()
    for number, event in enumerate(events(path), 1):
        try:
            if history is None:
                history = History(event)
                reader.begin(history)
            else:
                reader.hear(event)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise TraceError(
                f"{path}: line {number}: the event '{event['event']}' lacks what it should say"
            ) from None
    assert history is not None, "events() has at least one, or raises"
    return history


class _HistoryReader:
    """Goes through a record, of which lines may be missing: what they told of is not known."""

    def begin(self, history: History) -> None:
        self._history = history
        job = history.job
        self._began_s = float(job["t"])
        numbers = [job["workers"], job["delay_bound"], job.get("servers", 1)]
        numbers += [job.get(name, 0) for name in ("momentum", "divergence_bound", "replica")]
        if not all(map(math.isfinite, numbers)):
            raise ValueError
        self._asked: dict[Update, tuple[float, int]] = {}  # when, and of which version
        self._norms: dict[Update, float] = {}
        self._way_s: dict[Update, float] = {}  # from push to request
        self._planned: set[Update] = set()
        self._first: dict[Update, float] = {}  # planned for the first time, when; not sent out yet
        self._out: dict[Update, tuple[float, float]] = {}  # when, and after how much planning
        self._at: dict[int, Update] = {}  # by place
        self._in_rounds: set[int] = set()  # places that make a version together
        self._reduced: set[int] = set()  # places of all-reduces, which make none
        self._lacking: set[int] = set()  # places that the server has applied, not the replica
        self._ahead: set[int] = set()  # places of which the replica was the first to tell
        self._followed = bool(job.get("replica"))  # whether any replica has the server's model
        self._follower = 0  # rank of the replica that follows, or is the next to
        self._gone_nodes: set[str] = set()

    def hear(self, event: dict[str, Any]) -> None:
        if "t" in event:
            self._history.span_s = float(event["t"]) - self._began_s
        take = getattr(self, f"_{event['event']}", None)
        if take is not None:
            take(event)

    def _request(self, event: dict[str, Any]) -> None:
        self._history.updates += 1
        self._asked[_update(event)] = (float(event["t"]), int(event["version"]))
        self._norms[_update(event)] = float(event.get("norm", 0))
        if "pushed" in event:
            way_s = self._way_s[_update(event)] = float(event["t"]) - float(event["pushed"])
            self._history.heard_after_s.append(way_s)

    def _plan(self, event: dict[str, Any]) -> None:
        self._history.plans += 1
        for placed in event["updates"]:
            update, place = _update(placed), int(placed["place"])
            self._at[place] = update
            if placed.get("reduce"):
                self._reduced.add(place)
            elif "round" in placed:
                self._in_rounds.add(place)
            if update not in self._planned:
                self._planned.add(update)
                self._first[update] = float(event["t"])
                if update in self._asked:
                    waited = float(event["t"]) - self._asked[update][0]
                    self._history.planned_after_s.append(waited)

    def _sent_out(self, event: dict[str, Any]) -> None:
        at_s = float(event["t"])
        for update, planned_s in self._first.items():
            self._history.planning_s.append(at_s - planned_s)
            self._out[update] = (at_s, at_s - planned_s)
        self._first.clear()

    def _heard(self, event: dict[str, Any]) -> None:
        update, at_s = _update(event), float(event["at"])
        if update not in self._out:
            return  # planned again
        sent_out_s, planning_s = self._out.pop(update)
        self._history.told_after_s.append(at_s - sent_out_s)
        if update in self._way_s:
            control_s = self._way_s[update] + planning_s + at_s - sent_out_s
            self._history.control_s.append(control_s)

    def _hop(self, event: dict[str, Any]) -> None:
        # What goes on along a chain is one sum, however many hops it takes. It may come to the
        # server through the replica.
        ends = not isinstance(event.get("to"), int)
        self._history.groups += bool(event["gathered"]) and ends

    def _commit(self, event: dict[str, Any]) -> None:
        places = set(map(int, event["places"]))
        asked = {p: self._asked[self._at[p]] for p in places if self._at.get(p) in self._asked}
        for asked_s, _ in asked.values():
            self._history.applied_after_s.append(float(event["t"]) - asked_s)
        places -= self._reduced
        version = int(event["version"])
        together = bool(places & self._in_rounds)
        for number, place in enumerate(sorted(places), 1):
            if place not in asked:
                continue
            _, computed_from = asked[place]
            delay = version - (0 if together else len(places) - number) - computed_from
            self._history.delays[delay] += 1
            self._history.applied.append((self._since(event["t"]), delay))
        self._lacking |= places - self._ahead
        self._ahead -= places
        if self._followed:
            self._history.behind_most = max(self._history.behind_most, len(self._lacking))
        self._lack(event)

    def _replica_applied(self, event: dict[str, Any]) -> None:
        places = set(map(int, event["places"]))
        self._ahead |= places - self._lacking
        self._lacking -= places
        self._lack(event)

    def _replica_caught_up(self, event: dict[str, Any]) -> None:
        self._lacking = {place for place in self._lacking if place > int(event["place"])}
        self._followed = True
        self._lack(event)

    def _lack(self, event: dict[str, Any]) -> None:
        if not self._followed:
            return
        lacking = [self._at[place] for place in self._lacking if place in self._at]
        norm = sum(self._norms.get(update, 0) for update in lacking)
        lack = Lack(self._since(event["t"]), len(self._lacking), norm)
        self._history.lacks.append(lack)

    def _since(self, moment: Any) -> float:
        return float(moment) - self._began_s

    def _fate(self, event: dict[str, Any]) -> None:
        self._history.fates[str(event["fate"])] += 1

    def _tree(self, event: dict[str, Any]) -> None:
        for source, _ in event["edges"]:
            self._history.trees[node_name(source)] += 1

    def _carried(self, event: dict[str, Any]) -> None:
        ends = (node_name(event["from"]), node_name(event["to"]))
        link = self._history.links.setdefault(ends, LinkTotals())
        link.bits += float(event["bits"])
        link.busy_s += float(event["end"]) - float(event["start"])
        start_s, end_s = self._since(event["start"]), self._since(event["end"])
        self._history.runs.append(Carriage(*ends, start_s, end_s, float(event["bits"])))

    def _took_over(self, event: dict[str, Any]) -> None:
        self._history.took_over.append(int(event["version"]))
        self._lacking.clear()
        self._follows_no_more(_replica_name(self._follower))

    def _gone(self, event: dict[str, Any]) -> None:
        self._follows_no_more(node_name(event["node"]))

    def _follows_no_more(self, name: str) -> None:
        """Nobody does, if it was that one, until the next one in reserve has caught up."""
        self._gone_nodes.add(name)
        if name == _replica_name(self._follower):
            self._followed = False
            self._ahead.clear()
        while _replica_name(self._follower) in self._gone_nodes:
            self._follower += 1

    def _missed(self, event: dict[str, Any]) -> None:
        self._history.missed += int(event["lines"])


def _update(event: dict[str, Any]) -> Update:
    return int(event["worker"]), int(event["number"])


def node_name(node: object) -> str:
    return f"worker {node}" if isinstance(node, int) else str(node)


def _replica_name(rank: int) -> str:
    return f"replica {rank}" if rank else "replica"


def quantile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def in_words(history: History) -> str:
    job, fates, dropped = history.job, history.fates, history.dropped
    reasons = ", ".join(f"{n} {name}" for name, n in dropped.items())
    lines = [
        f"{history.updates} updates of {job['workers']} workers in {history.span_s:.1f} s: "
        f"{fates['committed']} committed, {sum(dropped.values())} dropped"
        + (f" ({reasons})" if reasons else "")
        + (f", {fates['lost']} lost with the server" if fates["lost"] else ""),
        f"{history.plans} plans, {history.groups} groups",
    ]
    if history.trees:
        models = sum(history.trees.values())
        lines.append(f"{models} models went down trees; workers passed {history.passed_on} on")
    if job.get("replica"):
        lines.append(f"after a commit, the replica lacked {history.behind_most} updates at most")
    if history.took_over:
        lines.append(history.takeovers)
    if history.missed:
        lines.append(f"{history.missed} events found no room and are not counted")
    for what, times in history.waits.items():
        median, most = (f"{1e3 * quantile(times, q):.2f} ms" for q in (0.5, 0.99))
        lines.append(f"from {what}: median {median}, p99 {most}")
    if history.delays:
        lines += ["", f"delay  updates (bound {job['delay_bound']})"]
        lines += [f"{delay:5}  {n:7}" for delay, n in sorted(history.delays.items())]
    if history.links:
        lines += ["", "link                        MB   Mbit/s while it carried"]
        for (source, target), link in sorted(history.links.items()):
            rate = link.bits / link.busy_s / 1e6 if link.busy_s > 0 else 0.0
            lines.append(f"{f'{source} -> {target}':22} {link.bits / 8e6:7.1f}  {rate:7.1f}")
    return "\n".join(lines) + "\n"
