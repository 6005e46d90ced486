"""What others build on DDP trains over mercury as over Gloo, bit for bit on two workers."""

from __future__ import annotations

import functools
import re
import subprocess

import pytest

from tests.cluster import free_port
from tests.integration.torch_workers import EXAMPLES, ranks, torch_python

pytestmark = pytest.mark.xdist_group("torch, a second time")  # imported once


@functools.cache
def has(package: str) -> bool:
    looked = f"import importlib.util as u, sys; sys.exit(u.find_spec('{package}') is None)"
    return subprocess.run([torch_python(), "-c", looked], check=False).returncode == 0


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("package", "script", "words"),
    [
        ("transformers", "torch_trainer.py", "--steps 6"),
        ("accelerate", "torch_accelerate.py", "--epochs 1 with --epochs 1 --wrap"),
        ("pytorch_lightning", "torch_lightning.py", "--epochs 1"),
    ],
)
def test_weights_are_those_of_gloo(package: str, script: str, words: str) -> None:
    if not has(package):
        pytest.skip(f"no {package} (make bench-install-peers PEERS=torch-ddp), so not tried")
    ways = words.count("with") + 2
    ports = ",".join(str(free_port()) for _ in range(ways - 1))
    asked = (str(EXAMPLES / script), ports, *words.split())
    # Variables of torchrun's, for those that look whether it has started them.
    started = ranks(
        "torch_recipe.py",
        *asked,
        TORCHELASTIC_RUN_ID="recipe",
        GROUP_RANK="0",
        GROUP_WORLD_SIZE="1",
    )
    with started as job:
        job.check()
        for worker in job.workers:
            weights = re.findall(r"weights (\w+)", worker.output)
            assert len(weights) == ways, job.report()
            assert set(weights) == set(re.findall(r"weights (\w+)", job.workers[0].output))
            assert len(set(weights)) == 1, job.report()
