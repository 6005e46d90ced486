"""Which cases a bench has: quick ones for every commit, the usual ones, and all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from scripts.lab.benches import (
    accuracy,
    adapt,
    captures,
    device,
    fabric,
    flood,
    hosts,
    jobs,
    joining,
    kinds,
    limits,
    local,
    mercury_paper,
    peers,
    prophet,
    pytorch,
    scaling,
    speed,
    sum_kernel,
    tuning,
    turns,
    wire,
)
from scripts.lab.benches.case import Case, Row, Setting
from scripts.lab.benches.limits import LOOPBACK
from scripts.lab.systems.peers import PEERS
from scripts.lab.systems.system import (
    ASYNC,
    BASIC,
    DDP,
    FABRIC,
    GLOO,
    MERCURY,
    MPI_RING,
    RACERS,
    SOCKETS,
    TORCH,
    TREE,
    System,
)

Systems = Sequence[System]
MAIN = ("stock", "stock-p3", "zmq", MERCURY)  # what users choose between


def _named(systems: Systems, names: Sequence[str]) -> list[System]:
    return [s for s in systems if s.name in names]


def _and_unchecked(systems: Systems) -> list[System]:
    """Ours once more without the check of payloads: what it costs."""
    ours = _named(systems, ("zmq", MERCURY))
    return [*systems, *(s.variant("unchecked", MERCURY_CHECKSUM="0") for s in ours)]


def _iteration(systems: Systems, length: str) -> list[Case]:
    if length == "quick":
        chosen = _named(systems, (*MAIN, "mercury-fifo", "mercury-wfbp"))
        return speed.iteration(chosen, ["vgg16"], ["network-bound"], rounds=3)
    systems = _and_unchecked(systems)
    if length == "usual":
        return speed.iteration(systems, ["vgg16", "resnet50"], ["network-bound"], rounds=6)
    models = ["vgg16", "resnet50", "bert_base", "alexnet", "inception_v3"]
    return speed.iteration(systems, models, list(speed.RATIOS), rounds=10)


def _communication(systems: Systems, length: str) -> list[Case]:
    if length == "quick":
        return speed.communication(_named(systems, MAIN), ["vgg16"], rounds=3)
    chosen = systems if length == "full" else _named(systems, MAIN)
    return speed.communication(chosen, ["vgg16", "resnet50"], rounds=5)


def _kinds(systems: Systems, length: str) -> list[Case]:
    chosen = _named(systems, ("zmq", MERCURY))
    if length == "quick":
        return kinds.kinds(chosen, rounds=3, share=0.25)
    return kinds.kinds(chosen, rounds=6)


def _goodput(systems: Systems, length: str) -> list[Case]:
    if length == "quick":
        return flood.goodput(_named(systems, ("zmq", MERCURY)), seconds=3)
    settings = [Setting(), Setting(rate=100e6), Setting(rate=250e6), Setting(4, 4, 500e6)]
    cases = flood.goodput(_named(systems, MAIN), 8, settings)
    for mercury in _named(systems, (MERCURY,)):
        cases += flood.packet_sizes(mercury, 8)
    return cases


def _urgent(systems: Systems, length: str) -> list[Case]:
    if length == "quick":
        return flood.urgent(_named(systems, (MERCURY,)), pushes=30)
    chosen = systems if length == "full" else _named(systems, MAIN)
    return flood.urgent(chosen, pushes=60)


def _cpu(systems: Systems, length: str) -> list[Case]:
    names = ("stock", MERCURY) if length == "quick" else MAIN
    chosen = [*_and_unchecked(_named(systems, names)), *_named(systems, (SOCKETS,))]
    return flood.goodput(chosen, 3 if length == "quick" else 8, bench="cpu")


def _loopback(systems: Systems, length: str) -> list[Case]:
    names = ("stock", MERCURY) if length == "quick" else MAIN
    seconds = 3 if length == "quick" else 8
    return flood.goodput(_named(systems, names), seconds, [LOOPBACK], bench="loopback")


def _idle(systems: Systems, length: str) -> list[Case]:
    return [] if length == "quick" else limits.idle(_named(systems, MAIN))


def _soak(systems: Systems, length: str) -> list[Case]:
    if length == "quick":
        return []
    chosen = _named(systems, ("zmq", MERCURY) if length == "usual" else MAIN)
    return [
        *limits.soak(chosen),
        *limits.many_tensors(chosen),
        *limits.many_processes(chosen),
        *limits.huge_tensor(chosen),
    ]


def _adapt(systems: Systems, length: str) -> list[Case]:
    chosen = systems if length == "full" else _named(systems, MAIN)
    return adapt.adapt(chosen, 8 if length == "quick" else 20)


def _peers(systems: Systems, length: str) -> list[Case]:
    if length == "quick":
        chosen = _named(systems, ("stock", "stock-p3", MERCURY, *PEERS))
        return peers.peers(chosen, ["vgg16"], [1.0], rounds=3)
    return peers.peers(systems, rounds=20 if length == "full" else 6)


def _jobs(systems: Systems, length: str) -> list[Case]:
    chosen = _named(systems, jobs.SYSTEMS)
    if length == "quick":
        return jobs.jobs(_named(chosen, ("stock", MERCURY)), jobs.MODELS[:2], 3)
    return jobs.jobs(chosen)


def _scaling(systems: Systems, length: str, asked: scaling.Asked) -> list[Case]:
    rivals = _named(systems, (MERCURY, "stock", "stock-p3", "mpi", DDP))
    if length == "quick":
        return scaling.scaling(rivals, asked, rounds=2, quick=True)
    cases = scaling.scaling(rivals, asked, rounds=10 if length == "full" else 3)
    if asked == scaling.Asked():
        cases += scaling.slow_hosts(rivals, rounds=3)
    return cases + scaling.streams(_named(systems, (MERCURY,)), asked)


def _torch(systems: Systems, length: str, asked: scaling.Asked) -> list[Case]:
    chosen = _named(systems, (TORCH, DDP))
    return pytorch.pytorch(chosen, asked, {"quick": 3, "usual": 3, "full": 10}[length], length)


def _hosts(systems: Systems, length: str, asked: scaling.Asked) -> list[Case]:
    chosen = _named(systems, (MERCURY, TORCH, DDP))
    return hosts.hosts(chosen, asked, rounds=2 if length == "quick" else 4, length=length)


def _wire(systems: Systems, length: str, asked: scaling.Asked) -> list[Case]:
    chosen = _named(systems, (MERCURY, TORCH, DDP))
    return wire.wire(chosen, asked, rounds=3 if length == "quick" else 5, length=length)


def _turns(systems: Systems, length: str) -> list[Case]:
    counts = {"quick": 2, "usual": 12, "full": 24}
    return turns.turns(_named(systems, (TORCH,)), counts[length])


def _fabric(systems: Systems, length: str) -> list[Case]:
    racers = _named(systems, (GLOO, TREE, ASYNC))
    between = []
    for ours in _named(systems, (FABRIC,)):
        racers += [fabric.bounded(ours, versions) for versions in (30, 60)]
        racers.append(fabric.synchronous(ours))
        between.append(fabric.bounded(ours, 45))
    cases = fabric.cells(racers, between)
    cases += [fabric.race(system, "C1", "N1", fabric.FULL) for system in racers]
    cases += fabric.computing(racers)
    cases += fabric.sampling(racers)
    cases += [fabric.race(system, "C1", "N1") for system in _named(systems, (MPI_RING,))]
    for ours in _named(systems, (FABRIC,)):
        cases += fabric.forwarding(ours) + fabric.ablations(ours) + fabric.replication(ours)
        cases += fabric.serving(ours)
    return cases


_CASES: dict[str, Callable[[Systems, str], list[Case]]] = {
    "iteration": _iteration,
    "communication": _communication,
    "kinds": _kinds,
    "goodput": _goodput,
    "urgent": _urgent,
    "cpu": _cpu,
    "loopback": _loopback,
    "idle": _idle,
    "adapt": _adapt,
    "peers": _peers,
    "prophet": prophet.prophet,
    "jobs": _jobs,
    "soak": _soak,
    "mercury_paper": mercury_paper.mercury_paper,
}
# Benches that are programs of their own: of which systems, how long, how often.
PROGRAMS: dict[str, Callable[[Systems, str, int], Iterable[Row]]] = {
    "sum_kernel": lambda _systems, _length, repeats: sum_kernel.run(repeats),
    "joining": lambda systems, _length, repeats: joining.run([s.name for s in systems], repeats),
    "tuning": lambda systems, length, _repeats: tuning.run(systems, length),
    "captures": captures.captures,
}
# Long, and of systems beyond the basic ones.
_BEYOND = ("scaling", "torch", "hosts", "wire", "accuracy", "local", "device", "turns", "fabric")
BENCHES = [*_CASES, *_BEYOND, *PROGRAMS]
# Only if asked for by name, or with --full.
LONG = (
    "kinds",
    *_BEYOND,
    "joining",
    "captures",
    "adapt",
    "peers",
    "prophet",
    "jobs",
    "tuning",
    "soak",
    "mercury_paper",
)
# What the command line may choose, of which benches.
CHOICES = {
    "nodes": ("scaling", "torch", "hosts", "wire", "device"),
    "rate": ("scaling", "torch", "hosts", "wire", "device"),
    "scale": ("scaling", "torch", "hosts", "wire"),
    "models": ("scaling", "torch", "hosts", "wire"),
    "colocate": ("scaling", "torch", "hosts", "wire"),
    "slow": ("scaling",),
}
# Not repeated: long, or looking for growth, not for speed.
ONCE = ("peers", "soak", "idle", "fabric", "accuracy", "local")


def cases_of(
    benches: Sequence[str],
    systems: Systems,
    length: str,
    asked: scaling.Asked = scaling.Asked(),  # noqa: B008  # frozen
) -> list[Case]:
    """Systems beyond the basic ones are measured where all are compared: `peers`, `scaling`; and
    those that need PyTorch by `torch` and `turns`.
    """
    basic = _named(systems, BASIC)
    among = {
        "peers": [s for s in systems if s.name not in (TORCH, SOCKETS, *RACERS)],
        "cpu": [*basic, *_named(systems, (SOCKETS,))],
    }
    cases: list[Case] = []
    for name in benches:
        if name in _CASES:
            cases += _CASES[name](among.get(name, basic), length)
        elif name == "scaling":
            cases += _scaling(systems, length, asked)
        elif name == "torch":
            cases += _torch(systems, length, asked)
        elif name == "hosts":
            cases += _hosts(systems, length, asked)
        elif name == "wire":
            cases += _wire(systems, length, asked)
        elif name == "accuracy":
            cases += accuracy.accuracy(_named(systems, (TORCH, DDP)), length)
        elif name == "local":
            cases += local.local(_named(systems, (TORCH, DDP)), length)
        elif name == "device":
            cases += device.device(_named(systems, (TORCH, DDP)), asked, length)
        elif name == "turns":
            cases += _turns(systems, length)
        elif name == "fabric":
            cases += _fabric(systems, length)
    return cases


def wanted(system: str, benches: Sequence[str]) -> bool:
    """Whether one of the benches would measure the system, were it here."""
    of_torch = {"torch", "hosts", "wire", "accuracy", "local", "device"}
    if system in (TORCH, DDP) and of_torch & {*benches}:
        return True
    if system in RACERS:
        return "fabric" in benches
    if system == SOCKETS:
        return "cpu" in benches
    if system == TORCH:
        return "turns" in benches
    return "peers" in benches or "scaling" in benches or system in BASIC
