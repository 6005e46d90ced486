"""MLfabric's races: when one is won, who takes part, and what is said of its network."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scripts.lab.bed.bed import Bed, LoopbackBed
from scripts.lab.bed.disturbance import Milestones
from scripts.lab.bed.drawn_network import DrawnNetwork, Ways
from scripts.lab.benches import fabric
from scripts.lab.benches.catalogue import LONG, cases_of, wanted
from scripts.lab.benches.race_track import Look, Track, reached_at
from scripts.lab.runner import Session, in_turn, measure
from scripts.lab.systems.peers import PeerMissing
from scripts.lab.systems.system import ASYNC, FABRIC, RACERS, TREE, System, system
from scripts.lab.workloads.race import BYTES


def test_a_target_is_reached_by_the_mean_of_a_second() -> None:
    looks = [Look(t / 4, accuracy) for t, accuracy in enumerate([0.2, 0.9, 0.4, 0.8, 0.6, 0.8])]
    assert reached_at(looks, 0.705) is None  # 0.9 was chance
    looks += [Look(1.5, 0.96)]
    assert reached_at(looks, 0.705) == 1.5


def test_who_looks_seldom_reaches_a_target_by_three_looks() -> None:
    looks = [Look(4.0 * t, accuracy) for t, accuracy in enumerate([0.2, 0.6, 0.99])]
    assert reached_at(looks, 0.7) is None  # one look is chance
    assert reached_at([*looks, Look(12.0, 0.6)], 0.7) == 12.0
    assert reached_at([Look(0.0, 0.99), Look(0.1, 0.99)], 0.7) is None


def _track(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Track:
    monkeypatch.setattr("scripts.lab.benches.race_track.folder", lambda: tmp_path)
    return Track(DrawnNetwork("N1", 0.01), "C1", 0.1, 0.8, at_most_s=10, compute_s=0.1)


def _evaluated(t: float, accuracy: float) -> dict[str, Any]:
    return {"event": "evaluated", "t": t, "quality": accuracy, "gradients": 30}


def test_all_are_told_to_stop_when_one_of_them_is_good_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    track = _track(tmp_path, monkeypatch)
    track.hear({"event": "begin", "t": 100.0})
    for t, accuracy in ((100.0, 0.1), (101.5, 0.7), (102.0, 0.85)):
        track.hear(_evaluated(t, accuracy))
    assert not track.stop.exists()
    track.hear(_evaluated(102.8, 0.9))  # 0.82 in the mean of the last three
    assert track.took_s == pytest.approx(2.8)
    assert track.stop.exists()
    assert track.curve()[:2] == [(0.0, 30.0, 0.1), (1.5, 60.0, 0.7)]


def test_who_never_gets_there_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    track = _track(tmp_path, monkeypatch)
    track.hear({"event": "begin", "t": 100.0})
    track.hear(_evaluated(109.9, 0.1))
    assert not track.stop.exists()
    track.hear(_evaluated(110.1, 0.1))
    assert track.stop.exists()
    assert track.took_s is None
    milestones = Milestones()
    milestones.end()
    track(LoopbackBed(["a"]), milestones)  # the next run begins
    assert not track.stop.exists()
    assert track.looks == []


def test_transfers_are_known_by_their_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    track = _track(tmp_path, monkeypatch)
    track.hosts = ["scheduler", "worker0", "worker2"]
    now = time.monotonic()
    fast, slow = Ways(10e9, 10e9), Ways(10e9, 1e9)
    track.network.changes = [(now - 10, [fast, fast, slow]), (now - 5, [fast, fast, fast])]
    # The record's own clock began 1000 s before now.
    job = {"t": 1000.0, "since_1970": time.time(), "event": "job"}
    hop = {"event": "hop", "from": 1, "to": 2, "goal": "server", "start": 993.0, "bytes": 8}
    same = {**hop, "to": 0}
    last = {**hop, "from": 3, "to": "server", "start": 999.0}
    track.trace.mkdir()
    text = "".join(json.dumps(event) + "\n" for event in (job, hop, same, last))
    (track.trace / "trace_fabric.jsonl").write_text(text)
    hops = track.hops()
    assert [(h.source, h.target) for h in hops] == [
        ("worker0", "worker2"),
        ("worker2", "scheduler"),
    ]
    assert [track.is_slow(h.source, h.target, h.start, 2.5e9) for h in hops] == [True, False]
    assert not track.is_slow("worker2", "worker0", now - 7, 2.5e9)  # its way out is fast


def _systems() -> list[System]:
    ours = System(FABRIC, "python")
    return [ours, System(ASYNC, "python"), System(TREE, "python", servers=False)]


def test_all_meet_in_all_nine_cells() -> None:
    cases = cases_of(["fabric"], _systems(), "usual")
    cells = {case.what for case in cases if case.what.endswith("to 0.8")}
    assert cells == {f"C{c} N{n}, to 0.8" for c in (1, 2, 3) for n in (1, 2, 3)}
    for cell in cells:
        names = {case.system.name for case in cases if case.what == cell}
        passed_on_whole = {name for name in names if name.endswith(", whole")}
        more = {"fabric A-45"} if cell.startswith("C1 N1") else set()
        usual = {TREE, ASYNC, "fabric A-30", "fabric A-60", "fabric S"}
        assert names - passed_on_whole == usual | more
        assert passed_on_whole in (set(), {"fabric A-30, whole", "fabric S, whole"})
    assert "30 workers on 15 hosts" in str(cases[0].setting)
    told = {case.system.name: case.config.tensors for case in cases}
    assert told[TREE]["rate"] > told[ASYNC]["rate"] == told["fabric A-60"]["rate"]
    assert told[TREE]["rate"] == told["fabric S"]["rate"]
    sampling = {case.what for case in cases if case.config.tensors["topics"]}
    assert sampling == {"LDA, C1 N1, to -4.6", "LDA, C1 N2, to -4.6"}
    lame = [case for case in cases if "no order" in case.system.name]
    assert [case.system.env["LAB_WITHOUT"] for case in lame] == ["order"]
    assert all("MERCURY_FABRIC_FEED" not in c.env for c in cases if "by itself" in c.what)


def test_each_repeat_has_draws_of_its_own_the_same_for_all() -> None:
    cases = [c for c in cases_of(["fabric"], _systems(), "usual") if c.what == "C1 N2, to 0.8"]
    order = in_turn(cases, 3, once=())
    assert len(order) == 3 * len(cases)
    seeds = [case.config.tensors["seed"] for case in order]
    assert seeds == [1] * len(cases) + [2] * len(cases) + [3] * len(cases)
    assert [str(case) for case in order] == 3 * [str(case) for case in cases]
    assert isinstance(order[-1].disturbance, Track)
    assert order[-1].disturbance.network.seed == 3


def test_it_runs_only_when_asked_for() -> None:
    assert "fabric" in LONG
    assert not any(wanted(name, ["peers", "scaling", "iteration"]) for name in RACERS)
    assert all(wanted(name, ["fabric"]) for name in RACERS)
    assert not {c.system.name for c in cases_of(["peers"], _systems(), "usual")} & set(RACERS)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", RACERS)
def test_a_race_of_four(
    name: str, make_bed: Callable[..., Bed], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_bed(["warm"])  # and skips without privilege
    try:
        racer = system(name, None)
    except PeerMissing as missing:
        pytest.skip(f"{name}: {missing}")
    monkeypatch.setattr(fabric, "COMPUTE_S", 0.01)
    monkeypatch.setattr(fabric, "SCALE", 0.1)
    if name == FABRIC:
        racer = racer.variant("checkpoint every 10", **{fabric.CHECKPOINTED: "10"})
    case = fabric.race(racer, "C1", "N1", workers=4)
    session = Session(tmp_path / "results.json", {})
    said = measure(case, session)
    assert not session.failures, session.failures[0].reason
    assert said.startswith("time ")
    figures = {row.metric: row.values[0] for row in session.rows}
    assert figures["gradients"] > 20
    assert figures["accuracy in the end"] > 0.6
    assert ("dropped" in figures) == (name == FABRIC)
    if name == FABRIC:
        assert figures["checkpoints"] >= 1
        assert figures["lost with the server, at most"] >= 10
        assert 0 < figures["to the disk, an update"] < 0.2 * BYTES / 1e6


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", [FABRIC, ASYNC])
def test_four_find_topics(
    name: str, make_bed: Callable[..., Bed], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_bed(["warm"])
    monkeypatch.setattr(fabric, "SCALE", 0.1)
    target = -5.3
    monkeypatch.setitem(fabric.AT_MOST_S, target, 20.0)
    case = fabric.race(
        system(name, None), "C1", "N1", target, workers=4, compute_s=0.01, topics=True
    )
    session = Session(tmp_path / "results.json", {})
    said = measure(case, session)
    assert not session.failures, session.failures[0].reason
    assert said.startswith("time "), session.rows
    figures = {row.metric: row.values[0] for row in session.rows}
    assert figures["log-likelihood in the end"] > target - 0.1
