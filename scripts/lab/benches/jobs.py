"""Jobs of different models on the same hosts: each one's iterations, alone and beside the others.

All of a system's jobs start at once. Then they train by turns, each while the others have nothing
to do, and then in ever larger companies.
"""

from __future__ import annotations

from collections.abc import Sequence

from scripts.lab.bed.bed import LoopbackBed
from scripts.lab.benches.case import START_S, USUAL, Case, Figure, Figures, Setting
from scripts.lab.systems.shared_hosts import SETTLED, shared_hosts
from scripts.lab.systems.system import System
from scripts.lab.workloads.job_config import Config, workload_of
from scripts.lab.workloads.workload import load

SYSTEMS = ("stock", "stock-p3", "mercury-fifo", "mercury-wfbp", "mercury-mercury")
MODELS = ("vgg16", "resnet50", "bert_base")
COMPANIES = (2, 3)  # so many of MODELS train at a time
# Of all models' sizes, so that one is as much larger than another as it really is. Computation and
# a link of LINK are to each other as published, beside one of PUBLISHED_AT.
SCALE = 0.05
PUBLISHED_AT = 10e9
LINK = 1e9
ITERATIONS = 6  # at least, of each
ALONE_S = 2.0  # each trains alone, at least


def _config(model: str, setting: Setting) -> Config:
    compute_s = round(load(model).compute_s * SCALE * PUBLISHED_AT / LINK, 3)
    return Config("train", {"model": model, "scale": SCALE, "compute_s": compute_s})


def jobs(
    systems: Sequence[System],
    models: Sequence[str] = MODELS,
    iterations: int = ITERATIONS,
    setting: Setting = USUAL,
) -> list[Case]:
    configs = {model: _config(model, setting) for model in models}
    counts = {
        m: max(iterations, round(ALONE_S / c.tensors["compute_s"])) for m, c in configs.items()
    }
    names = {m: f"{m} x {config.tensors['scale']:g}" for m, config in configs.items()}
    companies = [models[:size] for size in COMPANIES if size <= len(models)]
    link_s = [setting.link_s(workload_of(c.tensors).bytes) for c in configs.values()]
    rounds = (SETTLED + iterations) * (len(models) + sum(map(len, companies)))
    seconds = (len(models) - 1) * START_S + 1.7 * rounds * max(link_s)

    def case(system: System) -> Case:
        def run(bed: LoopbackBed) -> dict[str, Figures]:
            found: dict[str, Figures] = {}
            with shared_hosts(bed, system, configs) as hosts:
                alone = {model: hosts.alone(model, count) for model, count in counts.items()}
                for company in companies:
                    together = hosts.together(company, iterations)
                    for model, took in together.times_s.items():
                        others = " and ".join(names[m] for m in company if m != model)
                        found[f"{names[model]} beside {others}"] = {
                            "time": Figure(took, "s"),
                            "alone": Figure(alone[model], "s"),
                            "time / alone": Figure(took / alone[model], ""),
                            "processors": Figure(100 * together.processors, "%"),
                        }
            return found

        what = f"{', '.join(names.values())} on the same hosts"
        config = configs[models[0]]
        return Case("jobs", what, system, setting, config, lambda _: {}, seconds, run=run)

    return [case(system) for system in systems]
