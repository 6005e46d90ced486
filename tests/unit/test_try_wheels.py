"""What is tried of each wheel, and what is said of one that is not there or does not work."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scripts.try_wheels import (
    WITH_MXNET,
    WITH_NUMPY,
    Failed,
    attempt,
    found_the_line,
    found_the_model,
    run,
    the_wheel,
)
from tests.cluster import ROOT


def test_readme_says_what_is_installed_and_run() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "\npip install dist/*.whl\n" in readme
    for example in (WITH_MXNET, WITH_NUMPY):
        compile(example.script(), "train.py", "exec")


def test_who_has_learnt() -> None:
    good = "worker 0 learnt [[ 2.   -3.4]] [4.2]\n"
    assert found_the_line(good + good.replace("0 l", "1 l")) == 2
    assert found_the_line(good + "worker 1 learnt [[ 2.   -3.4]] [4.9]\n") == 1
    assert found_the_line("") == 0
    assert found_the_model("off by 0.012; {}\noff by 9.870; {}\n") == 1


def test_a_step_that_fails_says_which(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="python0.0 is not there: put it on PATH"):
        run("python0.0", "-c", "", cwd=tmp_path)
    with pytest.raises(Failed, match=r"exit code 3\nfarewell"):
        run(sys.executable, "-c", "print('farewell'); raise SystemExit(3)", cwd=tmp_path)


def test_one_wheel_for_each_python(tmp_path: Path) -> None:
    with pytest.raises(Failed, match=f"{tmp_path} has 0 wheels like mercury_ps-.*make wheels"):
        attempt(sys.executable, tmp_path)
    for name in ("mercury_ps-1-cp39-x.whl", "mercury_ps-2-cp39-x.whl"):
        (tmp_path / name).touch()
    with pytest.raises(Failed, match="has 2 wheels"):
        the_wheel("mercury_ps-*-cp39-*.whl", tmp_path)
