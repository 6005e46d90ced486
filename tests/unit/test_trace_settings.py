"""Settings of traces: refused before a job starts, with a line that says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from pslite_ext.setting import SettingError
from pslite_ext.trace_settings import (
    PROBE_BYTES,
    check_trace_directory,
    check_trace_format,
    trace_steps,
)
from tests.cluster import small_disk


def test_steps() -> None:
    assert trace_steps("") == (0, 0)
    assert trace_steps("10:50") == (10, 50)
    assert trace_steps("10:") == (10, 0)
    assert trace_steps(":5") == (0, 5)


@pytest.mark.parametrize("text", ["10", "a:b", "5:5", "9:3", ":0", "1:2:3", "-1:5"])
def test_steps_that_are_none(text: str) -> None:
    with pytest.raises(SettingError, match=f"MERCURY_TRACE_STEPS is '{text}'"):
        trace_steps(text)


def test_form() -> None:
    with pytest.raises(SettingError, match="MERCURY_TRACE_FORMAT is 'json'; allowed: text, binary"):
        check_trace_format("json")
    check_trace_format("binary")


def test_a_directory_is_made_and_left_empty(tmp_path: Path) -> None:
    check_trace_directory("")
    check_trace_directory(str(tmp_path / "new" / "one"))
    assert list((tmp_path / "new" / "one").iterdir()) == []
    (tmp_path / "report.html").touch()
    check_trace_directory(str(tmp_path))


def test_a_directory_with_another_run_s_files(tmp_path: Path) -> None:
    (tmp_path / "trace_sch_server_0.dlc").touch()
    with pytest.raises(SettingError, match=r"a trace of another run \(trace_sch_server_0.dlc\)"):
        check_trace_directory(str(tmp_path))


def test_a_directory_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingError, match="cannot be made or read: Not a directory"):
        check_trace_directory(str(tmp_path / "file" / "traces"))
    with pytest.raises(SettingError, match="cannot be (written to|made)"):
        check_trace_directory("/proc/self/task")  # nobody may write there, root included


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path, PROBE_BYTES // 2),
        pytest.raises(SettingError, match="cannot be written to: No space left on device"),
    ):
        check_trace_directory(str(tmp_path))
