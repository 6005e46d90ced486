"""LeNet-5 under MLfabric on hosts of its own: it goes on without its server, and learns."""

from __future__ import annotations

import pytest

from scripts.lab.killed_server import DELAY_BOUND, killed, main

pytest.importorskip("mxnet")


@pytest.mark.usefixtures("privileged")
def test_the_replica_s_model_is_as_good_in_time_and_not_too_late() -> None:
    survival = killed(seed=1, epochs=14)
    assert survival.most_delay <= DELAY_BOUND
    assert survival.paused_s > 0
    assert survival.accuracy > 0.975  # 0.99 is usual, with dist_sync, too


def test_bad_input_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--seeds", "0"])
    assert "at least one seed and ten epochs" in capsys.readouterr().err
