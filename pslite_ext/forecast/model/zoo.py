"""Well-known models as jobs: their tensors by architecture, their times by a profile."""

from __future__ import annotations

import json
from pathlib import Path

from pslite_ext.forecast.model.architectures import ARCHITECTURES, Parameter
from pslite_ext.forecast.model.job import Job, Layer, ModelError

PROFILES = Path(__file__).resolve().parent / "profiles"
ELEMENT_BYTES = 4  # float32


def timed_parameters(
    name: str, profile: Path | None = None
) -> list[tuple[Parameter, float, float]]:
    """The tensors of `name`, each with its seconds of forward and of backward computation.

    A profile is a JSON object with `iteration_s`, the seconds of one iteration's computation, and
    `forward_share` of them. They are shared out by floating-point operations, unless `tensors`
    maps each tensor's name to its [forward_s, backward_s].
    """
    if name not in ARCHITECTURES:
        raise ModelError(f"there is no model '{name}'; there are {', '.join(ARCHITECTURES)}")
    parameters = ARCHITECTURES[name]()
    path = profile or PROFILES / f"{name}.json"
    try:
        times = json.loads(path.read_text())
        measured = times.get("tensors")
        if measured is not None:
            timed = [
                (p, float(measured[p.name][0]), float(measured[p.name][1])) for p in parameters
            ]
        else:
            forward = times["iteration_s"] * times["forward_share"]
            backward = times["iteration_s"] - forward
            total = sum(p.flops for p in parameters)
            timed = [(p, forward * p.flops / total, backward * p.flops / total) for p in parameters]
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise ModelError(f"{path}: not a profile of {name}: {error!r}") from error
    if any(forward_s < 0 or backward_s < 0 for _, forward_s, backward_s in timed):
        raise ModelError(f"{path}: a time is negative")
    return timed


def known_job(name: str) -> Job:
    return Job(
        tuple(
            Layer(p.name, float(p.elements * ELEMENT_BYTES), bp_s=backward_s, fp_s=forward_s)
            for p, forward_s, backward_s in timed_parameters(name)
        )
    )
