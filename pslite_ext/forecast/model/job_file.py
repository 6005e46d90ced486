"""Jobs from files: JSON with a list of layers, from the input to the output."""

from __future__ import annotations

import json
import os
from pathlib import Path

from pslite_ext.forecast.model.architectures import ARCHITECTURES
from pslite_ext.forecast.model.job import Job, Layer, ModelError
from pslite_ext.forecast.model.zoo import known_job

PROFILE_HEADING = "# Prophet profile"
FIELDS = {"name", "bytes", "bp_s", "fp_s", "upd_s"}


def find_job(what: str, compute_s: float | None = None, steps: int | None = None) -> Job:
    """A model's name, or a job's file; its computation scaled, its gradients grouped."""
    if what in ARCHITECTURES:
        job = known_job(what)
    elif os.path.exists(what):
        job = read_job(Path(what))
    else:
        raise ModelError(
            f"'{what}' is neither a file nor a model; models are {', '.join(ARCHITECTURES)}"
        )
    if compute_s is not None:
        job = scaled(job, compute_s)
    return job if steps is None else job.in_steps(steps)


def read_job(path: Path) -> Job:
    """{"layers": [{"name": ..., "bytes": ..., "bp_s": ..., "fp_s": ..., "upd_s": ...}, ...]}

    Or the Prophet profile of an earlier run (docs/prophet.md).
    """
    try:
        text = path.read_text(encoding="utf-8")
        if text.startswith(PROFILE_HEADING):
            return _of_profile(path, text)
        given = json.loads(text)
    except ModelError:
        raise
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ModelError(f"{path}: is not JSON: {error}") from error
    except RecursionError:
        raise ModelError(f"{path}: is nested too deep to be a job") from None
    layers = given.get("layers") if isinstance(given, dict) else None
    if not isinstance(layers, list):
        raise ModelError(f'{path}: is not a job: it has no list "layers"')
    return Job(tuple(_layer(path, number, entry) for number, entry in enumerate(layers, 1)))


def _of_profile(path: Path, text: str) -> Job:
    """Production times as backward times; the forward pass shared out as the backward pass is.

    Evenly, where all gradients appeared at once.
    """
    heading, *lines = text.splitlines()
    made: list[tuple[str, float, float]] = []  # name, bytes, seconds
    try:
        forward_s = float(heading.split()[-2]) / 1e6
        for line in lines:
            if not line.startswith("#"):
                _, size, _, produced_us, name = line.split(maxsplit=4)
                made.append((name, float(size), float(produced_us) / 1e6))
    except (ValueError, IndexError):
        raise ModelError(f"{path}: is not a whole Prophet profile") from None
    if not made:
        raise ModelError(f"{path}: holds no gradient")
    # The model's backward pass goes from the last layer to the first.
    backward: list[float] = []
    end_s = 0.0
    for _, _, produced_s in reversed(made):
        backward.append(max(produced_s - end_s, 0.0))
        end_s = max(end_s, produced_s)
    shares = [bp_s / end_s if end_s > 0 else 1 / len(made) for bp_s in backward]
    return Job(
        tuple(
            Layer(name, size, bp_s, forward_s * share)
            for (name, size, _), bp_s, share in zip(made, reversed(backward), reversed(shares))
        )
    )


def _layer(path: Path, number: int, entry: object) -> Layer:
    where = f"{path}: layer {number}"
    if not isinstance(entry, dict):
        raise ModelError(f"{where}: is not an object with {', '.join(sorted(FIELDS))}")
    for field in ("bytes", "bp_s", "fp_s"):
        if field not in entry:
            raise ModelError(f"{where}: has no '{field}'")
    unknown = sorted({*entry} - FIELDS)
    if unknown:
        raise ModelError(f"{where}: has an unknown '{unknown[0]}'")
    name = entry.get("name", f"layer{number}")
    if not isinstance(name, str) or not name.isprintable():
        raise ModelError(f"{where}: 'name' must be printable text, not {name!r}")
    try:
        return Layer(**{**entry, "name": name})
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
