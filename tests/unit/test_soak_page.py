"""A soak's page and record: counts, all runs of a file, and how to repeat what was wrong."""

from __future__ import annotations

from pathlib import Path

from scripts.soak.page import again, page
from scripts.soak.record import Round, Run, read
from scripts.soak.runner import VANS, narrowed
from scripts.soak.verdict import NOT_STRUCK, Verdict

FINE, BAD = Verdict("ended"), Verdict("hang", "worker 0 still runs | and runs")


def test_the_page_counts_and_tells_how_to_repeat_what_was_wrong() -> None:
    words = narrowed(["swallow one way", "kill"], ["zmq"])
    rounds = [
        Round(5, "zmq", "kill", FINE, 3.25, words, 900.0),
        Round(6, "zmq", "kill", BAD, 20.0, words, 900.0),
        Round(7, "zmq", "kill", Verdict(NOT_STRUCK), 1.0, words),
    ]
    text = page([Run("today", "abc", "make soak", rounds)])
    row = "| kill | a process is killed | ends within 8 s | zmq | 3 | 0 | 1 | 3.2 | 1 | 1 |"
    assert row in text
    assert "| 6 | zmq | kill | hang | worker 0 still runs \\| and runs |" in text
    repeat = "make soak SOAK=\"--seed 6 --rounds 1 --only 'swallow one way' kill --vans zmq\""
    assert again(rounds[1]) == repeat
    assert repeat in text
    assert "3 jobs in 0.5 h, 1 of them wrong" in text


def test_only_what_was_chosen_is_repeated() -> None:
    assert narrowed([], VANS) == ""


def test_runs_of_one_file_make_one_page(tmp_path: Path) -> None:
    log = tmp_path / "new" / "rounds.jsonl"
    assert read(log) == []
    runs = [Run("today", "abc", "make soak"), Run("tomorrow", "def", "make soak")]
    for i, run in enumerate(runs):
        for seed in range(2):
            run.add(Round(10 * i + seed, "zmq", "kill", BAD, 3.0, "", 1800.0), log)
    assert read(log) == runs
    text = page(read(log))
    assert "4 jobs in 2.0 h, 4 of them wrong" in text
    assert "today, commit abc: 2 jobs in 1.00 h, seeds 0 to 1" in text
    assert "tomorrow, commit def: 2 jobs in 1.00 h, seeds 10 to 11" in text
