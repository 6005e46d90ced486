"""Peers: run where they are installed, skipped with their reason where they are not."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scripts.lab.bed.bed import Bed, LoopbackBed
from scripts.lab.bed.namespaces import LabError
from scripts.lab.benches.case import Setting
from scripts.lab.benches.catalogue import cases_of, wanted
from scripts.lab.benches.peers import peers_floor_s
from scripts.lab.systems import install_peers
from scripts.lab.systems.install_peers import SETUPS, gpu_packages, set_up
from scripts.lab.systems.job import MeasuredJob, host_names, run_job
from scripts.lab.systems.peers import PEERS, READY, REASON, TOOLS, PeerMissing, peer_python
from scripts.lab.systems.rendezvous import await_port
from scripts.lab.systems.system import TORCH, WORKER, System, available, system
from scripts.lab.workloads import gradient_values
from scripts.lab.workloads.job_config import Config

INSTALLABLE = [name for name, peer in PEERS.items() if not peer.never]


@pytest.mark.parametrize("name", INSTALLABLE)
def test_it_trains_and_its_sums_are_right(name: str, make_bed: Callable[..., Bed]) -> None:
    try:
        peer = system(name, None)
    except PeerMissing as missing:
        pytest.skip(f"{name}: {missing}")
    bed = make_bed(host_names(2, 1), 500e6)
    tensors = {"model": "lenet5", "compute_s": 0.02}
    outcome = run_job(bed, peer, Config("train", tensors, rounds=3), timeout_s=100)
    for result in outcome.results:
        assert len(result["times_s"]) == 3
        assert min(result["times_s"]) > 0
    assert outcome.startup_s > 0
    assert outcome.peak_kb("worker") > 50_000
    assert bed.counters("server0").received < 10_000  # it needs no servers
    # Of the whole job: at its `end`, what a worker sent last may still wait for its link.
    sent = min(bed.counters(f"worker{rank}").sent for rank in range(2))
    assert sent > (1 + 3) * outcome.results[0]["bytes"]  # a ring of two sends each byte once


@pytest.mark.parametrize("env", [{}, {"LAB_TRANSFORMER": "1"}], ids=["emulated", "real"])
def test_ours_trains_under_torch(make_bed: Callable[..., Bed], env: dict[str, str]) -> None:
    try:
        ours = system(TORCH, None)
    except PeerMissing as missing:
        pytest.skip(f"torch: {missing}")
    at = Setting(2, 2, beside=True).places()
    bed = make_bed(host_names(2, 2, beside=True), 500e6)
    config = Config("train", {"model": "lenet5", "compute_s": 0.02}, rounds=3)
    outcome = run_job(bed, ours, config, timeout_s=100, env=env, at=at)
    assert [len(result["times_s"]) for result in outcome.results] == [3, 3]
    assert len(outcome.cpu_s("server")) == 2
    assert len({result.get("digest") for result in outcome.results}) == 1  # a real one has one


def test_a_missing_peer_says_why(tmp_path: Path) -> None:
    with pytest.raises(PeerMissing, match="make bench-install-peers"):
        peer_python("mpi", tmp_path)
    folder = tmp_path / PEERS["mpi"].environment
    folder.mkdir()
    (folder / REASON).write_text("no wheel\n")
    with pytest.raises(PeerMissing, match="^no wheel$"):
        peer_python("mpi", tmp_path)
    (folder / READY).touch()
    assert peer_python("mpi", tmp_path) == str(folder / "bin" / "python")
    with pytest.raises(PeerMissing, match="stand-ins"):
        peer_python("byteps", tmp_path)


def test_what_cannot_be_measured_is_left_out_with_its_reason() -> None:
    systems, missing = available(["stock", "zmq", "byteps"], None)
    assert [s.name for s in systems] == ["zmq"]
    assert list(missing) == ["stock", "byteps"]
    assert "stock wheel" in missing["stock"]
    assert wanted("byteps", ["peers"])
    assert wanted("stock", ["goodput"])
    assert not wanted("byteps", ["goodput"])


def test_without_privilege_peers_that_need_hosts_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scripts.lab.systems.system.peer_python", lambda name: "/python")
    monkeypatch.setattr("scripts.lab.systems.system.privilege_missing", lambda: "only root may")
    systems, missing = available(INSTALLABLE, None)
    assert [s.name for s in systems] == ["torch-ddp"]
    assert "only root may" in missing["mpi"]


def test_peers_run_in_their_bench_alone() -> None:
    systems = [system("zmq", None), System("mpi", "/python", servers=False)]
    names = {c.system.name for c in cases_of(["iteration"], systems, "full")}
    assert names == {"zmq", "zmq unchecked"}
    cases = cases_of(["peers"], systems, "usual")
    assert {c.system.name for c in cases} == {"zmq", "mpi"}
    assert len({c.what for c in cases}) == 6  # three models in two worlds


def test_every_peer_has_its_setup() -> None:
    assert list(SETUPS) == [*INSTALLABLE, *TOOLS]
    setups = SETUPS.values()
    files = [arguments[0] for s in setups for arguments in (*s.requirements, *s.extras)]
    assert {path.name for path in install_peers.PINNED.iterdir()} == set(files)
    for file in files:
        lines = (install_peers.PINNED / file).read_text().splitlines()
        named = [line for line in lines if line[:1].isalpha()]
        assert named
        assert all("==" in line for line in named), f"{file} is not pinned"


def test_builds_for_gpus_are_found_in_what_pip_would_install() -> None:
    report = {"install": [{"metadata": {"name": n}} for n in ("torch", "nvidia-nccl-cu13")]}
    assert gpu_packages(report) == ["nvidia-nccl-cu13"]


def test_a_setup_that_fails_leaves_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(*_: object) -> None:
        install_peers._run("probe", [sys.executable, "-c", "raise ImportError('no library')"], {})

    monkeypatch.setattr(install_peers, "make", make)
    assert set_up("mpi", tmp_path, gpu_builds=False, jobs=1).startswith("skipped: probe: ")
    with pytest.raises(PeerMissing, match="could not be installed: probe: ImportError: no library"):
        peer_python("mpi", tmp_path)
    monkeypatch.setattr(install_peers, "make", lambda *_: None)
    assert set_up("mpi", tmp_path, gpu_builds=False, jobs=1) == "ready"
    assert peer_python("mpi", tmp_path).startswith(str(tmp_path))
    # What only some tests need may be missing; here, there is no Python to install it with.
    (tmp_path / PEERS["torch-ddp"].environment).mkdir()
    python = tmp_path / PEERS["torch-ddp"].environment / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to("/bin/false")
    said = set_up("torch-ddp", tmp_path, gpu_builds=False, jobs=1)
    assert said.startswith("ready; torch_recipes.txt: skipped: "), said
    assert set_up("byteps", tmp_path, gpu_builds=False, jobs=1).startswith("skipped: ")


def test_a_ring_s_floor_grows_with_its_workers() -> None:
    config = Config("train", {"model": "lenet5", "compute_s": 0.001})

    def floor(workers: int, servers: bool, slower: float = 1.0) -> float:
        return peers_floor_s(config, Setting(workers, workers, 1e8), slower, servers)

    assert floor(2, servers=False) == floor(2, servers=True)
    assert floor(4, servers=True) == floor(2, servers=True)
    assert floor(4, servers=False) > 1.4 * floor(4, servers=True)
    assert floor(2, servers=True, slower=0.5) > 1.9 * floor(2, servers=True)


def test_samples_differ_and_add_up() -> None:
    assert gradient_values.positions(1) == [0]
    assert gradient_values.positions(10) == [0, 3, 9]
    for workers in (1, 2, 5):
        pushed = [gradient_values.pushed(3, 4, 1, rank) for rank in range(workers)]
        assert len(set(pushed)) == workers
        assert sum(pushed) == gradient_values.due(3, 4, 1, workers)
    assert gradient_values.due(3, 4, 1, 2) != gradient_values.due(3, 5, 1, 2)


def test_without_names_of_their_own_hosts_are_refused() -> None:
    lonely = System("mpi", sys.executable, servers=False, own_hosts=True)
    with LoopbackBed(host_names(1, 1)) as bed, pytest.raises(LabError, match="mpi needs hosts"):
        MeasuredJob(bed, lonely, Config("train", {}))


def test_a_host_takes_the_command_that_mpirun_sends_it() -> None:
    from scripts.lab.systems import mpi_host

    address, taken = "127.0.0.1", []
    host = threading.Thread(target=lambda: taken.append(mpi_host._await_command(address)))
    host.start()
    await_port(address, mpi_host.PORT)  # a look is no command
    assert mpi_host.main(["--at", address, "echo", "'a b'"]) == 0
    host.join(timeout=60)
    assert taken == ["echo 'a b'"]
    command = mpi_host.mpirun([*WORKER, "{}"], ["10.0.0.1", "10.0.0.2"], "eth0")
    assert command[command.index("--host") + 1] == "10.0.0.1:1,10.0.0.2:1"
    command = mpi_host.mpirun([*WORKER], ["10.0.0.1", "10.0.0.1"], "eth0")
    assert command[command.index("--host") + 1] == "10.0.0.1:2"
    assert "ppr:2:node:oversubscribe" in command
    command = mpi_host.mpirun([*WORKER, "{}"], ["10.0.0.1", "10.0.0.2"], "eth0")
    assert command[-4:] == [sys.executable, *WORKER, "{}"]


class FakeMpi:
    """One rank, whose operations end when they are asked."""

    IN_PLACE = None
    rank, size = 0, 1

    def __init__(self) -> None:
        self.COMM_WORLD = self.Request = self
        self.begun: list[int] = []

    def Iallreduce(self, _in_place: None, memory: Any) -> int:
        self.begun.append(memory.size)
        memory += 1
        return len(self.begun)

    def Bcast(self, _memory: Any) -> None:
        """There is nobody else."""

    def Testsome(self, requests: list[int]) -> list[int]:
        return [0]


def test_mpi_s_operations_begin_in_the_order_in_which_they_were_asked_for() -> None:
    mx = pytest.importorskip("mxnet")
    from scripts.lab.systems.mpi_store import MpiStore
    from scripts.lab.workloads.emulated_gpu import EmulatedGpu
    from scripts.lab.workloads.engine import Engine

    mpi = FakeMpi()
    store = MpiStore(mpi)
    arrays = [mx.nd.zeros((n,)) for n in (1, 2, 3)]
    for key, array in enumerate(arrays):
        store.init(key, array)
    gpu = EmulatedGpu(Engine())
    gpu.compute(0.05, writes=[arrays[0]])  # the first is ready last
    for key, array in enumerate(arrays):
        store.pushpull(key, array, out=array, priority=0)
    for array in arrays:
        assert array.asnumpy().tolist() == [1.0] * array.size
    gpu.close()
    assert mpi.begun == [1, 2, 3]
