"""A communication hook for DistributedDataParallel: its buckets, averaged over our transport, and
sent as MERCURY_WIRE says."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.weak import WeakTensorKeyDictionary

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.torch.collectives import collectives
from pslite_ext.wire_words import AUTO, coded_as

_members = WeakTensorKeyDictionary()  # by parameter: how many workers sum its gradient under DDP


def hook(state: Any, bucket: Any) -> Any:
    buffer = bucket.buffer()
    all_of_us = collectives()
    _check(state, bucket, all_of_us.workers)
    # Later buckets hold what a forward uses first.
    what, priority = f"DDP bucket {bucket.index()}", bucket.index()
    word = _core.wire()
    if word == AUTO:
        raise InvalidArgumentError(
            "MERCURY_WIRE is 'auto', which is for mercury.wrap: name a codec"
        )
    buffer.div_(all_of_us.workers)
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


def _check(state: Any, bucket: Any, workers: int) -> None:
    if bucket.buffer().layout != torch.strided:
        raise InvalidArgumentError(
            "mercury.ddp_comm_hook: a parameter has a sparse gradient: give its embedding "
            "sparse=False"
        )
    members = state.size() if isinstance(state, dist.ProcessGroup) else workers
    if members == workers:
        members = _members_of(bucket.parameters()[0], workers)
    if members != workers:
        raise InvalidArgumentError(
            f"mercury.ddp_comm_hook sums over all {workers} workers of the job, and this process "
            f"group has {members}: leave the hook out, or give DistributedDataParallel a group of "
            "all workers"
        )


def _members_of(parameter: Any, workers: int) -> int:
    """DDP tells its hooks of no group, so it is looked for once."""
    if parameter not in _members:
        _members[parameter] = workers
        for its in gc.get_objects():
            if issubclass(type(its), DistributedDataParallel):
                _members.update({p: its.process_group.size() for p in its.parameters()})
    return int(_members[parameter])


def _by_word(word: str, gradients: Sequence[Any]) -> dict[str, list[Any]]:
    """Views of a bucket's parts, by as what each travels."""
    parts: dict[str, list[Any]] = {}
    for part in gradients:
        parts.setdefault(coded_as(word, part.numel(), part.dim()), []).append(part)
    return parts
