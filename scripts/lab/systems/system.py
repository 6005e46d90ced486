"""What is compared: a Python with what it needs, and the environment that chooses a transport."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec

from pslite_ext import _core
from scripts.lab.bed.namespaces import privilege_missing
from scripts.lab.systems.peers import PEERS, peer_python

WORKER = ("-m", "scripts.lab.systems.worker")
TORCH_WORKER = ("-m", "scripts.lab.systems.torch_worker")
TORCH_MERCURY = ("-m", "scripts.lab.systems.torch_mercury")
MPI_HOST = ("-m", "scripts.lab.systems.mpi_host")
# Of the bench `fabric`.
FABRIC, ASYNC, TREE, GLOO, MPI_RING = "fabric", "async", "tree", "ring gloo", "ring mpi"
SOCKETS = "sockets"  # of the bench `cpu`
RACERS = (FABRIC, ASYNC, TREE, GLOO, MPI_RING)


@dataclass(frozen=True)
class System:
    name: str
    python: str
    env: dict[str, str] = field(default_factory=dict)
    store: str = "dist_sync"
    program: tuple[str, ...] = WORKER  # what Python is given, before the config
    servers: bool = True  # False: its workers sum among themselves
    warmup: int = 0  # rounds at least before it is what it is meant to be
    own_hosts: bool = False  # it finds them by name, so they cannot all be one
    replica: bool = False  # its server has one
    # Who starts the workers: the lab each of them, one process a host, or one process all of them.
    starter: str = "each"

    @property
    def ours(self) -> bool:
        return self.env.get("DMLC_PS_VAN_TYPE") in ("zmq", "mercury")

    def variant(self, name: str, **env: str) -> System:
        return replace(self, name=f"{self.name} {name}", env={**self.env, **env})


# Our policies by the names that recorded results have.
MERCURY = "mercury-mercury"
POLICIES = {MERCURY if p == "priority" else f"mercury-{p}": p for p in _core.policies()}
BASIC = ("stock", "stock-p3", "zmq", *POLICIES)
TORCH = "torch"  # ours, under it
DDP = "torch-ddp"
NAMES = (*BASIC, "stock-device", TORCH, *PEERS, *RACERS, SOCKETS)
PROPHET_STEPS = 8  # iterations from which it learns when gradients appear: before what is measured


def system(name: str, stock_python: str | None) -> System:
    """By name, one of NAMES; for a stock one, the Python of an environment with that wheel.

    ValueError says why there is none.
    """
    if name.startswith("stock"):
        if not stock_python:
            raise ValueError(f"{name} needs the Python of an environment with the stock wheel")
        if name == "stock-device":
            return System(name, stock_python, store="dist_device_sync")
        if name == "stock":
            return System(name, stock_python)
        # Its own recommendation for the number of slices under way.
        env = {"DMLC_PS_VAN_TYPE": "p3", "DMLC_PS_WATER_MARK": "10"}
        return System(name, stock_python, env, "dist_sync_p3")
    if name == "zmq":
        return System(name, sys.executable, {"DMLC_PS_VAN_TYPE": "zmq"})
    if name in POLICIES:
        env = {"DMLC_PS_VAN_TYPE": "mercury", "MERCURY_POLICY": POLICIES[name]}
        if name != "mercury-prophet":
            return System(name, sys.executable, env)
        env["MERCURY_PROPHET_PROFILE_STEPS"] = str(PROPHET_STEPS)
        return System(name, sys.executable, env, warmup=PROPHET_STEPS + 2)
    if name == "horovod":
        python = peer_python(name)
        return System(name, python, store="horovod", servers=False, own_hosts=True)
    if name == TORCH:
        env = {"DMLC_PS_VAN_TYPE": "mercury"}
        return System(name, _torch_python(), env, program=TORCH_MERCURY)
    if name == DDP:
        return System(name, _torch_python(), program=TORCH_WORKER, servers=False)
    if name == "mpi":
        program = (*MPI_HOST, *WORKER)
        return System(name, peer_python(name), {}, "mpi", program, servers=False, own_hosts=True)
    if name in RACERS:
        return _racer(name)
    if name == SOCKETS:
        return System(name, sys.executable, program=("-m", "scripts.lab.systems.bare_sockets"))
    if name in PEERS:
        peer_python(name)
    raise ValueError(f"there is no system '{name}'; there are {', '.join(NAMES)}")


def _torch_python() -> str:
    """This one, if it has PyTorch: where there is a device, its owner has one that knows it."""
    return sys.executable if find_spec("torch") is not None else peer_python(DDP)


def _racer(name: str) -> System:
    module = "scripts.lab.systems"
    if name == FABRIC:
        return System(name, sys.executable, program=("-m", f"{module}.fabric_racer"))
    if name == ASYNC:
        return System(name, sys.executable, program=("-m", f"{module}.plain_async"))
    if name == TREE:
        return System(name, sys.executable, program=("-m", f"{module}.tree"), servers=False)
    if name == GLOO:
        program = ("-m", f"{module}.forked", f"{module}.gloo_ring")
        python = peer_python(DDP)
        return System(
            *(name, python), program=program, servers=False, own_hosts=True, starter="job"
        )
    env = {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_allreduce_algorithm": "4",  # the ring
        "OMPI_MCA_mpi_yield_when_idle": "1",  # there are more ranks than cores
    }
    hosted = (*MPI_HOST, "-m", f"{module}.mpi_ring")
    python = peer_python("mpi")
    return System(
        *(name, python, env), program=hosted, servers=False, own_hosts=True, starter="host"
    )


def available(
    names: Sequence[str], stock_python: str | None
) -> tuple[list[System], dict[str, str]]:
    """The systems that can be measured here, and why the others cannot."""
    systems, missing = [], {}
    for name in names:
        try:
            made = system(name, stock_python)
        except ValueError as error:
            missing[name] = str(error)
            continue
        if made.own_hosts and (reason := privilege_missing()) is not None:
            missing[name] = f"it needs hosts with names of their own, but {reason}"
        else:
            systems.append(made)
    return systems, missing
