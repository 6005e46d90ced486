"""`make papers`: which runs of the lab it makes, and what it leaves."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from scripts.lab import runner
from scripts.lab.report import page
from scripts.papers import run
from scripts.papers.run import FULL, QUICK, Step

LEAVES = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_text({content!r}); sys.exit({code})"
RESULTS = json.dumps({"rows": [], "failures": [], "series": [], "started": "today"})


class Pretended(Step):
    """A run of the lab that measures nothing."""

    code = 0
    content: str | None = RESULTS

    def command(self) -> list[str]:
        if self.content is None:
            return [sys.executable, "-c", f"import sys; sys.exit({self.code})"]
        program = LEAVES.format(content=self.content, code=self.code)
        return [sys.executable, "-c", program, str(self.out)]


class Broken(Pretended):
    code = 1


class Stopped(Pretended):
    code = 130  # by Ctrl-C


class Empty(Pretended):
    code = 1
    content = None


@pytest.fixture(autouse=True)
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(run, "BUILD", tmp_path)
    return tmp_path


@pytest.mark.parametrize("steps", [FULL, QUICK], ids=["full", "quick"])
def test_each_run_measures_something(
    steps: dict[str, list[Step]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert list(steps) == ["mercury", "prophet", "mlfabric", "sketchdlc"]
    for step in (step for of in steps.values() for step in of):
        # Of systems that may not be installed here: it is cases that are looked for.
        monkeypatch.setattr(sys, "argv", ["lab", *step.arguments, "--list"])
        monkeypatch.setattr("signal.signal", lambda *_: None)  # this process stays as it is
        assert runner.main() == 0
        assert any(" s  " in line for line in capsys.readouterr().out.splitlines()), step


def test_what_was_measured_is_kept_though_a_run_fails(build: Path) -> None:
    steps = [Pretended("first", ()), Broken("second", ()), Empty("third", ())]
    (build / "third.json").write_text("of an earlier run")
    assert run.measure(steps) == (False, [step.out for step in steps[:2]])


def test_all_went_well() -> None:
    step = Pretended("first", ())
    assert run.measure([step]) == (True, [step.out])


def test_earlier_results_of_what_was_not_measured_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = tmp_path / "docs" / "benchmarks" / "results" / "first.json"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("{}")
    shown: list[str] = []
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(run, "DOCS", tmp_path / "docs")
    steps = [Broken("second", ()), Stopped("first", ()), Pretended("third", ())]
    monkeypatch.setattr(run, "FULL", {"mercury": steps})
    monkeypatch.setattr("scripts.papers.page.write", lambda to: to / "papers.md")
    monkeypatch.setattr(page, "Results", lambda of: shown.extend(path.read_text() for path in of))
    monkeypatch.setattr(page, "page_of", lambda *_: "")
    monkeypatch.setattr(sys, "argv", ["papers"])
    assert run.main() == 1
    assert sorted(shown) == sorted(["{}", RESULTS, RESULTS])  # pages are made once


def test_where_nothing_was_measured_nothing_is_written(
    build: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "QUICK", {"mercury": [Empty("first", ())]})
    monkeypatch.setattr(sys, "argv", ["papers", "--quick"])
    assert run.main() == 1
    assert "nothing was measured" in capsys.readouterr().err
    assert list(build.iterdir()) == []
