"""`make papers`: which runs of the lab it makes, and what it leaves."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from scripts.lab import runner
from scripts.lab.benches.catalogue import PROGRAMS
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
        cases = [line for line in capsys.readouterr().out.splitlines() if " s  " in line]
        assert cases or PROGRAMS.keys() & {*step.arguments}, step


def test_what_was_measured_is_kept_though_a_run_fails(build: Path) -> None:
    steps = [Pretended("first", ()), Broken("second", ()), Empty("third", ())]
    (build / "third.json").write_text("of an earlier run")
    well, found = run.measure(steps, keep=False)
    assert not well
    assert found == [build / "first.json", build / "second.json"]


def test_all_went_well(build: Path) -> None:
    assert run.measure([Pretended("first", ())], keep=False) == (True, [build / "first.json"])


def test_where_nothing_was_measured_nothing_is_written(
    build: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "QUICK", {"mercury": [Empty("first", ())]})
    monkeypatch.setattr(sys, "argv", ["papers", "--quick"])
    assert run.main() == 1
    assert "nothing was measured" in capsys.readouterr().err
    assert list(build.iterdir()) == []
