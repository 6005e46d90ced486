"""`mercury doctor --connect`: who answers at an address."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pslite_ext.command import doctor, reach
from tests.cluster import ROOT, free_port, job_that_trains_on

TOKEN = "known to both"


@contextmanager
def host(meets: Callable[[socket.socket], object]) -> Iterator[int]:
    """A port on which one connection is met so."""
    with socket.create_server(("127.0.0.1", 0)) as door:

        def accept() -> None:
            guest, _ = door.accept()
            with guest, contextlib.suppress(OSError):
                meets(guest)
                while guest.recv(1 << 16):
                    pass

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield door.getsockname()[1]


def says(text: bytes) -> Callable[[socket.socket], object]:
    return lambda guest: guest.sendall(text)


@pytest.mark.parametrize(
    ("greeting", "text"),
    [
        (b"\xff" + bytes(8) + b"\x7f", "it speaks plain ZeroMQ, as stock MXNet does"),
        (b"\xff" + bytes(20), "it does not speak our protocol"),
        (b"SSH-2.0-OpenSSH", "it does not speak our protocol"),
        (b"MRCC\x09\0".ljust(56, b"\0"), "it speaks version 9 of the control protocol"),
    ],
)
def test_strangers_are_told_apart(greeting: bytes, text: str) -> None:
    with host(says(greeting)) as port:
        answer = reach.ask("127.0.0.1", port, TOKEN)
    assert not answer.good
    assert text in answer.text


def test_who_hangs_up_or_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with host(lambda guest: guest.shutdown(socket.SHUT_WR)) as port:
        assert "it hung up at once" in reach.ask("127.0.0.1", port, TOKEN).text
    monkeypatch.setattr(reach, "PATIENCE_S", 0.2)
    with host(lambda guest: None) as port:
        assert "no answer within 0.2 s" in reach.ask("127.0.0.1", port, TOKEN).text
    assert "nothing listens there" in reach.ask("127.0.0.1", free_port(), TOKEN).text


def test_a_port_for_packets_is_known() -> None:
    with host(says(b"MRCY".ljust(40, b"\0"))) as port:
        assert reach.ask("127.0.0.1", port, TOKEN).good


def test_the_version_is_the_core_s() -> None:
    header = (ROOT / "pslite_ext" / "csrc" / "control" / "envelope.h").read_text()
    found = re.search(r"kControlVersion = (\d+);", header)
    assert found is not None
    assert int(found[1]) == reach.CONTROL_VERSION


def test_addresses_that_are_none() -> None:
    findings = list(doctor.check_reach({}, ["server", "server:0", ":9000", "a..b:9000"]))
    assert [f.state for f in findings] == ["FAIL"] * 5
    assert "to the scheduler's address" in findings[0].text
    assert findings[1].text == "server: is not HOST:PORT"
    assert findings[4].text == "a..b:9000: it is not a host name"


def test_a_job_s_nodes_answer(tmp_path: Path) -> None:
    with job_that_trains_on(tmp_path, env={"MERCURY_JOB_TOKEN": TOKEN}) as job:
        environ = {
            "DMLC_PS_ROOT_URI": "127.0.0.1",
            "DMLC_PS_ROOT_PORT": str(job.port),
            "MERCURY_JOB_TOKEN": TOKEN,
        }
        server = f"127.0.0.1:{job.servers[0].listening()[0]}"
        found = list(doctor.check_reach(environ, [server]))
        assert [f.state for f in found] == ["OK", "OK"], found
        assert re.search(r"a scheduler of job \w{8}, which knows the job token", found[0].text)
        assert "a server or worker of job" in found[1].text
        assert "refused" not in job.scheduler.output
        (stranger,) = doctor.check_reach({**environ, "MERCURY_JOB_TOKEN": "another"}, [])
        assert "which has a different job token" in stranger.text
        other = {**environ, "MERCURY_JOB_TOKEN": ""}
        assert (
            "which has a job token, but this shell has none"
            in next(doctor.check_reach(other, [])).text
        )
