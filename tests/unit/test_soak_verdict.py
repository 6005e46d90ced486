"""The soak's judgement: what counts as right, and each way of being wrong."""

from __future__ import annotations

import pytest

from scripts.soak.faults import CORRUPT, EITHER, ENDS, FAULTS, SURVIVES
from scripts.soak.verdict import Process, Promise, judge, judge_elastic

LOST = "pslite_ext.errors.PeerLostError: lost worker 1 (10.77.0.3:1): its connection broke"
SERVER_LOST = "[mercury server 0] error: lost worker 1 (10.77.0.3:1): its connection broke"


def process(code: int | None = 1, output: str = LOST, after_s: float = 2.0) -> Process:
    return Process("worker_0", code, output, after_s)


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


LINK = "[mercury worker 1] error: worker 1 and server 0 cannot reach each other: it was silent"
BAD_SUM = "worker 1: a packet whose checksum is wrong: bytes were changed on the way"


@pytest.mark.parametrize(
    "output",
    [
        # Each names the accused only where it says who speaks, or in what is no error.
        "[mercury worker 1] error: something broke",
        "mercury: worker 1: 3.0 MB sent in 7 packets\nmercury: the job has failed: it broke",
        "[mercury worker 0] warning: worker 1 is slow\nPeerLostError: somebody is lost",
        "PeerLostError: lost worker 10 (10.77.0.3:1)",
    ],
)
def test_who_speaks_is_not_thereby_named(output: str) -> None:
    accused = Process("worker_1", 1, output, 2.0)
    assert judge(ENDS, [accused], ["worker 1"]).outcome == "wrong culprit"


def test_of_a_link_both_ends_are_named() -> None:
    both = ["worker 1", "server 0"]
    assert judge(ENDS, [process(output=LINK)], both).outcome == "ended"
    half = Process("worker_1", 1, LINK.replace("worker 1 and server 0", "server 0 and it"), 2.0)
    assert judge(ENDS, [half], both).outcome == "wrong culprit"
    # Not each in an error of its own, either.
    apart = f"{LOST}\n{LOST.replace('worker 1', 'server 0')}"
    assert judge(ENDS, [process(output=apart)], both).outcome == "wrong culprit"


def test_of_a_link_with_the_scheduler_the_node_is_named_or_names_the_scheduler() -> None:
    ends = ["worker 1", "the scheduler"]
    own = Process("worker_1", 1, "PeerLostError: lost the scheduler: it fell silent", 2.0)
    assert judge(ENDS, [process(), own], ends).outcome == "ended"
    assert judge(ENDS, [process(output=own.output)], ends).outcome == "wrong culprit"
    told = Process("worker_1", 1, LOST, 2.0)  # by the scheduler, which it still hears
    assert judge(ENDS, [told], ends).outcome == "ended"
    else_where = Process("worker_1", 1, LOST.replace("worker 1", "server 0"), 2.0)
    assert judge(ENDS, [else_where], ends).outcome == "wrong culprit"


def test_a_flipped_bit_is_corrupt_and_nothing_else() -> None:
    worker = f"pslite_ext.errors.CorruptError: {BAD_SUM}"
    server = f"[mercury server 0] error: {BAD_SUM}"
    for output in (worker, server):
        assert judge(CORRUPT, [process(output=output)], ["worker 1"]).outcome == "ended"
    for output in (LOST, SERVER_LOST, worker.replace("Corrupt", "WaitTimeout"), LINK):
        assert judge(CORRUPT, [process(output=output)], ["worker 1"]).outcome == "wrong error"
    assert judge(CORRUPT, [process(0, "trained")], ["worker 1"]).outcome == "went on"


def test_silence_may_take_as_long_as_the_documents_say_and_no_longer() -> None:
    promised = {fault.name: fault.promise.within_s for fault in FAULTS}
    assert (promised["stop"], promised["silence"], promised["kill"]) == (15, 18, 8)
    assert all(within <= 18 for within in promised.values())


def test_faults_have_names_of_their_own() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def named(name: str, code: int | None = 0, output: str = "trained abc") -> Process:
    return Process(name, code, output, 1.0)


def test_of_a_job_that_goes_on_all_others_end_alike() -> None:
    server, one, two = named("server_0", 0, ""), named("worker_0"), named("worker_1")
    assert judge_elastic([server, one, two], ["worker 2"]).outcome == "went on"
    failed = named("worker_1", 1, "PeerLostError: lost server 0")
    assert judge_elastic([server, one, failed], ["worker 1"]).outcome == "went on"
    assert judge_elastic([server, one, failed], ["server 1"]).outcome == "ended without need"
    assert judge_elastic([server, failed], ["worker 1"]).outcome == "ended without need"


def test_of_a_job_that_goes_on_all_sums_are_the_same() -> None:
    other = named("worker_1", 0, "trained abd")
    assert judge_elastic([named("worker_0"), other], ["worker 2"]).outcome == "wrong sum"
    silent = named("worker_1", 0, "")
    assert judge_elastic([named("worker_0"), silent], ["worker 2"]).outcome == "wrong sum"
    wrong = named("worker_1", 99, "WRONG SUM: key 0 in step 3")
    assert judge_elastic([named("worker_0"), wrong], ["worker 1"]).outcome == "wrong sum"
    assert judge_elastic([named("worker_0", None)], []).outcome == "hang"
