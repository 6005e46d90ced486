"""Of tests whose variants are jobs, a run has some (tests/conftest.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = """
import pytest

@pytest.mark.drawn(2)
@pytest.mark.parametrize("n", range(6))
def test_drawn(n: int) -> None: ...

@pytest.mark.parametrize("n", range(6))
def test_all(n: int) -> None: ...
"""


@pytest.fixture
def some_tests(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = drawn(count): so many\n")
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    (tmp_path / "test_some.py").write_text(TESTS)
    return tmp_path


def run(folder: Path, *options: str, what: str = "test_some.py", **env: str) -> set[str]:
    """The tests that passed."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MERCURY_TEST", "PYTEST"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *options, what],
        cwd=folder,
        env={**clean, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    words = done.stdout.replace("test_some.py::", " ").split()
    return {word for word in words if word.startswith("test_") and word.endswith("]")}


def drawn(passed: set[str]) -> set[str]:
    assert {test for test in passed if "all" in test} == {f"test_all[{n}]" for n in range(6)}
    return {test for test in passed if "drawn" in test}


def test_a_seed_draws_the_same_in_every_process(some_tests: Path) -> None:
    alone = drawn(run(some_tests, MERCURY_TEST_SEED="7"))
    assert len(alone) == 2
    assert drawn(run(some_tests, "-n", "2", MERCURY_TEST_SEED="7")) == alone
    assert drawn(run(some_tests, MERCURY_TEST_SEED="8")) != alone


def test_workers_of_xdist_draw_what_the_first_process_draws(some_tests: Path) -> None:
    assert len(drawn(run(some_tests, "-n", "3"))) == 2


def test_all_can_be_asked_for_and_what_is_named_runs(some_tests: Path) -> None:
    assert len(drawn(run(some_tests, MERCURY_TEST_LONG="1"))) == 6
    for one in ("test_drawn[0]", "test_drawn[5]", "test_drawn[3]"):
        assert run(some_tests, what=f"test_some.py::{one}") == {one}
    assert run(some_tests, "-k", "drawn and 3", MERCURY_TEST_SEED="1") == {"test_drawn[3]"}
