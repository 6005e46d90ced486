"""Workers come to a job of MXNet's that runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.integration.joining import Joinable, check_followed_and_joined, ended

SCRIPT = Path(__file__).with_name("mxnet_newcomers.py")


@pytest.mark.drawn(1)
@pytest.mark.parametrize("where", ["0", "1"])
def test_one_is_followed_and_one_joins(tmp_path: Path, where: str) -> None:
    check_followed_and_joined(Joinable(tmp_path, (sys.executable, SCRIPT), WHERE=where))


def test_a_trainer_that_was_not_named_is_found_out(tmp_path: Path) -> None:
    job = Joinable(tmp_path, (sys.executable, SCRIPT), WHERE="0", WAITS_FOR="2", OTHER="1")
    with job.launched() as first:
        new = job.joined("new")
        assert new.end() != 0
        assert "name its Trainer in mxnet_plugins.checkpoint" in new.output, new.output
        job.go()
        assert first.end() == 0, first.output
    assert len({end for _, _, end in ended(first)}) == 1
