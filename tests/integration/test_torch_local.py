"""Local steps under PyTorch: the weights that the papers' rules make, and those of plain torch."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cluster import ROOT, clean_environment, mercury
from tests.integration.torch_workers import torch_command, torch_job

pytestmark = pytest.mark.xdist_group("torch, a second time")  # imported once

CASES = ("known_updates", "real_training", "each_step_is_synchronous")
SEVERAL = (
    "shared_alike",
    "through_a_device",
    "where_new_tensors_go_elsewhere",
    "odd_parameters",
    "never_together",
    "any_inner_optimizer",
    "derived_optimizer",
    "outer_schedule",
)
SAID = {  # by worker 0
    ".local_steps: the optimizer does not have 'alone', which require": "odd_parameters",
    ": weights never came together: 1 of every=4 steps were counted": "never_together",
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("workers", "cases"),
    [(1, (*CASES, "nothing_travels", "outer_schedule")), (2, (*CASES, *SEVERAL)), (3, CASES)],
)
def test_weights_are_as_they_should_be(workers: int, cases: tuple[str, ...]) -> None:
    with torch_job("torch_local.py", *cases, workers=workers, servers=min(workers, 2)) as job:
        job.wait(timeout_s=300)
        for worker in job.workers:
            for case in cases:
                assert f"as it should be: {case}" in worker.output, job.report()
        for text, case in SAID.items():
            said = [worker.output.count(f"mercury{text}") for worker in job.workers]
            assert said == [int(case in cases and rank == 0) for rank in range(workers)]
        if workers > 1 and "outer_schedule" in cases:
            told = r"outer lr = "
            assert all(told in worker.output for worker in job.workers), job.report()
        else:
            job.check()


@pytest.mark.drawn(2)
@pytest.mark.parametrize("manner", ["killed", "has fewer", "server"])
@pytest.mark.parametrize(("delay", "wire"), [(0, "float32"), (1, "int8")])
def test_a_node_is_lost_between_two_synchronizations(
    tmp_path: Path, manner: str, delay: int, wire: str
) -> None:
    script = Path(__file__).with_name("torch_local_goes_on.py")
    done = mercury(
        *("launch", "-n", 3, "-s", 2, "--min-workers", 2, "--log-dir", tmp_path / "logs"),
        *("--", *torch_command(), script, manner, delay),
        env=clean_environment(PYTHONPATH=str(ROOT), WIRE=wire),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ended = re.findall(r"ended with (\[.*\]), (\d) workers", done.stdout)
    left = 3 if manner == "server" else 2
    assert len(ended) == left, done.stdout
    assert set(ended) == {(ended[0][0], str(left))}, done.stdout
    if manner != "has fewer":
        assert "the job has ended well, without" in done.stderr


def test_the_page_s_example(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "local-steps.md").read_text()
    (example,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    first, rest = example.split("\n", 1)
    model = (
        "import torch",
        "model = torch.nn.Linear(4, 2)",
        "optimizer = torch.optim.AdamW(model.parameters())",
        "batches = [(torch.randn(8, 4), torch.randn(8, 2)) for _ in range(200)]",
        "loss = torch.nn.functional.mse_loss",
    )
    (tmp_path / "train.py").write_text("\n".join((first, *model, rest)))
    done = mercury(
        *("launch", "-n", 2, "-s", 1, "--log-dir", tmp_path / "logs", "--"),
        *(*torch_command(), tmp_path / "train.py"),
        env=clean_environment(PYTHONPATH=str(ROOT)),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "model.pt").exists()
