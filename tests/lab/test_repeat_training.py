"""The same training, again and again."""

from __future__ import annotations

import pytest

from scripts.lab.repeat_training import main


def test_bad_input_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--runs", "0"])
    assert "at least one run and one step" in capsys.readouterr().err
