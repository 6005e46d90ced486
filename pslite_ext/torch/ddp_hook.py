"""A communication hook for DistributedDataParallel: its buckets, averaged over our transport, and
sent as MERCURY_WIRE says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.torch.collectives import collectives
from pslite_ext.wire_words import AUTO, coded_as


def hook(_state: Any, bucket: Any) -> Any:
    buffer = bucket.buffer()
    all_of_us = collectives()
    buffer.div_(all_of_us.workers)
    # Later buckets hold what a forward uses first.
    what, priority = f"DDP bucket {bucket.index()}", bucket.index()
    word = _core.wire()
    if word == AUTO:
        raise InvalidArgumentError(
            "MERCURY_WIRE is 'auto', which is for mercury.wrap: name a codec"
        )
    parts = _by_word(word, bucket.gradients()) if buffer.dtype == torch.float32 else {}
    if len(parts) < 2:
        words = [next(iter(parts), word)]
        return all_of_us.sum(what, [buffer], priority=priority, words=words).result(buffer)
    # Of a bucket that holds both, what travels alike goes together.
    flats = [torch.cat([part.reshape(-1) for part in alike]) for alike in parts.values()]

    def finish() -> None:
        for flat, alike in zip(flats, parts.values()):
            for part, summed in zip(alike, flat.split([part.numel() for part in alike])):
                part.copy_(summed.view_as(part))

    job = all_of_us.sum(what, flats, finish, priority, [buffer], [*parts])
    return job.result(buffer)


def _by_word(word: str, gradients: Sequence[Any]) -> dict[str, list[Any]]:
    """Views of a bucket's parts, by as what each travels."""
    parts: dict[str, list[Any]] = {}
    for part in gradients:
        parts.setdefault(coded_as(word, part.numel(), part.dim()), []).append(part)
    return parts
