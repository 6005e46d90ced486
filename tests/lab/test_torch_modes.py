"""PyTorch under MLfabric, as the lab trains it."""

from __future__ import annotations

import pytest

from scripts.lab.torch_modes import Way, main, train
from tests.integration.torch_workers import torch_python

pytestmark = pytest.mark.xdist_group("torch")  # imported once


def test_it_learns_and_says_how_late_updates_were() -> None:
    torch_python()
    trained = train("lenet5", Way("async"), rounds=60, seed=1)
    assert 0 < trained.most_delay <= 30
    assert trained.right > 0.8  # 0.93 is usual


def test_bad_input_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--seeds", "0"])
    assert "at least one seed and fifty rounds" in capsys.readouterr().err
