"""Servers beside the workers, as `mercury launch`, Slurm and Kubernetes start them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from pslite_ext.config import Settings
from tests.cluster import ROOT, clean_environment, free_port, mercury

NODE = ROOT / "tests" / "faults" / "node.py"
LIMIT_S = 120
# What srun does: two tasks on each of two nodes, which are all here.
SRUN = """\
#!/bin/bash
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


def test_the_script_for_slurm(tmp_path: Path) -> None:
    srun = tmp_path / "srun"
    srun.write_text(SRUN)
    srun.chmod(0o755)
    job = {
        "PATH": f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "SLURM_JOB_NUM_NODES": "2",
        "SLURMD_NODENAME": "127.0.0.1",
        "SLURM_JOB_ID": str((free_port() - 10000) % 20000),
    }
    done = subprocess.run(
        ["bash", str(ROOT / "examples" / "slurm_beside.sh"), str(NODE)],
        env=clean_environment(**job),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("joined") == 2, done.stdout + done.stderr


def test_the_manifest_for_kubernetes() -> None:
    """Each container has all the settings of its role."""
    text = (ROOT / "examples" / "kubernetes_beside.yaml").read_text()
    documents = text.split("---\n")
    shared = dict(re.findall(r'^  (DMLC_\w+): "?([\w-]+)"?$', documents[0], re.MULTILINE))
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
        assert settings.values["DMLC_NUM_SERVER"] == settings.values["DMLC_NUM_WORKER"] == 4
        roles.append((container.split("\n")[0], settings.values["DMLC_ROLE"]))
    assert roles == [("scheduler", "scheduler"), ("worker", "worker"), ("server", "server")]
