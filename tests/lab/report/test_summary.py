"""What stands for figures becomes figures of the tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.lab.report import summary

WORDS = """# Benchmarks

## [Times](benchmarks/times.md)

Ours: {times; ours; time}; on few: {times; ^few; ours|theirs; time}; {times; theirs; time|ratio};
{times; nobody; time}; {times; ours; ratio}.

## [Not run](benchmarks/not_run.md)

{not_run; ours; time}
"""
TIMES = """# Times

few hosts; once:

| system | time [s] | ratio |
|---|---|---|
| ours | 10.0 ± 2 | 1.0 |
| theirs | 9.50 |  |

many hosts; once:

| system | time [s] | ratio |
|---|---|---|
| ours | 10.0 | 0.5 (not by turns) |
| theirs | > 45 | 0.5 |
"""


def test_ranges_are_of_the_rows_and_columns_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "SUMMARY", tmp_path / "summary.md")
    summary.SUMMARY.write_text(WORDS)
    (tmp_path / "times.md").write_text(TIMES)
    assert summary.headings() == {"times": "Times", "not_run": "Not run"}
    page = summary.summary(summary.pages(tmp_path))
    assert (
        "Ours: 10.0; on few: 9.50 to 10.0; 0.5 to 9.50;\n"
        "(not measured); 0.5 to 1.0 (not all by turns).\n" in page
    )
    assert "Not run" not in page
