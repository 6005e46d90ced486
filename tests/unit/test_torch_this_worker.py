"""A worker's last word under PyTorch, if it has trained alone."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from typing import Any

import pytest

from pslite_ext import _core
from pslite_ext.job import joining
from pslite_ext.torch import this_worker


@pytest.mark.parametrize(
    ("calls", "is_told"),
    [
        ([], False),  # it infers
        ([this_worker.shares], False),
        ([this_worker.steps], True),
        ([this_worker.steps, this_worker.shares], False),
    ],
    ids=["infers", "gathers", "trains alone", "trains with others"],
)
def test_a_process_group_alone_averages_nothing(
    monkeypatch: pytest.MonkeyPatch, calls: list[Callable[[], None]], is_told: bool
) -> None:
    ends: list[Callable[[], None]] = []
    told: list[Any] = []
    monkeypatch.setenv("DMLC_ROLE", "worker")
    monkeypatch.setattr(joining, "joined", object())
    monkeypatch.setattr(this_worker, "_steps", False)
    monkeypatch.setattr(this_worker, "_shares", False)
    monkeypatch.setattr(atexit, "register", ends.append)
    monkeypatch.setattr(_core, "say_at_exit", told.append)
    this_worker.say_if_forgotten()
    for call in calls:
        call()
    ends[0]()
    assert len(told) == is_told
    assert all("there is a process group, but nothing was ever sent" in line for line in told)
