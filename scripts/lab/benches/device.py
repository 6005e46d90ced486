"""PyTorch on devices: real models on the GPUs that are here, or else copies of an emulated one.

On GPUs, a GPT and ResNet-50 train on hosts with links of 10 and 25 Gbit/s, with ours and with DDP
at its best: buckets, connections and compression. What cannot be had for less is what the links
need, or the computation with nobody to wait for. All workers must have the same weights in the end.
Without a GPU, a model whose first and last tensors are a quarter each is copied in chunks, and
whole; DDP is spared the copies. In both cases, twelve ways to train are held against one process.
"""

from __future__ import annotations

import functools
import itertools
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from scripts.lab.benches import scaling
from scripts.lab.benches.case import Case, Figure, Figures, Setting
from scripts.lab.benches.pytorch import with_sizes
from scripts.lab.systems.job import JobFailed, Outcome
from scripts.lab.systems.system import System
from scripts.lab.workloads.job_config import Config

MODELS = ("gpt", "resnet50")
BYTES = {"gpt": 652_437_504, "resnet50": 102_228_128}
CELLS = ((2, 1), (4, 1), (2, 4), (4, 4))  # hosts, and workers of each
RATES = (10e9, 25e9)
CONNECTIONS = "4"
PACKAGE = "scripts.lab.device"
WORKER, MERCURY_WORKER, WEIGHTS, EMULATED = (
    ("-m", f"{PACKAGE}.{module}")
    for module in ("worker", "mercury_worker", "weights", "emulated_worker")
)
QUARTERS = Path(__file__).resolve().parent.parent / "device" / "quarters.json"
EMULATED_SETTING = Setting(2, 2, 1e9, beside=True)
EMULATED_COPIES = 1.2e9  # bytes a second each way: to a link of 1 Gbit/s what 12 GB/s are to 10
WHOLE = str(1 << 40)
LOOPBACK = Setting(2, 2, rate=None, loopback=True, beside=True)
START_S = 15.0  # until a worker has its device
_NAMES = "for i in range(torch.cuda.device_count()): print(torch.cuda.get_device_name(i))"


@functools.cache
def gpus(python: str) -> tuple[str, ...]:
    """The names of those that its PyTorch sees."""
    try:
        done = subprocess.run(
            [python, "-c", f"import torch\n{_NAMES}"], capture_output=True, text=True, timeout=120
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(done.stdout.splitlines()) if done.returncode == 0 else ()


def ways(systems: Sequence[System], quick: bool, gpu_each: bool) -> list[System]:
    """Ours with one lane and with four, and as bf16; DDP in all of its ways; a worker that waits
    for nobody. `gpu_each`: there is a GPU for each worker, without which NCCL does not start."""
    made = []
    for system in systems:
        if system.ours:
            own = replace(system, program=MERCURY_WORKER)
            four = own.variant("4 lanes", MERCURY_LANES="4")
            made += [own, four, four.variant("bf16", MERCURY_WIRE="bf16")]
            continue
        plain = replace(system, program=WORKER)
        many = plain.variant(f"{CONNECTIONS} connections", LAB_CONNECTIONS=CONNECTIONS)
        sizes = [many] if quick else with_sizes(many)
        made += [plain.variant("alone", LAB_ALONE="1"), *sizes]
        made += [size.variant("bf16", LAB_HOOK="bf16") for size in sizes]
        if not quick:
            made += [*with_sizes(plain), many.variant("fp16", LAB_HOOK="fp16")]
        if gpu_each:
            made.append(plain.variant("nccl", LAB_BACKEND="nccl"))
    return made


def _real(model: str, system: System, setting: Setting, rounds: int, names: Sequence[str]) -> Case:
    config = Config("train", {"count": 1, "bytes": BYTES[model]}, rounds=rounds, warmup=3)
    halved = {"LAB_HOOK", "MERCURY_WIRE"} & {*system.env}
    part = 0.5 if halved else 1.0  # of the bytes that float32 needs

    def measure(outcome: Outcome) -> Figures:
        took = outcome.seconds / rounds
        if "LAB_ALONE" in system.env:
            return {"time": Figure(took, "s")}
        if len({result["digest"] for result in outcome.results}) > 1:
            raise JobFailed(f"{system.name}: the workers' weights differ")
        links = setting.load() * part * outcome.results[0]["bytes"] / setting.bandwidth
        sent = max(sent for sent, _ in outcome.wire_bytes()) / rounds
        return {
            "time": Figure(took, "s"),
            "ratio to what links need": Figure(took / links, ""),
            "sent by a worker's host": Figure(sent / 1e6, "MB"),
            "processor time, worker": Figure(max(outcome.worker_cpu_s()) / rounds, "s"),
        }

    assert setting.rate is not None
    what = f"{model} on {len(names)} x {names[0]}"
    seconds = START_S + (rounds + 3) * (1.0 + setting.load() * BYTES[model] * 8 / setting.rate)
    return Case(
        *("device", what, system, setting, config, measure, seconds), env={"LAB_MODEL": model}
    )


def _weights(system: System, names: Sequence[str]) -> Case:
    config = Config("train", {"count": 1, "bytes": 4})

    def measure(outcome: Outcome) -> Figures:
        first, *others = [result["digests"] for result in outcome.results]
        if differ := [way for way in first if any(o[way] != first[way] for o in others)]:
            raise JobFailed(f"{system.name}: the workers' weights differ: {', '.join(differ)}")
        return {"right": Figure(float(len(first)), "of 12")}

    where = names[0] if names else "the processor"
    what = f"the weights of one process on the joint batch, on {where}"
    return Case("device", what, replace(system, program=WEIGHTS), LOOPBACK, config, measure, 30.0)


def _emulated(systems: Sequence[System], rounds: int) -> list[Case]:
    compared = []
    for system in systems:
        if not system.ours:
            compared += with_sizes(system)
            continue
        env = {**system.env, "LAB_COPIES": str(EMULATED_COPIES)}
        own = replace(system, program=EMULATED, env=env)
        compared += [own, own.variant("whole tensors", LAB_CHUNK=WHOLE)]
    config = Config("train", {"model": str(QUARTERS)}, rounds=rounds)
    what = "no GPU is here: 40 MB, a quarter each in the first and last tensor, emulated copies"
    cases = [scaling.case_of(what, s, EMULATED_SETTING, config) for s in compared]
    return [replace(case, bench="device") for case in cases]


def device(systems: Sequence[System], asked: scaling.Asked, length: str) -> list[Case]:
    """`asked.nodes`: hosts, and workers of each."""
    quick = length == "quick"
    if not systems:
        return []
    ours = [s for s in systems if s.ours]
    names = gpus(systems[0].python)
    right = [_weights(system, names) for system in ours]
    if not names:
        return right + _emulated(systems, 5 if quick else 15)
    cases = []
    rates = (asked.rate,) if asked.rate else RATES[:1] if quick else RATES
    for (n, per_host), rate in itertools.product(
        asked.nodes or (CELLS[:1] if quick else CELLS), rates
    ):
        setting = Setting(n * per_host, n, rate, beside=True, per_host=per_host)
        here = ways(systems, quick, len(names) >= setting.workers)
        for model in MODELS:
            cases += [_real(model, s, setting, 6 if quick else 20, names) for s in here]
    return right + cases
