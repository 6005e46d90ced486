"""Settings that are wrong: one clear line that names the variable and what is allowed."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cluster import clean_environment, free_port
from tests.forks import mxnet_forks

GOOD = {
    "DMLC_PS_VAN_TYPE": "zmq",
    "DMLC_ROLE": "worker",
    "DMLC_PS_ROOT_URI": "127.0.0.1",
    "DMLC_PS_ROOT_PORT": "9999",
    "DMLC_NUM_WORKER": "1",
    "DMLC_NUM_SERVER": "1",
}
SCRIPT = "import mxnet as mx\nmx.kv.create('dist_sync')"


def run(
    changes: Mapping[str, str | None], script: str = SCRIPT
) -> subprocess.CompletedProcess[str]:
    env = clean_environment(**{k: v for k, v in {**GOOD, **changes}.items() if v is not None})
    if env.get("DMLC_ROLE") == "worker":
        return mxnet_forks().run(["-c", script], env)
    return subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=60
    )


@pytest.mark.drawn(14)
@pytest.mark.parametrize("role", ["worker", "server", "scheduler"])
@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("DMLC_PS_VAN_TYPE", "zeromq", "'zeromq'; allowed: mercury, zmq"),
        ("DMLC_PS_ROOT_PORT", "70000", "'70000'; allowed: 1 to 65535"),
        ("DMLC_PS_ROOT_PORT", "port", "'port'; allowed: 1 to 65535"),
        ("DMLC_PS_ROOT_PORT", None, "is not set: give 1 to 65535"),
        ("DMLC_NUM_WORKER", "0", "'0'; allowed: 1 to"),
        ("DMLC_NUM_SERVER", "-1", "'-1'; allowed: 1 to"),
        ("DMLC_PS_ROOT_URI", "no such host", "cannot be resolved"),
        ("MERCURY_HEARTBEAT_TIMEOUT_MS", "99", "'99'; allowed: 100 to 3600000 ms"),
        ("MERCURY_JOB_TOKEN_FILE", "/no/such/file", "No such file"),
        ("MERCURY_POLICY", "p4", "'p4'; allowed: priority, fifo, wfbp, p3, bytescheduler"),
        ("MERCURY_PACKET_BYTES", "100", "'100'; allowed: 0, or at least 1024"),
        ("MERCURY_LANES", "0", "'0'; allowed: 1 to 64"),
        ("MERCURY_SERVER_SHARES", "1,2,3", "'1,2,3'; allowed: one number for each"),
        ("MERCURY_CONGESTION", "cubik", "'cubik', which this host does not let us use (No such"),
    ],
)
def test_one_clear_line(role: str, name: str, value: str | None, says: str) -> None:
    result = run({"DMLC_ROLE": role, name: value})
    assert result.returncode not in (0, None)
    assert result.returncode > 0
    last = result.stderr.strip().splitlines()[-1]
    assert name in last
    assert says in last
    if role != "worker":
        assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("DMLC_ROLE", "boss", "allowed: worker, server, scheduler"),
        ("DMLC_INTERFACE", "nonsense0", "lo (127.0.0.1)"),
    ],
)
def test_what_is_known(name: str, value: str, says: str) -> None:
    last = run({name: value}).stderr.strip().splitlines()[-1]
    assert f"{name} is '{value}'; allowed: " in last
    assert says in last


def test_a_replica_is_mlfabric_s() -> None:
    last = run({"DMLC_ROLE": "replica"}).stderr.strip().splitlines()[-1]
    assert "DMLC_ROLE is 'replica', which only a job under MLfabric has" in last


@pytest.mark.drawn(1)
@pytest.mark.parametrize("role", ["scheduler", "server", "worker"])
def test_so_is_a_job_with_replicas(role: str) -> None:
    """Each says so: else the others would wait, or serve without the replica."""
    result = run({"DMLC_ROLE": role, "DMLC_NUM_REPLICA": "1"})
    assert result.returncode == (1 if role == "worker" else 2)
    last = result.stderr.strip().splitlines()[-1]
    assert "DMLC_NUM_REPLICA is not 0, and only a job under MLfabric has replicas" in last


def test_a_directory_that_holds_a_trace(tmp_path: Path) -> None:
    (tmp_path / "trace_worker_7.txt").touch()
    result = run({"MERCURY_TRACE_DIR": str(tmp_path)})
    assert result.returncode == 1
    assert "holds a trace of another run (trace_worker_7.txt)" in result.stderr


@pytest.mark.drawn(1)
@pytest.mark.parametrize("role", ["scheduler", "server"])
def test_port_in_use(role: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        changes = {"DMLC_ROLE": role, "DMLC_PS_ROOT_PORT": port, "DMLC_NODE_PORT": port}
        if role == "server":
            changes["DMLC_PS_ROOT_PORT"] = str(free_port())
        result = run(changes)
    assert result.returncode == 1
    last = result.stderr.strip().splitlines()[-1]
    assert f"127.0.0.1:{port}" in last
    assert "in use" in last


def test_address_of_another_host() -> None:
    result = run({"DMLC_ROLE": "server", "DMLC_NODE_HOST": "192.0.2.77"})
    assert result.returncode == 1
    assert "no interface of this host has that address" in result.stderr
    assert "192.0.2.77" in result.stderr


@pytest.mark.drawn(1)
@pytest.mark.parametrize("van", [None, "", "p3"])
def test_upstream_is_left_alone(van: str | None) -> None:
    env = clean_environment(**({} if van is None else {"DMLC_PS_VAN_TYPE": van}))
    code = (
        "import sys, mxnet as mx\n"
        "assert 'mxnet_plugins' not in sys.modules\n"
        "assert 'dist_sync' not in mx.kvstore.KVStoreBase.kv_registry\n"
        "assert type(mx.kv.create('local')) is mx.kvstore.KVStore\n"
    )
    subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=60)


def test_an_operation_that_failed_before_the_store_was_created() -> None:
    """Joining waits for all that the engine was given, and so hears of it first."""
    failing = SCRIPT.replace("mx.kv", "mx.nd.random.normal(0, -1, (2, 2))\nmx.kv")
    result = run({}, failing)
    assert result.returncode == 1
    assert "InvalidArgumentError: an operation failed before the store was created" in result.stderr
    assert "scale parameter in gaussian has to be positive" in result.stderr
