"""`mercury fabric history`: what a job under MLfabric did, by its scheduler's record."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pslite_ext.command.main import main
from tests.trace.chrome_rules import violations
from tracer.errors import TraceError
from tracer.fabric import NAME, VERSION, Carriage, Lack, in_words, read
from tracer.report.fabric import write_report

HEAD = {"t": 10.0, "event": "job", "version": VERSION, "workers": 2, "delay_bound": 4}


def asked(t: float, worker: int, number: int, version: int) -> dict[str, Any]:
    return {"t": t, "event": "request", "worker": worker, "number": number, "version": version}


def planned(t: float, *places: tuple[int, int, int]) -> dict[str, Any]:
    updates = [{"place": p, "worker": w, "number": n, "version": 0} for p, w, n in places]
    return {"t": t, "event": "plan", "updates": updates}


def fate(t: float, worker: int, number: int, what: str) -> dict[str, Any]:
    return {"t": t, "event": "fate", "worker": worker, "number": number, "fate": what}


def carried(
    source: object, target: object, bits: float, start: float, end: float
) -> dict[str, Any]:
    ends = {"from": source, "to": target, "start": start, "end": end}
    return {"t": end, "event": "carried", "bits": bits, **ends}


EVENTS: list[dict[str, Any]] = [
    HEAD,
    asked(10, 0, 1, 0),
    asked(10, 1, 1, 0),
    asked(11, 0, 2, 0),
    planned(11, (1, 0, 1), (2, 1, 1)),
    {"t": 11, "event": "hop", "gathered": True, "to": 1, "goal": "server"},
    {"t": 11, "event": "hop", "gathered": True, "to": "replica", "goal": "server"},
    fate(11, 0, 2, "too_old"),
    {"t": 11.5, "event": "void", "places": [1]},
    planned(12, (3, 0, 1)),  # again
    {"t": 13, "event": "commit", "places": [2, 3], "version": 2},
    fate(13, 0, 1, "committed"),
    fate(13, 1, 1, "committed"),
    carried(1, "server", 8e6, 11, 12),
    carried(1, "server", 8e6, 12, 12.5),
    {"t": 14, "event": "took_over", "version": 1},
    fate(14, 0, 1, "lost"),
    {"t": 15, "event": "gone", "node": "server"},
    {"event": "missed", "lines": 3},
]


def record(folder: Path, events: list[dict[str, Any]], rest: str = "") -> Path:
    path = folder / NAME
    path.write_text("".join(json.dumps(event) + "\n" for event in events) + rest)
    return path


def test_a_history_adds_up(tmp_path: Path) -> None:
    history = read(record(tmp_path, EVENTS, rest='{"t": 16, "event": "req'))
    assert (history.updates, history.plans, history.groups) == (3, 2, 1)
    assert history.fates == {"committed": 2, "too_old": 1, "lost": 1}
    assert history.delays == {1: 1, 2: 1}
    assert history.planned_after_s == [1, 1]
    assert history.applied_after_s == [3, 3]
    assert (history.span_s, history.took_over, history.missed) == (5, [1], 3)
    link = history.links["worker 1", "server"]
    assert (link.bits, link.busy_s) == (16e6, 1.5)


def test_the_control_path_is_told_apart_from_the_wait_for_a_batch(tmp_path: Path) -> None:
    def heard(t: float, worker: int, number: int, at: float) -> dict[str, Any]:
        return {"t": t, "event": "heard", "worker": worker, "number": number, "at": at}

    events = [
        HEAD,
        {**asked(10.25, 0, 1, 0), "pushed": 10.0},
        asked(10.5, 1, 1, 0),  # of an older version
        planned(12, (1, 0, 1), (2, 1, 1)),
        {"t": 12.125, "event": "sent_out"},
        heard(13.5, 1, 1, 12.5),
        heard(14, 0, 1, 13.125),
        planned(15, (3, 0, 1)),  # again
        {"t": 15.5, "event": "sent_out"},
        heard(17, 0, 1, 16.5),
    ]
    waits = read(record(tmp_path, events)).waits
    assert waits == {
        "push to request": [0.25],
        "request to plan": [1.75, 1.5],
        "plan to its orders": [0.125, 0.125],
        "orders to the worker": [0.375, 1.0],
        "push to the worker, but for request to plan": [0.25 + 0.125 + 1.0],
    }


def test_rounds_make_a_version_and_all_reduces_none(tmp_path: Path) -> None:
    together = planned(11, (1, 0, 1), (2, 1, 1))
    sums = planned(12, (3, 0, 2), (4, 1, 2))
    for update in together["updates"]:
        update["round"] = 1
    for update in sums["updates"]:
        update |= {"round": 3, "reduce": True}
    events = [
        HEAD | {"replica": True},
        *(asked(10, worker, number, 0) for number in (1, 2) for worker in (0, 1)),
        *(together, {"t": 12, "event": "commit", "places": [1, 2], "version": 1}),
        *(sums, {"t": 13, "event": "commit", "places": [3, 4], "version": 1}),
    ]
    history = read(record(tmp_path, events))
    assert history.delays == {1: 2}
    assert history.applied_after_s == [2, 2, 3, 3]
    assert history.behind_most == 2  # sums are not for the replica


def test_who_passes_the_model_on(tmp_path: Path) -> None:
    tree = {"t": 12, "event": "tree", "bytes": 8, "edges": [["server", 0], [0, 1], [0, 2]]}
    history = read(record(tmp_path, [HEAD, tree, tree]))
    assert history.trees == {"server": 2, "worker 0": 4}
    assert "6 models went down trees; workers passed 4 on\n" in in_words(history)


def test_how_far_the_replica_was_behind(tmp_path: Path) -> None:
    def at(event: str, *places: int) -> dict[str, Any]:
        return {"t": 12, "event": event, "places": places, "version": len(places)}

    requests = [asked(10, 0, number, 0) for number in (1, 2, 3, 4)]
    plan = planned(11, (1, 0, 1), (2, 0, 2), (3, 0, 3), (4, 0, 4))
    story = [at("replica_applied", 1), at("commit", 1, 2, 3), at("replica_applied", 2, 3)]
    head = {**HEAD, "replica": 1}
    history = read(record(tmp_path, [head, *requests, plan, *story, at("commit", 4)]))
    assert history.behind_most == 2
    assert "the replica lacked 2 updates at most" in in_words(history)
    caught_up = {"t": 12, "event": "replica_caught_up", "place": 3}
    story = [at("commit", 1, 2, 3), caught_up, at("commit", 4)]
    assert read(record(tmp_path, [head, *requests, plan, *story])).behind_most == 3


def test_one_replica_after_another(tmp_path: Path) -> None:
    def at(t: float, event: str, **members: Any) -> dict[str, Any]:
        return {"t": t, "event": event, **members}

    requests = [{**asked(10, 0, number, 0), "norm": 1.0} for number in range(1, 7)]
    story = [
        at(12, "commit", places=[1, 2], version=2),
        at(13, "took_over", version=1, node="replica"),
        at(14, "commit", places=[3], version=2),  # nobody follows
        at(15, "commit", places=[4], version=3),
        at(16, "replica_caught_up", place=3),
        at(17, "gone", node="replica 2"),  # in reserve
        at(18, "commit", places=[5], version=4),
        at(19, "took_over", version=4),
        carried("replica 3", "replica 1", 8e6, 20, 21),
        at(22, "gone", node="replica 3"),
        at(23, "commit", places=[6], version=5),
    ]
    plan = planned(11, *((number, 0, number) for number in range(1, 7)))
    record(tmp_path, [{**HEAD, "replica": 4}, *requests, plan, *story])
    history = read(tmp_path)
    assert history.took_over == [1, 4]
    assert history.lacks == [Lack(2, 2, 2.0), Lack(6, 1, 1.0), Lack(8, 2, 2.0)]
    assert history.behind_most == 2
    assert "\na replica became the server at versions 1 and 4\n" in in_words(history)
    page = tmp_path / "page.html"
    write_report(history, page)
    assert "2 workers, 1 server, 4 replicas" in page.read_text()
    assert "a replica became the server at versions 1 and 4" in page.read_text()
    target = tmp_path / "out.json"
    assert main(["fabric", "history", str(tmp_path), "--chrome", str(target)]) == 0
    events = json.loads(target.read_text())["traceEvents"]
    pids = {e["args"]["name"]: e["pid"] for e in events if e["name"] == "process_name"}
    assert sorted(pids, key=pids.__getitem__) == ["server", "replica", "replica 3"]


def test_who_sent_to_whom_when(tmp_path: Path) -> None:
    hop = {"from": 1, "to": "server", "bytes": 1e6, "start": 11, "end": 12.2}
    overlaps = carried(1, "server", 8e6, 11.5, 12.2)
    second = carried("server 1", 0, 8e3, 11, 12)
    record(tmp_path, [*EVENTS[:5], {"t": 11, "event": "hop", **hop}, *EVENTS[7:], overlaps, second])
    target = tmp_path / "out.json"
    assert main(["fabric", "history", str(tmp_path), "--chrome", str(target)]) == 0
    document = json.loads(target.read_text())
    assert violations(document) == []
    names: dict[str, list[str]] = {"process_name": [], "thread_name": []}
    for event in document["traceEvents"]:
        if event["ph"] == "M":
            names[event["name"]].append(event["args"]["name"])
    assert names["process_name"] == ["worker 1", "worker 0", "server", "replica", "server 1"]
    assert names["thread_name"].count("to server") == 2
    assert names["thread_name"].count("to server, as planned") == 1
    slices = [event["name"] for event in document["traceEvents"] if event["ph"] == "X"]
    assert slices.count("1 MB") == 4
    assert {"update 2: too_old", "version 2", "update 1: lost"} <= set(slices)
    record(tmp_path, [HEAD, {"t": 11, "event": "hop"}])
    assert main(["fabric", "history", str(tmp_path), "--chrome", str(target)]) == 2


def test_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path, EVENTS)
    assert main(["fabric", "history", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "3 updates of 2 workers in 5.0 s: 2 committed, 1 dropped (1 too_old), "
        "1 lost with the server",
        "2 plans, 1 groups",
        "the replica became the server at version 1",
        "3 events found no room and are not counted",
        "from request to plan: median 1000.00 ms, p99 1000.00 ms",
        "from request to commit: median 3000.00 ms, p99 3000.00 ms",
        "",
        "delay  updates (bound 4)",
        "    1        1",
        "    2        1",
        "",
        "link                        MB   Mbit/s while it carried",
        "worker 1 -> server         2.0     10.7",
    ]
    assert in_words(read(record(tmp_path, [HEAD]))).count("\n") == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "it is empty"),
        ('{"event": "job", "version": 9}\n', "it does not begin as version 1"),
        (json.dumps(HEAD) + "\n[]\n", "2: this is not an event"),
        (json.dumps(HEAD) + "\n" + "[" * 100000 + "\n", "2: this is not an event"),
        (json.dumps(HEAD) + '\n{"t": 1, "event": "commit"}\n', "line 2: the event 'commit' lacks"),
        ('{"event": "job", "version": 1}\n', "line 1: the event 'job' lacks"),
        ('{"t": 0, "event": "job", "version": 1}\n', "line 1: the event 'job' lacks"),
        (json.dumps({**HEAD, "delay_bound": "4"}) + "\n", "line 1: the event 'job' lacks"),
    ],
)
def test_what_is_no_such_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    path = tmp_path / NAME
    path.write_text(text)
    with pytest.raises(TraceError, match=says):
        read(path)
    assert main(["fabric", "history", str(path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_record_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read: No such file"):
        read(tmp_path)


WITH_REPLICA: list[dict[str, Any]] = [
    {**HEAD, "replica": 1, "divergence_bound": 2.5},
    {**asked(10, 0, 1, 0), "norm": 2.0, "pushed": 9.5},
    {**asked(10, 1, 1, 0), "norm": 3.0},
    planned(11, (1, 0, 1), (2, 1, 1)),
    {"t": 12, "event": "commit", "places": [1, 2], "version": 2},
    {"t": 13, "event": "replica_applied", "places": [1]},
    carried(0, "server", 8e6, 11, 12),
    carried(0, "replica", 8e6, 12, 14),
    fate(14, 0, 1, "committed"),
    fate(14, 1, 1, "<b>late</b>"),
]


@pytest.mark.parametrize("events", [EVENTS, WITH_REPLICA])
def test_lines_that_found_no_room_take_nothing_else_with_them(
    tmp_path: Path, events: list[dict[str, Any]]
) -> None:
    """A disk that is too slow loses some; a note says how many."""
    for lost in range(1, len(events)):
        kept = [*events[:lost], *events[lost + 1 :], {"event": "missed", "lines": 1}]
        history = read(record(tmp_path, kept))
        assert history.missed >= 1
        assert in_words(history)


def test_what_is_known_of_an_update_whose_request_found_no_room(tmp_path: Path) -> None:
    (request,) = (event for event in WITH_REPLICA if event.get("norm") == 2)
    history = read(record(tmp_path, [event for event in WITH_REPLICA if event is not request]))
    assert (history.updates, history.applied) == (1, [(2, 2)])
    assert history.planned_after_s == [1]
    assert history.lacks == [Lack(2, 2, 3.0), Lack(3, 1, 3.0)]


def test_what_the_page_is_made_of(tmp_path: Path) -> None:
    history = read(record(tmp_path, WITH_REPLICA))
    assert history.lacks == [Lack(2, 2, 5.0), Lack(3, 1, 3.0)]
    assert history.runs[1] == Carriage("worker 0", "replica", 2, 4, 8e6)
    assert history.applied == [(2, 1), (2, 2)]
    assert history.heard_after_s == [0.5]
    assert "from push to request: median 500.00 ms" in in_words(history)


@pytest.mark.parametrize("events", [EVENTS, WITH_REPLICA, [HEAD]])
def test_the_page_has_every_section_and_fetches_nothing(
    tmp_path: Path, events: list[dict[str, Any]]
) -> None:
    history = read(record(tmp_path, events))
    page = tmp_path / "page.html"
    write_report(history, page)
    text = page.read_text()
    sections = ["transfers", "use", "delays", "fates"] + ["replica"] * bool(history.lacks)
    for name in sections:
        assert f'<section id="{name}">' in text
    assert text.count("<figure>") == 1 + 2 * bool(history.runs) + bool(history.lacks)
    assert not re.search(r'(src|href)="(?!#)', text)
    assert "<script" not in text
    assert "<b>late" not in text
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))


def test_a_page_by_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path, EVENTS)
    page = tmp_path / "page.html"
    assert main(["fabric", "history", str(tmp_path), "--html", str(page)]) == 0
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert main(["fabric", "history", str(tmp_path), "--html", str(tmp_path / "no" / "x")]) == 2
    assert "no/x" in capsys.readouterr().err
