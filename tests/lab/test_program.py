from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from scripts.lab.program import run_program


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (None, 7)]
)
def test_a_program_that_is_ended_takes_down_what_it_has_begun(
    tmp_path: Path, number: signal.Signals | None, code: int
) -> None:
    def main(arguments: list[str]) -> int:
        try:
            if number is not None:
                os.kill(os.getpid(), number)
            return 7
        finally:
            (tmp_path / "down").touch()

    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as ended:
            run_program("test", main)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended.value.code == code
    assert (tmp_path / "down").exists()
