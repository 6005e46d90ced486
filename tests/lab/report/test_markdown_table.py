"""Tables are written, and read again."""

from __future__ import annotations

from scripts.lab.report.markdown_table import Table, tables


def test_a_table_is_read_as_it_was_written() -> None:
    written = Table("a case:", ["", "time [s]"], [["ours", "1 ± 0.1"], ["theirs", ""]])
    page = "\n".join(["# A page", "", "Words.", *written.lines(), "", "More.", *written.lines()])
    assert tables(page) == [written._replace(heads=["", "time"])] * 2


def test_nothing_becomes_no_table() -> None:
    assert Table("a case:", ["a"], []).lines() == []
