"""What a scheduler records: a head, then all that it is given. A full disk ends only that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pslite_ext.fabric.recording import NAME, VERSION, Recording
from tests.cluster import small_disk


def test_all_is_written_until_it_is_closed(tmp_path: Path) -> None:
    left = ["one\n", ""]
    recording = Recording(str(tmp_path), {"workers": 2}, lambda: left.pop(0) if left else "last\n")
    recording.close()
    head, *lines = (tmp_path / NAME).read_text().splitlines()
    assert json.loads(head)["event"] == "job"
    assert (json.loads(head)["version"], json.loads(head)["workers"]) == (VERSION, 2)
    assert lines[-1] in ("one", "last")


def test_a_full_disk_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with small_disk(tmp_path, 4096):
        recording = Recording(str(tmp_path), {}, lambda: "x" * 100000)
        recording.close()
        assert capfd.readouterr().err == (
            f"mercury: {tmp_path / NAME}: No space left on device; "
            "nothing is recorded from here on\n"
        )
