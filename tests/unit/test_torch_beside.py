"""How ranks that torchrun has started agree on a job, and who ends what they start beside them."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pslite_ext.config import SettingError
from pslite_ext.errors import PeerLostError, WaitTimeoutError
from pslite_ext.torch import beside
from tests.cluster import ROOT, clean_environment, free_port


class Store:
    """As torch.distributed has it, for ranks that come one after the other."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def set(self, key: str, value: str) -> None:
        self.values[key] = value.encode()

    def get(self, key: str) -> bytes:
        return self.values[key]

    def check(self, keys: list[str]) -> bool:
        return all(key in self.values for key in keys)

    def wait(self, keys: list[str], timeout: timedelta) -> None:
        if not self.check(keys):
            raise RuntimeError(f"wait timeout after {timeout}")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The environments of what would have been started."""
    found: list[dict[str, str]] = []
    monkeypatch.setattr(beside, "_start", lambda _name, _rank, environ: found.append(environ))
    return found


def test_the_first_of_each_host_leads() -> None:
    assert beside.leaders(["0", "1", "0", "1"]) == [0, 2]
    assert beside.leaders(["@a", "@b", "@a", "@b"]) == [0, 1]


def test_others_see_rank_0_where_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {"127.0.0.1", "127.0.1.1", "10.1.2.3"}
    names = {"here": "127.0.1.1", "alpha": "10.1.2.3", "service": "10.9.9.9"}
    monkeypatch.setattr(beside, "_is_ours", lambda address: address in ours)
    monkeypatch.setattr(beside, "resolve", lambda _, master: names.get(master, master))
    monkeypatch.setattr(beside, "address_towards", lambda host, port: "10.1.2.4")
    assert beside.scheduler_address("10.1.2.3", 1) == "127.0.0.1"
    for master in ("10.1.2.3", "127.0.0.1"):
        assert beside.scheduler_address(master, 2) == master
    assert beside.scheduler_address("alpha", 2) == "10.1.2.3"
    # What leads nobody else there.
    for master in ("here", "service", ""):
        assert beside.scheduler_address(master, 2) == "10.1.2.4", master


def test_two_hosts_agree_on_a_job(started: list[dict[str, str]]) -> None:
    store = Store()
    environ = {"MASTER_ADDR": "127.0.0.1", "LOCAL_RANK": "0"}
    for rank in range(1, 4):
        store.set(f"mercury 0: worker {rank}", "1" if rank % 2 else "0")
    worker = beside.start_job(environ, beside.Meeting(store, 0, 4))
    other = beside.start_job(environ, beside.Meeting(store, 2, 4))
    beside.start_job({**environ, "LOCAL_RANK": "1"}, beside.Meeting(store, 3, 4))
    roles = [(env["DMLC_ROLE"], env.get("DMLC_TASK_ID")) for env in started]
    assert roles == [("scheduler", None), ("server", "0"), ("server", "1")]
    job = json.loads(store.get("mercury 0: worker 0's scheduler"))
    assert len(job["MERCURY_JOB_TOKEN"]) == 64
    assert (job["DMLC_NUM_WORKER"], job["DMLC_NUM_SERVER"]) == ("4", "2")
    for rank, env in ((0, worker), (2, other)):
        assert env == {**environ, **job, "DMLC_ROLE": "worker", "DMLC_TASK_ID": str(rank)}


def test_a_token_of_the_user_s_is_not_handed_out(started: list[dict[str, str]]) -> None:
    store = Store()
    environ = {"LOCAL_RANK": "0", "MERCURY_JOB_TOKEN": "mine"}
    worker = beside.start_job(environ, beside.Meeting(store, 0, 1))
    assert b"mine" not in b"".join(store.values.values())
    assert {env["MERCURY_JOB_TOKEN"] for env in (worker, *started)} == {"mine"}


def test_who_does_not_come_is_named() -> None:
    with pytest.raises(WaitTimeoutError, match="cannot begin without worker 1, worker 2:"):
        beside.start_job({"LOCAL_RANK": "0"}, beside.Meeting(Store(), 0, 3))


def test_without_a_launcher_the_ways_to_start_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = type(sys)("torch")
    torch.distributed = type(sys)("torch.distributed")
    torch.distributed.is_available = lambda: False
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.distributed", torch.distributed)
    with pytest.raises(SettingError, match="start it with torchrun.*or with mercury launch"):
        beside.meet({})


@pytest.mark.parametrize("role", ["scheduler", "server"])
def test_whose_worker_ends_before_the_job_begins_ends_too(role: str, tmp_path: Path) -> None:
    """It is ours, whatever is in the working directory, and what it says is seen."""
    another = tmp_path / "pslite_ext" / "__init__.py"
    another.parent.mkdir()
    another.write_text("raise ImportError('another')\n")
    environ = clean_environment(
        DMLC_PS_VAN_TYPE="mercury",
        DMLC_PS_ROOT_URI="127.0.0.1",
        DMLC_PS_ROOT_PORT=str(free_port()),
        DMLC_NUM_WORKER="1",
        DMLC_NUM_SERVER="1",
        MERCURY_JOB_TOKEN="" if role == "scheduler" else "t",
    )
    script = tmp_path / "scripts" / "script.py"
    script.parent.mkdir()
    script.write_text(
        "import os\nfrom pslite_ext.torch.started import Started\n"
        f"Started('it', {{**os.environ, 'DMLC_ROLE': '{role}'}})\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={**environ, "PYTHONPATH": str(ROOT)},
        timeout=120,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert ("scheduler" in done.stderr) == (role == "scheduler"), done.stderr


def test_what_ends_before_the_job_begins_is_told_to_all_ranks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    why = "server 0, which worker 0 started, ended with exit code 1 before the job had begun"

    class Ended:
        def end(self) -> str:
            return why

    store = Store()
    store.set("mercury 0: worker 1", "1")
    monkeypatch.setattr(beside, "_children", [])
    monkeypatch.setattr(beside, "_failure", None)
    beside.look()  # of another launcher's job
    monkeypatch.setattr(beside, "_start", lambda *_: None)
    beside.start_job({"LOCAL_RANK": "0"}, beside.Meeting(store, 0, 2))
    beside.look()
    monkeypatch.setattr(beside, "_children", [Ended()])
    with pytest.raises(PeerLostError, match=why):
        beside.look()
    monkeypatch.setattr(beside, "_children", [])
    with pytest.raises(PeerLostError, match=why):
        beside.look()


def test_a_rank_that_cannot_start_the_scheduler_tells_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(name: str, rank: int, environ: dict[str, str]) -> None:
        raise SettingError("MERCURY_LANES is 'many'")

    store = Store()
    for rank in range(2):
        store.set(f"mercury 0: worker {rank}", str(rank))
    monkeypatch.setattr(beside, "_start", fails)
    with pytest.raises(SettingError, match="'many'"):
        beside.start_job({"LOCAL_RANK": "0"}, beside.Meeting(store, 0, 2))
    with pytest.raises(PeerLostError, match="worker 0 could not start .*'many'"):
        beside.start_job({"LOCAL_RANK": "1"}, beside.Meeting(store, 1, 2))
