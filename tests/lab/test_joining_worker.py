"""A worker joins in the lab: all have the same state in the end."""

from __future__ import annotations

import pytest

from scripts.lab.joining_worker import join, main


@pytest.mark.usefixtures("privileged")
def test_a_worker_joins() -> None:
    pytest.importorskip("numpy")
    joined = join(rate=1e9, state_mb=10, gradients_mb=2, computes_s=0.05)
    assert joined.floor_s == pytest.approx(0.0836, rel=0.01)
    assert min(joined.step_s, joined.waits_s, joined.after_s) > 0


def test_bad_input_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--rate", "0"])
    assert "a rate and sizes above 0" in capsys.readouterr().err
