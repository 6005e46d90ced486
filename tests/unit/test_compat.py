"""The seam in MXNet's kvstore package: whose store a name is."""

from __future__ import annotations

import subprocess
import sys

import pytest
from mxnet.kvstore import KVStoreBase
from mxnet.kvstore import create as created_by_mxnet

from mxnet_plugins import compat
from tests.cluster import ROOT, clean_environment


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a worker of a job; `create` tells the name that it was given."""
    monkeypatch.setattr(KVStoreBase, "kv_registry", dict(KVStoreBase.kv_registry))
    monkeypatch.setenv("DMLC_PS_VAN_TYPE", "zmq")
    monkeypatch.setenv("DMLC_ROLE", "worker")
    monkeypatch.setattr(compat, "create", lambda name: f"ours: {name}")
    compat.activate(KVStoreBase)


DISTRIBUTED = ("dist", "dist_sync", "dist_device_async", "dist_foo", "p3store_dist", "DIST_Sync")


@pytest.mark.parametrize("name", DISTRIBUTED)
def test_every_distributed_name_is_ours(ours: None, name: str) -> None:
    assert created_by_mxnet(name) == f"ours: {name.lower()}"


@pytest.mark.parametrize("name", ["local", "device", "TestStore"])
def test_other_names_are_mxnet_s(ours: None, name: str) -> None:
    assert name.lower() not in compat.Registry()
    assert isinstance(created_by_mxnet(name), KVStoreBase)


def test_a_class_of_the_script_s_comes_first(ours: None) -> None:
    with pytest.warns(UserWarning, match="overriding existing kvstore"):

        @KVStoreBase.register
        class MyDistStore(KVStoreBase):  # type: ignore[misc]
            pass

    assert type(created_by_mxnet("MyDistStore")) is MyDistStore


def test_a_name_that_is_nobody_s(ours: None) -> None:
    with pytest.raises(KeyError, match="nonsense"):
        KVStoreBase.kv_registry["nonsense"]


@pytest.mark.parametrize("name", ["dist_async", "Dist_Async", "dist_device_async", "dist_async_x"])
def test_asynchronous(name: str) -> None:
    assert compat.is_asynchronous(name)


@pytest.mark.parametrize("name", ["dist", "dist_sync", "dist_synch", "distasync"])
def test_synchronous(name: str) -> None:
    assert not compat.is_asynchronous(name)


def test_a_process_in_no_job_is_told_how_to_start_one() -> None:
    program = "import mxnet as mx\nmx.kv.create('local')\nmx.kv.create('dist_sync')\n"
    for env in ({}, {"DMLC_PS_VAN_TYPE": "mercury"}, {"DMLC_PS_VAN_TYPE": "p3"}):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=clean_environment(**env),
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1, done.stderr
        assert "this process is in no job; start the script with `mercury launch" in done.stderr
