"""One clear line for each wrong use of mercury.fabric, and of what else joins a job there."""

from __future__ import annotations

import pytest

from tests.integration.torch_workers import fabric_job, torch_job

pytestmark = pytest.mark.xdist_group("torch")  # imported once

BEFORE = (
    "mode is 'stale:0'; allowed: async, sync, stale:NUMBER (1 to 1000000 updates)",
    "MERCURY_FABRIC_MODE is 'async', and the script asks for 'stale:2': ask for the same",
    "mercury.fabric: the optimizer has a parameter of shape (3, 2) that the model has not",
    "mercury.fabric: parameter '0.weight' is torch.float64: under MLfabric parameters that are",
    "the groups of the optimizer have momentum 0.5, 0.9, or differ in nesterov or dampening",
    "mercury.fabric: SGD with dampening 0.1: the server's momentum has none; leave it out",
    "mercury.fabric: SGD with momentum 1.5: the server's is 0 or more, and below 1",
    "mercury.fabric: LBFGS does not update each parameter by its own gradient alone",
    "mercury.fabric: every is 0; a whole number is needed, 1 or more",
    "mercury.fabric: every is 2.5; a whole number is needed, 1 or more",
    "mercury.fabric: outer is to be a function that is given a list of tensors and returns an",
    "mercury.fabric: outer returned a Adam; a torch.optim.SGD is needed: it runs on the server",
    "mercury.fabric: outer's SGD must have a learning rate above 0, no weight_decay and no",
    "MERCURY_FABRIC is 1, which is for mercury.fabric(model, optimizer): call it in the place of",
    "checkpoint: under MLfabric the server has the model, and workers are not at the same step",
    "MERCURY_FABRIC is 1, which is for mercury.fabric(model, optimizer): call it in the place of",
)
TOLD = (
    *BEFORE,
    "mercury.fabric: under MLfabric a process has one model, with one optimizer: this is the",
    "this model or this optimizer has been wrapped already: wrap them once, together",
    "optimizer.step() without backward(): no parameter has a gradient",
    "parameters that come after mercury.fabric: a model under MLfabric keeps its size",
    "the optimizer's momentum is 0.8 now, and the server applies 0.9, with which the job began",
    "this model was given to mercury.fabric, and to DistributedDataParallel as well",
    "parameter '0.weight' has a sparse gradient: give its embedding sparse=False",
    "load_state_dict() after mercury.fabric: the job goes on with the model that it has",
    "load_state_dict() after mercury.fabric: the job goes on with the model that it has",
)


def test_each_wrong_use_is_told_in_a_line() -> None:
    with fabric_job(
        "torch_fabric_wrong_use.py", "alone", workers=1, env={"MERCURY_FABRIC_MODE": "async"}
    ) as job:
        job.check()
        (worker,) = job.workers
        told = [line for line in worker.output.splitlines() if line.startswith("told:")]
        assert len(told) == len(TOLD), job.report()
        for line, expected in zip(told, TOLD):
            assert expected in line
        # One line each: whatever else was printed is the farewell.
        assert worker.output.count("\n") <= len(TOLD) + 2, job.report()


def test_a_worker_with_another_model_hears_of_it() -> None:
    with fabric_job("torch_fabric_wrong_use.py", "different", workers=2) as job:
        job.wait()
        told = (
            "worker 1 does not train what worker 0 does: it has 'weight torch.float32 (3, 2) sent "
            "as float32', and worker 0 has 'weight torch.float32 (2, 3) sent as float32'"
        )
        assert told in job.workers[1].output, job.report()
        assert job.workers[1].code == 1


def test_a_worker_whose_optimizer_is_told_something_else_hears_of_it() -> None:
    env = {"MERCURY_FABRIC_MODE": "sync"}
    with fabric_job("torch_fabric_wrong_use.py", "led_otherwise", workers=2, env=env) as job:
        job.wait()
        told = "worker 1 does not train what worker 0 does: it has lr = 0.1, "
        assert told in job.workers[1].output, job.report()
        for text in ("lr = 0.05 from update 3 on; lr = 0.1 from update 4 on (", "worker 0 has lr"):
            assert text in job.workers[1].output, job.report()
        assert job.workers[1].code == 1


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({}, "was told MERCURY_FABRIC_MODE=stale:2, and the scheduler uses async: set it for"),
        ({"MERCURY_FABRIC_UPDATE": "sum"}, "MERCURY_FABRIC_UPDATE is 'sum', and under PyTorch"),
        ({"MERCURY_FABRIC": "2"}, "MERCURY_FABRIC is '2'; allowed: 0 to 1"),
    ],
)
def test_bad_settings_are_one_clear_line(env: dict[str, str], says: str) -> None:
    with fabric_job("torch_fabric_wrong_use.py", "untold", workers=1, env=env) as job:
        # The server may come too late to hear of it.
        hear = (*job.workers, job.scheduler)
        job.wait_until("they fail", lambda: all(process.code for process in hear))
        assert says in job.workers[0].output, job.report()
        assert says in job.scheduler.output, job.report()


def test_who_asks_for_mlfabric_needs_such_a_job() -> None:
    with torch_job("torch_fabric.py", "alone", "plain", workers=1) as job:
        job.wait_until("one fails", lambda: bool(job.workers[0].code))
        says = (
            "mercury.fabric needs a job under MLfabric, which torchrun does not start: use mercury"
        )
        assert says in job.workers[0].output
