"""The soak's judgement: what counts as right, and each way of being wrong."""

from __future__ import annotations

import pytest

from scripts.soak.faults import EITHER, ENDS, FAULTS, SURVIVES
from scripts.soak.page import Round, page
from scripts.soak.verdict import Process, Promise, Verdict, judge

LOST = "pslite_ext.errors.PeerLostError: lost worker 1 (10.77.0.3:1): its connection broke"
SERVER_LOST = "[mercury server 0] error: lost worker 1 (10.77.0.3:1): its connection broke"


def process(code: int | None = 1, output: str = LOST, after_s: float = 2.0) -> Process:
    return Process("worker 0", code, output, after_s)


@pytest.mark.parametrize(
    ("promise", "ended", "outcome"),
    [
        (ENDS, process(), "ended"),
        (ENDS, process(output=SERVER_LOST), "ended"),
        (EITHER, process(0, "trained"), "went on"),
        (SURVIVES, process(0, "trained"), "went on"),
        (SURVIVES, process(), "ended without need"),
        (ENDS, process(0, "trained"), "no end"),
        (ENDS, process(None, ""), "hang"),
        (SURVIVES, process(None, ""), "hang"),
        (EITHER, process(-11), "signal"),
        (EITHER, process(99), "wrong sum"),
        (EITHER, process(1, "WRONG SUM: key 0 in step 3"), "wrong sum"),
        (EITHER, process(1, "IndexError: worker 1"), "untyped"),
        (EITHER, process(1, LOST.replace("worker 1", "server 0")), "wrong culprit"),
        (ENDS, process(after_s=15.5), "late"),
    ],
)
def test_each_outcome(promise: Promise, ended: Process, outcome: str) -> None:
    verdict = judge(
        promise, [process(0, "") if outcome == "went on" else ended, ended], ["worker 1"]
    )
    assert verdict.outcome == outcome
    assert verdict.right == (outcome in ("ended", "went on"))


def test_one_that_ends_well_while_others_fail_is_not_right() -> None:
    verdict = judge(EITHER, [process(), process(0, "trained")], ["worker 1"])
    assert verdict.outcome == "ended well alone"


def test_the_page_counts_and_tells_how_to_repeat_what_was_wrong() -> None:
    fine, bad = Verdict("ended"), Verdict("hang", "worker 0 still runs")
    rounds = [Round(5, "zmq", "kill", fine, 3.25), Round(6, "zmq", "kill", bad, 20.0)]
    text = page(rounds, "make soak", "today", 0.5)
    assert "| kill | a process is killed | ends within 15 s | zmq | 2 | 0 | 1 | 3.2 | 1 |" in text
    assert "| 6 | zmq | kill | hang | worker 0 still runs |" in text
    assert "2 jobs in 0.5 h, 1 of them wrong" in text


def test_faults_have_names_of_their_own() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
