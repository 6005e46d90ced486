"""A communication hook for DistributedDataParallel: its buckets, averaged over our transport, and
sent as MERCURY_WIRE says."""

from __future__ import annotations

from typing import Any

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.torch.collectives import collectives
from pslite_ext.wire_words import AUTO


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
    job = all_of_us.sum(what, [buffer], priority=priority, word=word)
    return job.result(buffer)
