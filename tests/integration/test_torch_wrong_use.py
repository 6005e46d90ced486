"""One clear line for each wrong use of pslite_ext.torch."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from pslite_ext import torch as mercury
from pslite_ext.errors import FAILED_ELSEWHERE, InvalidArgumentError
from tests.cluster import ROOT, clean_environment
from tests.integration.torch_workers import torch_job, torch_python

pytestmark = pytest.mark.xdist_group("torch")  # imported once

TOLD = (
    "a torch.nn.Module is needed, not SGD",
    "the optimizer has a parameter of shape (2, 3) that the model has not",
    "something has replaced optimizer.step: wrap the optimizer before that",
    "LBFGS does not update each parameter by its own gradient alone",
    "ZeroRedundancyOptimizer talks to the other workers in its step",
    "there is a DistributedDataParallel, which sums gradients, too",
    "parameter 'every_other' of shape (3,) and strides (2,) does not fill its memory",
    "parameters 'one' and 'other' share memory: give both modules the same parameter",
    "buffer 'neighbours' is torch.sparse_coo, and worker 0's would be given to all workers",
    "parameter 'counted' is a Counted, a class with a __torch_function__ of its own",
    "there is a DataParallel, whose copies wait for no update",
    "wire: 'bf17' is not known; allowed: float32, bf16, fp16, int8",
    "wire: no parameter's name fits 'heavy.*': they are weight, bias",
    "wire: 'weight' asks for bf16, but 'weight' (float64) is not float32",
    "this model or this optimizer has been wrapped already: wrap them once, together",
    "this model or this optimizer has been wrapped already: wrap them once, together",
    "optimizer.step() without backward(): no parameter has a gradient",
    "load_state_dict(assign=True) puts other parameters in the place",
    "the optimizer has a parameter of shape (1,) that the model has not",
    "the optimizer's parameters are not those it had when it was wrapped",
    "parameter 'weight' has a sparse gradient",
)
TOLD_SEVERAL = (
    r"worker \d has key weight torch.float32 \(3, 2\) (sent as|dimensions in the order 1, 0)",
    r"worker \d has key \w+ torch.float32 \(2,[ 3]*\) sent as (float32|fp16)",
    r"same options and state.* worker \d has key lr = (0\.1|1\.1) ",
    r"same options and state.* worker 0 has key momentum_buffer of '\w+' with digest",
    r"same options and state.* worker \d has key lr = (0\.1|0\.05) ",
    r"load the same checkpoint.* worker \d has key (loaded a|no) checkpoint",
    r"load the same checkpoint.* worker \d has key (loaded a|no) checkpoint",
    r"make the same steps.* worker \d has key (0|1) steps made and 2 sums begun ",
    r"given to mercury\.wrap, and to DistributedDataParallel as well",
    r"given to mercury\.wrap, and to DataParallel as well",
    r"parameter 'weight' is torch\.float64 on cpu, but the parameter was torch\.float32 on",
    r"a wrapped model cannot be scripted",
)


@pytest.mark.parametrize("workers", [1, 2])
def test_each_wrong_use_is_told_in_a_line(workers: int) -> None:
    with torch_job("torch_wrong_use.py", "alone", workers=workers) as job:
        job.check()
        for worker in job.workers:
            told = [line for line in worker.output.splitlines() if line.startswith("told:")]
            assert len(told) == len(TOLD), job.report()
            for line, expected in zip(told, TOLD):
                assert expected in line
            # One line each: whatever else was printed is the farewell.
            assert worker.output.count("\n") <= len(TOLD) + 2, job.report()


def test_workers_with_different_models_hear_of_it() -> None:
    with torch_job("torch_wrong_use.py", "different") as job:
        job.wait()
        for worker in job.workers:
            assert "the workers' models differ" in worker.output, job.report()


def test_what_several_workers_do_wrong_is_told_to_all() -> None:
    with torch_job("torch_wrong_use.py", "several") as job:
        job.wait()
        for worker in job.workers:
            told = [line for line in worker.output.splitlines() if line.startswith("told:")]
            assert len(told) == len(TOLD_SEVERAL), job.report()
            for line, expected in zip(told, TOLD_SEVERAL):
                assert re.search(expected, line), line
            left = "the optimizer does not have '0.weight' and 1 more, which require a gradient"
            assert worker.output.count(left) == (worker.rank == 0), job.report()
            assert worker.code in (1, FAILED_ELSEWHERE), job.report()


def test_a_last_update_that_fails_is_the_exit_code() -> None:
    with torch_job("torch_wrong_use.py", "last_update") as job:
        job.wait()
        # Who hears of the other's failure first may not come to its own.
        codes = [worker.code for worker in job.workers]
        assert 1 in codes, job.report()
        assert set(codes) <= {1, FAILED_ELSEWHERE}, job.report()
        told = "the job has failed: no room for the third step"
        assert told in job.workers[codes.index(1)].output, job.report()


def test_an_update_that_failed_is_not_lost_in_silence() -> None:
    with torch_job("torch_wrong_use.py", "caught_update") as job:
        job.wait()
        for worker in job.workers:
            assert worker.code == 1, job.report()
            assert "caught: MemoryError no room for the third step" in worker.output
            assert "caught: UpdateFailedError the update of 'weight to bias (2)'" in worker.output
            assert "interrupted: the update of 'weight to bias (2)' failed" in worker.output


def test_wrap_is_not_for_mlfabric() -> None:
    code = (
        "import torch\n"
        "from pslite_ext import torch as mercury\n"
        "model = torch.nn.Linear(2, 1)\n"
        "mercury.wrap(model, torch.optim.SGD(model.parameters(), lr=0.1))\n"
    )
    environment = clean_environment(
        MERCURY_FABRIC="1",
        DMLC_ROLE="worker",
        DMLC_NUM_WORKER="1",
        DMLC_NUM_SERVER="1",
        DMLC_PS_ROOT_URI="127.0.0.1",
        DMLC_PS_ROOT_PORT="9",
        DMLC_PS_VAN_TYPE="mercury",
    )
    run = subprocess.run(
        [torch_python(), "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert run.returncode != 0
    assert "MERCURY_FABRIC is 1, which is for mercury.fabric(model, optimizer)" in run.stderr


@pytest.mark.parametrize(
    ("code", "is_told"),
    [
        ("import pslite_ext.torch", True),
        # What follows has not trained.
        ("import sys, pslite_ext.torch; sys.exit(2)", False),
        ("import pslite_ext.torch; raise ValueError('of its own')", False),
        ("import os, sys, pslite_ext.torch; os.fork() and (os.wait(), os._exit(0))", False),
        (
            "import importlib, multiprocessing\n"
            "spawn = multiprocessing.get_context('spawn')\n"
            "child = spawn.Process(target=importlib.import_module, args=('pslite_ext.torch',))\n"
            "child.start()\n"
            "child.join()\n",
            False,
        ),
    ],
    ids=["trains", "usage", "raises", "forked", "spawned"],
)
def test_who_never_wraps_hears_of_it(code: str, is_told: bool) -> None:
    environment = clean_environment(DMLC_ROLE="worker")
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    told = "mercury.wrap(model, optimizer) was never called"
    assert run.stderr.count(told) == is_told, run.stderr
    assert run.stderr.count("\n") == 1 or not is_told


def test_what_is_missing_or_too_old_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InvalidArgumentError, match="needs PyTorch, which is not installed"):
        mercury.wrap(None, None)
    with pytest.raises(InvalidArgumentError, match=r"needs PyTorch 2\.1 or newer; this is 1\.13"):
        mercury.check_version("1.13.1+cpu")
    mercury.check_version("2.13.0+cpu")
