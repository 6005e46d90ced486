"""What all workers of an MLfabric job have alike as they begin: worker 0's.

What is trained they get as the job's first model. All else worker 0 tells them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pslite_ext.fabric import Worker
from pslite_ext.fabric.alike import from_worker_0
from pslite_ext.torch.values import put_bytes, value_bytes


def take(worker: Worker, tensors: Sequence[Any]) -> None:
    """They become worker 0's, bit for bit."""
    whole = [tensor for tensor in tensors if tensor.numel()]
    if not whole:
        return
    own = torch.cat([value_bytes(tensor) for tensor in whole]).numpy().tobytes()
    theirs = from_worker_0(worker, own)
    if worker.rank != 0:
        put_bytes(torch.frombuffer(bytearray(theirs), dtype=torch.uint8), whole)
