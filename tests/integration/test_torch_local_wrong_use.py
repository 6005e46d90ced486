"""One clear line for each wrong use of local steps."""

from __future__ import annotations

import re

import pytest

from tests.integration.torch_workers import torch_job

pytestmark = pytest.mark.xdist_group("torch, a second time")  # imported once

TOLD = (
    "a torch.nn.Module is needed, not SGD",
    "the optimizer has a parameter of shape (2, 3) that the model has not",
    "there is a DistributedDataParallel, which sums gradients, too",
    "ZeroRedundancyOptimizer talks to the other workers in its step",
    "something has replaced optimizer.step: wrap the optimizer before that",
    "every=2 is not a multiple of the number of fragments, 3",
    "delay=4 is not less than every / fragments = 4",
    "alpha is 2; a number from 0 to 1 is needed",
    "fragments is 'x'; a whole number is needed, 1 or more",
    "fragments=5, but the optimizer has 4 parameters only",
    "fragments is 0; a whole number is needed, 1 or more",
    "fragments[0] is a str; a module is needed",
    "fragments is a Sequential; a number or a list of modules is needed",
    "parameter '1.weight' is in none of the fragments",
    "fragments[1] has no parameter of the optimizer's that is only there",
    "wire is 'auto', which needs gradients at every step: name a codec",
    "wire: no parameter's name fits 'heavy.*'",
    "outer is an optimizer, but it is to be one of tensors that do not exist yet: give a function",
    "outer is 0.7; a function that makes an optimizer is needed",
    "outer returned an optimizer of other tensors: give it those that outer is given",
    "outer returned a NoneType; a torch.optim.Optimizer is needed",
    "outer: LBFGS does not update each parameter by its own gradient alone",
    "mercury.shared_weights: this model was not given to mercury.local_steps",
    "mercury.local_steps: this model or this optimizer has been wrapped already",
    "mercury.wrap: this model or this optimizer has been wrapped already",
    "optimizer.step() inside of mercury.shared_weights, after which this worker's own weights",
    *["mercury.checkpoint inside of mercury.shared_weights, where the model does not"] * 3,
    "the optimizer's parameters are not those it had at mercury.local_steps",
    "the optimizer's parameters are not those it had at mercury.local_steps",
    "load_state_dict() after mercury.local_steps, which gives all workers the values of worker 0",
    "parameter '0.weight' is torch.float64 on cpu with strides (3, 1), but it was torch.float32",
)
BOTH = r"worker \d has every=\d, fragments=1, delay=0, alpha=\S+; worker \d has every="
TOLD_SEVERAL = (
    rf"all workers must ask for the same: {BOTH}",
    rf"all workers must ask for the same: {BOTH}",
    r"worker \d has key 0.bias torch.float32 \(2,\) sent as (bf16|float32)",
    r"worker \d has key outer lr = (0\.5|1\.5) of fragment 0",
    r"same options and state.* worker \d has key lr = (1|2) ",
    r"the workers' models differ: worker \d has key (0\.bias|mercury\.local_steps)",
)


def told(output: str) -> list[str]:
    return [line for line in output.splitlines() if line.startswith("told: ")]


@pytest.mark.parametrize("workers", [1, 2])
def test_each_wrong_use_is_told_in_a_line(workers: int) -> None:
    with torch_job("torch_local_wrong_use.py", "alone", workers=workers) as job:
        job.wait()
        for worker in job.workers:
            lines = told(worker.output)
            assert len(lines) == len(TOLD), job.report()
            assert all(text in line for text, line in zip(TOLD, lines)), job.report()
            # What was caught, and would have been lost, is the exit code.
            assert worker.code, job.report()


def test_workers_that_differ_hear_of_it() -> None:
    with torch_job("torch_local_wrong_use.py", "arguments") as job:
        job.wait()
        for worker in job.workers:
            lines = told(worker.output)
            assert len(lines) == len(TOLD_SEVERAL), job.report()
            assert all(re.search(t, line) for t, line in zip(TOLD_SEVERAL, lines)), job.report()


def test_the_jobs_own_codec_must_be_one() -> None:
    with torch_job("torch_local.py", "real_training", MERCURY_WIRE="auto") as job:
        job.wait()
        for worker in job.workers:
            assert "MERCURY_WIRE is 'auto', which needs gradients at every step" in worker.output
