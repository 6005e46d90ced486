"""The test bed keeps its promises: speeds as set, and nothing left behind, however it ends."""

from __future__ import annotations

import queue
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from scripts.lab.bed import namespaces
from scripts.lab.bed.bed import SIGNALLING, Bed, LoopbackBed, Queue, best_bed, read_queues
from scripts.lab.bed.namespaces import LabError

STREAM = Path(__file__).with_name("tcp_stream.py")
PORT = "5000"
SILENT_S = 30.0
ATTEMPTS = 100  # this machine may be busy with other things; one that is not needs one
MakeBed = Callable[..., Bed]
Reports = queue.SimpleQueue[str]


def start_stream(bed: Bed, sender: str, receiver: str) -> Reports:
    # Ahead of what else this machine computes: the bed is measured, not its scheduler.
    stream = ["nice", "-n", "-15", sys.executable, str(STREAM)]
    reports: Reports = queue.SimpleQueue()
    bed.start(receiver, [*stream, "sink", PORT], told=reports.put)
    assert reports.get(timeout=SILENT_S) == "listening"
    bed.start(sender, [*stream, "source", bed.address(receiver), PORT])
    return reports


def goodput(reports: Reports, seconds: float) -> float:
    """Bits per second of data, as the stream's receiver reports them from now on."""
    while not reports.empty():
        reports.get()
    first, began = map(float, reports.get(timeout=SILENT_S).split())
    while True:
        now, total = map(float, reports.get(timeout=SILENT_S).split())
        if now >= first + seconds:
            return (total - began) * 8 / (now - first)


def test_a_stream_gets_the_set_rate_both_ways_at_once(make_bed: MakeBed) -> None:
    rate = 500e6  # pieces are larger than at lower rates, so confirmations take less
    bed = make_bed(["a", "b"], rate)
    streams = [start_stream(bed, "a", "b"), start_stream(bed, "b", "a")]
    for _ in range(ATTEMPTS):
        measured = [goodput(stream, 1) for stream in streams]
        if all(0.95 * rate <= m <= 1.05 * rate for m in measured):
            return
    pytest.fail(f"{measured} of {rate}")


def test_a_changed_rate_holds_within_a_second(make_bed: MakeBed) -> None:
    bed = make_bed(["a", "b"], 40e6)  # so little that a busy machine keeps up
    stream = start_stream(bed, "a", "b")
    goodput(stream, 0.3)
    missing, measured = {10e6, 40e6}, {}
    for _ in range(ATTEMPTS):
        for rate in (10e6, 40e6):
            bed.set_rate("b", up=None, down=rate)
            goodput(stream, 0.6)
            measured[rate] = goodput(stream, 0.4)
            if 0.95 * rate <= measured[rate] <= 1.05 * rate:
                missing.discard(rate)
        if not missing:
            return
    pytest.fail(str(measured))


TWO_DATAGRAMS = """
import socket, sys, time
for _ in range(200):
    for tos in (0, int(sys.argv[2])):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
            sock.sendto(str(tos).encode(), (sys.argv[1], 5001))
    time.sleep(0.05)
"""
FIRST_COME = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    sock.bind(("0.0.0.0", 5001))
    print("listening", flush=True)
    while True:
        print(sock.recv(100).decode(), flush=True)
"""


@pytest.mark.parametrize("classes", [False, True])
def test_what_is_marked_overtakes_only_where_classes_are_known(
    make_bed: MakeBed, classes: bool
) -> None:
    bed = make_bed(["a", "b"], 10e6, classes=classes)
    bed.set_rate("a", up=5e6, down=5e6)  # a change keeps the classes
    stream = start_stream(bed, "a", "b")
    goodput(stream, 1)  # the queue is full
    come: queue.SimpleQueue[str] = queue.SimpleQueue()
    bed.start("b", [sys.executable, "-c", FIRST_COME], told=come.put)
    assert come.get(timeout=SILENT_S) == "listening"
    bed.start("a", [sys.executable, "-c", TWO_DATAGRAMS, bed.address("b"), str(SIGNALLING)])
    assert come.get(timeout=SILENT_S) == str(SIGNALLING if classes else 0)
    assert goodput(stream, 1) < 1.1 * 5e6  # the others are limited as before


def test_counters_tell_hosts_and_directions_apart(make_bed: MakeBed) -> None:
    bed = make_bed(["a", "b", "c"], 100e6)
    stream = start_stream(bed, "a", "b")
    goodput(stream, 0.5)
    a, b, c = (bed.counters(host) for host in "abc")
    assert a.sent > 1e6 > a.received
    assert b.received > 1e6 > b.sent
    assert c.sent < 1e4


def test_a_host_is_cut_off_and_brought_back(make_bed: MakeBed) -> None:
    bed = make_bed(["a", "b"], 100e6)
    stream = start_stream(bed, "a", "b")
    goodput(stream, 0.2)
    bed.cut("b")
    before = bed.counters("b")
    time.sleep(0.3)
    assert bed.counters("b").received == before.received
    bed.mend("b")
    assert goodput(stream, 0.2) > 0


def test_start_and_stop_run_few_programs(
    make_bed: MakeBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes milliseconds, and there is nothing else that takes time."""
    run, argvs = namespaces._run, []

    def counted(argv: Sequence[str], stdin: str | None = None) -> str:
        argvs.append(list(argv))
        return run(argv, stdin)

    make_bed(["warm"])
    monkeypatch.setattr(namespaces, "_run", counted)
    bed = make_bed([f"host{i}" for i in range(9)], 1e9)
    assert len(argvs) <= 4 * 9
    argvs.clear()
    bed.close()
    assert len(argvs) <= 4 * 9


def test_nothing_is_left_after_an_error(make_bed: MakeBed) -> None:
    bed = make_bed(["a"])
    child = bed.start("a", ["sleep", "60"])
    run = str(bed._run)
    with pytest.raises(LabError, match="there is no host 'z'"):
        bed.address("z")
    with pytest.raises(LabError, match="a rate of 1"):
        bed.set_rate("a", up=1, down=None)
    bed.close()
    assert child.poll() is not None
    assert namespaces.namespaces_of(run) == []
    assert not (namespaces.RECORDS / run).exists()


def test_a_rate_that_cannot_be_set_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    changed: list[str] = []
    for name in ("tc", "tc_batch"):
        monkeypatch.setattr(f"scripts.lab.bed.bed.{name}", lambda *what: changed.append(what[1]))
    bed = Bed(["a", "b"])
    with pytest.raises(LabError, match=r"a rate of 1\.0 bit/s: 8 kbit/s to 100 Gbit/s can be set"):
        bed.set_rate("a", up=1e6, down=1.0)
    assert changed == []
    bed.set_rate("a", up=1e6, down=None)
    assert len(changed) == 2


KILLED = """
import sys, time
from scripts.lab.bed.bed import Bed
with Bed(["a", "b"]) as bed:
    child = bed.start("a", ["sleep", "60"])
    print(bed._run, child.pid, flush=True)
    time.sleep(60)
"""


def start_runner() -> tuple[subprocess.Popen[str], str, int]:
    runner = subprocess.Popen(
        [sys.executable, "-c", KILLED],
        stdout=subprocess.PIPE,
        text=True,
        # A shell's background jobs ignore SIGINT, and so would what they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert runner.stdout is not None
    run, pid = runner.stdout.readline().split()
    assert len(namespaces.namespaces_of(run)) == 3
    return runner, run, int(pid)


def test_a_second_start_removes_what_a_killed_runner_left(make_bed: MakeBed) -> None:
    make_bed(["warm"])  # and skips without privilege
    runner, run, pid = start_runner()
    bystander = make_bed(["a"])  # of a runner that lives: us
    runner.kill()
    runner.wait()
    make_bed(["a"])
    assert namespaces.namespaces_of(run) == []
    assert namespaces.start_time(pid) is None
    assert len(namespaces.namespaces_of(str(bystander._run))) == 2


def test_ctrl_c_removes_everything(make_bed: MakeBed) -> None:
    make_bed(["warm"])
    runner, run, pid = start_runner()
    runner.send_signal(signal.SIGINT)
    runner.wait()
    assert namespaces.namespaces_of(run) == []
    assert namespaces.start_time(pid) is None


def test_without_privilege_it_falls_back_to_loopback_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("scripts.lab.bed.bed.privilege_missing", lambda: "only root may")
    with best_bed(["a", "b"], 1e9) as bed:
        assert type(bed) is LoopbackBed
        assert bed.address("a") != bed.address("b")
        child = bed.start("b", ["sleep", "60"])
    assert child.poll() is not None
    assert "without shaping, because only root may" in capsys.readouterr().err


def test_beds_on_loopback_share_no_address() -> None:
    with LoopbackBed(["a", "b"]) as one, LoopbackBed(["a", "b"]) as other:
        assert len({bed.address(host) for bed in (one, other) for host in "ab"}) == 4


def test_queues_are_told_by_host(make_bed: MakeBed) -> None:
    bed = make_bed(["a", "b"], 40e6)
    assert bed.queues_in() == {"a": Queue(), "b": Queue()}
    assert bed.queue_out("b") == Queue()
    line = '{"kind":"tbf","dev":"p3","drops":5,"backlog":1514,"bytes":1}'
    assert read_queues(f'[{{"kind":"noqueue","dev":"lo"}},{line}]') == {"p3": Queue(5, 1514)}


def test_what_a_beds_switch_passes_on_meets_no_firewall(make_bed: MakeBed) -> None:
    bed = make_bed(["a", "b"])
    asked = ["sh", "-c", "cat /proc/sys/net/bridge/bridge-nf-call-* || echo none"]
    read = ["ip", "netns", "exec", bed._bridge, *asked]
    said = subprocess.run(read, capture_output=True, text=True, check=True).stdout.split()
    assert said in (["none"], ["0"] * 3)
