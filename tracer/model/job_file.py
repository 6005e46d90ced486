"""Jobs from files: JSON with a list of layers, from the input to the output."""

from __future__ import annotations

import json
from pathlib import Path

from tracer.model.architectures import ARCHITECTURES
from tracer.model.job import Job, Layer, ModelError
from tracer.model.zoo import known_job

FIELDS = {"name", "bytes", "bp_s", "fp_s", "upd_s"}


def find_job(what: str, compute_s: float | None = None, steps: int | None = None) -> Job:
    """A model's name, or a job's file; its computation scaled, its gradients grouped."""
    if what in ARCHITECTURES:
        job = known_job(what)
    elif Path(what).exists():
        job = read_job(Path(what))
    else:
        raise ModelError(
            f"'{what}' is neither a file nor a model; models are {', '.join(ARCHITECTURES)}"
        )
    if compute_s is not None:
        job = scaled(job, compute_s)
    return job if steps is None else job.in_steps(steps)


def read_job(path: Path) -> Job:
    """{"layers": [{"name": ..., "bytes": ..., "bp_s": ..., "fp_s": ..., "upd_s": ...}, ...]}"""
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ModelError(f"{path}: is not JSON: {error}") from error
    layers = given.get("layers") if isinstance(given, dict) else None
    if not isinstance(layers, list):
        raise ModelError(f'{path}: is not a job: it has no list "layers"')
    return Job(tuple(_layer(path, number, entry) for number, entry in enumerate(layers, 1)))


def _layer(path: Path, number: int, entry: object) -> Layer:
    where = f"{path}: layer {number}"
    if not isinstance(entry, dict):
        raise ModelError(f"{where}: is not an object with {', '.join(sorted(FIELDS))}")
    for name in ("bytes", "bp_s", "fp_s"):
        if name not in entry:
            raise ModelError(f"{where}: has no '{name}'")
    unknown = sorted({*entry} - FIELDS)
    if unknown:
        raise ModelError(f"{where}: has an unknown '{unknown[0]}'")
    try:
        return Layer(**{"name": f"layer{number}", **entry})
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from error


def scaled(job: Job, compute_s: float) -> Job:
    """The same shares of another total of computation."""
    if job.compute_s <= 0:
        raise ModelError("a job without computation cannot be scaled to another time")
    by = compute_s / job.compute_s
    return Job(
        tuple(
            Layer(layer.name, layer.bytes, layer.bp_s * by, layer.fp_s * by, layer.upd_s * by)
            for layer in job.layers
        )
    )
