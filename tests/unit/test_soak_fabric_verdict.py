"""The soak's judgement of MLfabric's jobs: who may be lost, and what the model must be then."""

from __future__ import annotations

import pytest

from scripts.soak.fabric_verdict import judge_fabric, must_end
from scripts.soak.faults import CORRUPT, ENDS, ENDS_BY_KILL, SURVIVES
from scripts.soak.verdict import Process, Promise

CUT_OFF = "pslite_ext.errors.PeerLostError: another node cannot reach worker 1"
GONE = "mercury: worker 1 is gone, and others wait for it: synchronous updates need all workers"


def ended(name: str, said: str = "", code: int | None = 0, after_s: float = 2.0) -> Process:
    return Process(name, code, said, after_s)


SERVER = ended("server_0", "model [[3, 6], [2, 4]]")
FIRST = ended("worker_0", "committed [3, 6]")
SECOND = ended("worker_1", "committed [2, 4]")
WELL = [ended("scheduler_0"), SERVER, ended("replica_0"), FIRST, SECOND]


def after(*changed: Process) -> list[Process]:
    """As when all goes well, but for these."""
    by_name = {process.name: process for process in (*WELL, *changed)}
    return list(by_name.values())


@pytest.mark.parametrize(
    ("promise", "mode", "processes", "culprits", "outcome"),
    [
        (SURVIVES, "sync", WELL, [], "went on"),
        (ENDS, "async", after(ended("worker_1", CUT_OFF, 1)), ["server 0", "worker 1"], "went on"),
        (SURVIVES, "async", after(ended("worker_1", CUT_OFF, 1)), [], "ended without need"),
        (ENDS, "async", after(ended("worker_1", "IndexError", 1)), ["worker 1"], "untyped"),
        (ENDS, "async", after(ended("worker_0", CUT_OFF, 1)), ["worker 1"], "ended without need"),
        (CORRUPT, "async", after(ended("worker_1", "", None)), ["worker 1"], "hang"),
        (ENDS, "async", after(ended("worker_1", CUT_OFF, -11)), ["worker 1"], "signal"),
        # The model has one that no worker knows of, or lacks one; or there are two models, or none.
        (SURVIVES, "async", after(ended("worker_1", "committed [1, 1]")), [], "wrong sum"),
        (SURVIVES, "async", after(ended("worker_1", "committed [2, 5]")), [], "wrong sum"),
        (SURVIVES, "async", after(ended("replica_0", SERVER.output)), [], "wrong sum"),
        (SURVIVES, "async", after(ended("server_0")), [], "wrong sum"),
        (ENDS_BY_KILL, "async", WELL[1:], ["the scheduler"], "ended well alone"),
    ],
)
def test_each_outcome(
    promise: Promise, mode: str, processes: list[Process], culprits: list[str], outcome: str
) -> None:
    verdict = judge_fabric(promise, mode, processes, culprits)
    assert verdict.outcome == outcome, verdict
    assert verdict.right == (outcome in ("went on", "ended"))


def test_of_two_ends_of_a_link_one_may_go() -> None:
    lost = [ended(name, CUT_OFF, 1) for name in ("server_0", "replica_0")]
    verdict = judge_fabric(ENDS, "async", after(*lost), ["server 0", "replica 0"])
    assert verdict.outcome == "ended without need"


def test_in_step_all_end_without_a_worker_and_say_so() -> None:
    assert must_end("sync", ["server 0", "worker 1"])
    assert must_end("async", ["the scheduler"])
    assert not must_end("sync", ["the scheduler", "server 0"])
    assert not must_end("stale:2", ["worker 1"])
    names = ("scheduler_0", "server_0", "replica_0", "worker_0")
    all_of_them = [ended(name, f"PeerLostError: {GONE}\n{GONE}", 69) for name in names]
    assert judge_fabric(ENDS, "sync", all_of_them, ["worker 1"]).outcome == "ended"
    assert judge_fabric(ENDS, "sync", all_of_them, ["worker 2"]).outcome == "wrong culprit"
    late = [*all_of_them[1:], ended(names[0], GONE, 69, after_s=30)]
    assert judge_fabric(ENDS, "sync", late, ["worker 1"]).outcome == "late"
    well = [*all_of_them[1:], ended(names[0])]
    assert judge_fabric(ENDS, "sync", well, ["worker 1"]).outcome == "ended well alone"
    server = [ended(name, "mercury: the server is lost", 69) for name in names[:3]]
    assert judge_fabric(ENDS, "sync", server, ["server 0", "worker 1"]).outcome == "ended"
