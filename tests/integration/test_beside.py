"""Servers beside the workers, as `mercury launch`, Slurm and Kubernetes start them."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pslite_ext.config import Settings
from pslite_ext.launch.tasks import read_hosts
from tests.cluster import ROOT, clean_environment, free_port, mercury
from tests.integration.joining import MERCURY, Running, ended

NODE = ROOT / "tests" / "faults" / "node.py"
NEWCOMERS = ROOT / "tests" / "integration" / "mxnet_newcomers.py"
LIMIT_S = 120
# What srun does: two tasks on each of two nodes, which are all here.
SRUN = """\
#!/bin/bash
while [[ $1 == --* ]]; do shift; done
for node in 0 1; do
    for task in 0 1; do
        SLURM_NODEID=$node SLURM_LOCALID=$task "$@" &
    done
done
wait
"""


def test_the_launcher_s_default(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    done = mercury("launch", "-n", 2, "--log-dir", logs, "--", sys.executable, NODE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("joined") == 2
    assert len(list(logs.glob("server_*.log"))) == 2


def slurm(folder: Path) -> dict[str, str]:
    """What a batch script finds in its environment, and an srun of ours."""
    srun = folder / "srun"
    srun.write_text(SRUN)
    srun.chmod(0o755)
    return {
        "PATH": f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "SLURM_JOB_NUM_NODES": "2",
        "SLURMD_NODENAME": "127.0.0.1",
        "SLURM_JOB_ID": str((free_port() - 10000) % 20000),
    }


@pytest.mark.parametrize("script", ["slurm_beside.sh", "slurm_elastic.sh"])
def test_the_scripts_for_slurm(tmp_path: Path, script: str) -> None:
    done = subprocess.run(
        ["bash", str(ROOT / "examples" / script), str(NODE)],
        cwd=tmp_path,
        env=clean_environment(PYTHONPATH=str(ROOT), **slurm(tmp_path)),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("joined") == 2, done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == [tmp_path / "srun"]


def test_under_slurm_a_killed_worker_comes_back_and_another_joins(tmp_path: Path) -> None:
    env = {"WHERE": "0", "WAITS_FOR": "3", "MERCURY_MIN_WORKERS": "1"}
    batch, own = ("bash", ROOT / "examples" / "slurm_elastic.sh", NEWCOMERS), slurm(tmp_path)
    job = Running(tmp_path / "job", ("setsid", *batch, tmp_path), DIES_AT="30", **env, **own)
    try:
        job.says("worker 1 is in; the job goes on with 2 workers")
        file = tmp_path / f"join-{own['SLURM_JOB_ID']}.env"
        assert file.stat().st_mode & 0o77 == 0
        join = (*MERCURY, "join", file, "--", sys.executable, NEWCOMERS, tmp_path)
        more = Running(tmp_path / "more", join, **env)
        (tmp_path / "go").touch()
        assert more.end() == 0, more.output + job.output
        assert job.end() == 0, job.output
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.process.pid, signal.SIGTERM)
    ends = ended(job, more)
    assert sorted(rank for rank, _, _ in ends) == ["0", "1", "2"], job.output
    assert len({end for _, _, end in ends}) == 1, ends
    assert not file.exists()


@pytest.mark.parametrize(
    ("file", "servers", "containers"),
    [
        ("kubernetes_beside.yaml", 4, ("scheduler", "worker", "server")),
        ("kubernetes_elastic.yaml", 2, ("scheduler", "server", "worker")),
    ],
)
def test_the_manifests_for_kubernetes(file: str, servers: int, containers: tuple[str, ...]) -> None:
    """Each container has all the settings of its role."""
    text = (ROOT / "examples" / file).read_text()
    documents = text.split("---\n")
    line = re.compile(r'^  ((?:DMLC|MERCURY)_\w+): "?([\w-]+)"?$', re.MULTILINE)
    shared = dict(line.findall(documents[0]))
    address = shared.pop("DMLC_PS_ROOT_URI")
    assert f"kind: Service\nmetadata: {{name: {address}}}" in documents[1]
    roles = []
    for container in re.split(r"\n        - name: ", "".join(documents[2:]))[1:]:
        own = dict(re.findall(r'- \{name: (\w+), value: "?(\w+)"?\}', container))
        if "name: DMLC_TASK_ID\n" in container:
            assert "batch.kubernetes.io/job-completion-index" in container
            own["DMLC_TASK_ID"] = "3"
        assert container.count("{configMapRef: {name: train}}, {secretRef: {name: train}}") == 1
        settings = Settings.from_environment(
            {**shared, **own, "DMLC_PS_ROOT_URI": "127.0.0.1", "MERCURY_JOB_TOKEN": "secret"}
        )
        assert settings.values["DMLC_NUM_WORKER"] == 4
        assert settings.values["DMLC_NUM_SERVER"] == servers
        roles.append((container.split("\n")[0], settings.values["DMLC_ROLE"]))
    assert roles == [(name, name) for name in containers]


def test_the_file_for_docker_compose() -> None:
    text = (ROOT / "examples" / "docker" / "compose.yaml").read_text()
    shared = dict(re.findall(r'^  (DMLC_\w+): "?([\w-]+)"?$', text, re.MULTILINE))
    assert "\n  MERCURY_JOB_TOKEN:\n" in text  # of who starts it
    services = re.findall(r"^  ([a-z]+[-\d]*):\n    <<: \*node\n(.*)$", text, re.MULTILINE)
    roles = []
    for name, line in services:
        assert "{<<: *job, " in line
        own = dict(re.findall(r'(DMLC_\w+): "?(\w+)"?', line))
        settings = Settings.from_environment(
            {**shared, **own, "DMLC_PS_ROOT_URI": "127.0.0.1", "MERCURY_JOB_TOKEN": "secret"}
        )
        roles.append((name, settings.values["DMLC_ROLE"], settings.values["DMLC_TASK_ID"]))
    assert shared["DMLC_PS_ROOT_URI"] == services[0][0]
    assert roles == [
        ("scheduler", "scheduler", -1),
        *((f"{role}-{rank}", role, rank) for role in ("server", "worker") for rank in (0, 1)),
    ]
    count = (shared["DMLC_NUM_SERVER"], shared["DMLC_NUM_WORKER"])
    assert count == ("2", "2")


def test_the_files_for_ssh(tmp_path: Path) -> None:
    """What the script calls mercury with."""
    ssh = ROOT / "examples" / "ssh"
    hosts = read_hosts(ssh / "hosts")
    assert [host.name for host in hosts] == ["alpha", "beta", "gamma", "delta"]
    assert hosts[0].speed == 10 * (hosts[3].speed or 0)
    stand_in = tmp_path / "mercury"
    stand_in.write_text('#!/bin/bash\necho "$@"\n')
    stand_in.chmod(0o755)
    called = subprocess.run(
        [ssh / "launch.sh", "train.py", "--lr", "0.1"],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, capture_output=True, text=True,
    )  # fmt: skip
    assert called.stdout.split() == [
        "launch", "-n", "4", "-s", "beside", "-H", str(ssh / "hosts"), "--", "python", "train.py",
        "--lr", "0.1",
    ]  # fmt: skip


def test_the_dockerfile_installs_what_this_tree_builds() -> None:
    text = (ROOT / "examples" / "docker" / "Dockerfile").read_text()
    python = re.search(r"FROM python:(3\.\d+)-slim-bookworm", text)
    assert python is not None
    assert f'Python :: {python[1]}"' in (ROOT / "pyproject.toml").read_text()
    assert "pip install --no-cache-dir /wheels/*.whl &&" in text
    assert text.rstrip().endswith('CMD ["python", "train.py"]')
