"""What a node of an MLfabric job takes from its script and gives it, without a job."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.fabric import nodes
from pslite_ext.fabric.calls import Calls
from pslite_ext.fabric.nodes import Holder, Worker
from pslite_ext.job import figures


class Core:
    """A job in which whatever is asked for is there at once."""

    def __init__(self, options: dict[str, Any], values: Any, size: int) -> None:
        self.size = size

    def wait(self, what: int) -> bool:
        return True

    def push(self, update: Any, norm: float) -> float:
        return norm

    def model(self, out: Any) -> int:
        out[:] = range(len(out))
        return 3

    def stats(self) -> str:
        return '{"elements": 6}'

    def failed_elsewhere(self) -> bool:
        return False

    def leave(self, failed: bool) -> None:
        Path(os.environ["LEFT"]).write_text("failed" if failed else "well")


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    told = {"DMLC_ROLE": "worker", "DMLC_NUM_WORKER": "1", "DMLC_NUM_SERVER": "1"}
    told |= {"DMLC_TASK_ID": "0", "DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_PS_ROOT_PORT": "9000"}
    told |= {"DMLC_PS_VAN_TYPE": "mercury", "LEFT": str(tmp_path / "left")}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(_core, "Fabric", Core)
    monkeypatch.setattr(nodes, "_here", None)
    monkeypatch.setattr(nodes, "at_exit", lambda call: None)
    monkeypatch.setattr(nodes, "remember_uncaught", lambda: None)
    monkeypatch.setattr(figures, "_source", figures._source)
    return monkeypatch


@pytest.mark.parametrize(
    ("norm", "says"),
    [
        (-1, "norm is -1.0; allowed: a finite number that is 0 or more"),
        (np.inf, "norm is inf; allowed"),
        (np.nan, "norm is nan; allowed"),
        (10**400, "norm: int too large to convert to float"),
        (1j, "norm: .* not 'complex'"),
        ("much", "norm: could not convert string to float: 'much'"),
    ],
)
@pytest.mark.usefixtures("job")
def test_a_norm_that_is_none_is_refused_as_such(norm: Any, says: str) -> None:
    worker = Worker(np.zeros(2, np.float32))
    assert worker.push(np.ones(2, np.float32), 2) == 2
    with pytest.raises(InvalidArgumentError, match=says):
        worker.push(np.ones(2, np.float32), norm)


@pytest.mark.parametrize(
    ("first", "shape", "lent"), [((), (), ()), ((2, 3), (2, 3), (2, 3)), (None, (6,), (-1,))]
)
def test_the_shape_is_the_model_s_or_flat_where_none_is_given(
    job: pytest.MonkeyPatch, first: Any, shape: tuple[int, ...], lent: tuple[int, ...]
) -> None:
    job.setenv("DMLC_ROLE", "server")
    calls = Calls()
    holder = Holder("server", None if first is None else np.zeros(first, np.float32), calls=calls)
    assert holder.model()[0].shape == shape
    assert calls.shape == lent


def _train() -> None:
    Worker(np.zeros(2, np.float32))


@pytest.mark.usefixtures("job")
def test_a_worker_that_multiprocessing_has_forked_leaves_well(tmp_path: Path) -> None:
    process = multiprocessing.get_context("fork").Process(target=_train)
    process.start()
    process.join()
    assert process.exitcode == 0
    assert (tmp_path / "left").read_text() == "well"
