"""`mercury lab`: up, run, change, status, down."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from scripts.lab.bed import namespaces
from tests.cluster import mercury


def lab(*arguments: str) -> subprocess.CompletedProcess[str]:
    return mercury("lab", *arguments, timeout=30)


@pytest.fixture
def run(privileged: None) -> Iterator[str]:
    done = lab("up", "a", "b", "--rate", "200")
    assert done.returncode == 0, done.stderr
    name = done.stdout.strip()
    yield name
    if name in namespaces.runs():
        namespaces.remove_run(name)


def test_a_bed_stays_until_it_is_taken_down(run: str) -> None:
    namespaces.remove_leftovers()  # as other starts do
    status = lab("status").stdout
    assert f"{run}  kept" in status
    assert "10.77.0.2" in status
    where = lab("--bed", run, "run", "b", "--", "ip", "-o", "address", "show", "eth0")
    assert "10.77.0.2/24" in where.stdout, where.stderr
    ping = "import socket; socket.create_server(('10.77.0.1', 0))"
    assert lab("--bed", run, "run", "a", "--", sys.executable, "-c", ping).returncode == 0
    for change in (["rate", "a", "100", "none"], ["cut", "b"], ["mend", "b"]):
        done = lab("--bed", run, *change)
        assert done.returncode == 0, done.stderr
    assert lab("--bed", run, "down").returncode == 0
    assert namespaces.namespaces_of(run) == []


def test_a_wrong_name_is_refused(run: str) -> None:
    done = lab("--bed", run, "cut", "z")
    assert done.returncode == 1
    assert "there is no host 'z'; there are a, b" in done.stderr
    done = lab("--bed", "nope", "down")
    assert "there is no bed 'nope'" in done.stderr


def test_the_last_words_of_a_program_are_its_exit_code(run: str) -> None:
    assert lab("--bed", run, "run", "a", "--", "sh", "-c", "exit 7").returncode == 7
