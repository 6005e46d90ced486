"""A real transformer, trained on tokens at random: nothing is emulated, the processor computes.

All workers must have the same weights in the end; each says theirs, and the bench compares.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Any

import torch

from scripts.lab.workloads.measurement import say, usage

WIDTH, LAYERS, TOKENS = 256, 4, 1000
BATCH, CONTEXT = 4, 64


class Transformer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = torch.nn.Embedding(TOKENS, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(
            WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.next = torch.nn.Linear(WIDTH, TOKENS)

    def forward(self, text: Any) -> Any:
        return self.next(self.layers(self.tokens(text)))


def train(
    rank: int,
    turns: int,
    warmup: int,
    parallel: Callable[[Any, Any], tuple[Any, Any]],
) -> None:
    torch.manual_seed(rank)
    transformer = Transformer()
    size = sum(4 * p.numel() for p in transformer.parameters())
    model, optimizer = parallel(transformer, torch.optim.SGD(transformer.parameters(), lr=0.01))
    say("started", **usage())
    ends = []
    for turn in range(warmup + turns + 1):  # a round ends with the forward that needs its sums
        text = torch.randint(TOKENS, (BATCH, CONTEXT + 1))
        guesses = model(text[:, :-1])
        if turn > 0:
            ends.append(time.monotonic())
        if turn == warmup:
            say("begin", **usage())
        if turn == warmup + turns:
            break
        loss = torch.nn.functional.cross_entropy(guesses.flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    say("end", **usage())
    weights = torch.nn.utils.parameters_to_vector(transformer.parameters()).detach()
    digest = hashlib.sha256(weights.numpy().tobytes()).hexdigest()
    times = [b - a for a, b in zip(ends[warmup - 1 :], ends[warmup:])]
    say("result", times_s=times, bytes=size, digest=digest)
