"""Another job on the hosts of the one that is measured."""

from __future__ import annotations

import time

from scripts.lab.bed.bed import LoopbackBed
from scripts.lab.bed.disturbance import Disturbance, Milestones
from scripts.lab.bed.namespaces import LabError
from scripts.lab.systems.job import PORT, MeasuredJob
from scripts.lab.systems.system import System
from scripts.lab.workloads.job_config import Config

_LOOK_S = 0.2
_START_S = 120.0  # for the job to begin
_ENDLESS = 1_000_000  # rounds


def neighbour(system: System, config: Config) -> Disturbance:
    """Another job like it on the same hosts, from before the measured one until it is over."""
    endless = Config(**{**vars(config), "rounds": _ENDLESS, "sample_s": 0.0})

    def disturbance(bed: LoopbackBed, milestones: Milestones) -> None:
        job = MeasuredJob(bed, system, endless, env={"DMLC_PS_ROOT_PORT": str(PORT + 1)})
        deadline = time.monotonic() + _START_S
        try:
            while not milestones.over.wait(_LOOK_S):
                job.check_alive()
                if job.has_said("begin"):
                    milestones.ready.set()
                elif time.monotonic() > deadline:
                    raise LabError(f"the neighbour has not begun in {_START_S:g} s")
        finally:
            job.end()

    return disturbance
