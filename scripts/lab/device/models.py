"""Two real models, as their papers have them, and batches of noise: what is learned is no matter.

`small` ones have the same shape, for a processor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

TOKENS, CONTEXT = 50304, 1024


class Block(nn.Module):  # type: ignore[misc]
    """Of a GPT: attention to what came before, then two layers."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_layers = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries_keys_values, self.mixed = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        split = self.queries_keys_values(self.before_attention(x)).view(
            batch, length, 3, self.heads, width // self.heads
        )
        query, key, value = split.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.mixed(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(functional.gelu(self.wide(self.before_layers(x))))


class Gpt(nn.Module):  # type: ignore[misc]
    """Of 12 blocks of 768: 163 million parameters, a half of them in the first and last tensor."""

    def __init__(self, width: int, blocks: int, heads: int, tokens: int, context: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(tokens, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(blocks)))
        self.last, self.next = nn.LayerNorm(width), nn.Linear(width, tokens, bias=False)

    def forward(self, text: Any) -> Any:
        places = self.places(torch.arange(text.shape[1], device=text.device))
        return self.next(self.last(self.blocks(self.tokens(text) + places)))


class Bottleneck(nn.Module):  # type: ignore[misc]
    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        after = 4 * width

        def normed(*convolution: Any, **options: Any) -> list[Any]:
            made = nn.Conv2d(*convolution, bias=False, **options)
            return [made, nn.BatchNorm2d(made.out_channels)]

        self.deep = nn.Sequential(
            *normed(before, width, 1),
            nn.ReLU(inplace=True),
            *normed(width, width, 3, stride=stride, padding=1),
            nn.ReLU(inplace=True),
            *normed(width, after, 1),
        )
        same = before == after and stride == 1
        self.past = (
            nn.Identity() if same else nn.Sequential(*normed(before, after, 1, stride=stride))
        )

    def forward(self, x: Any) -> Any:
        return functional.relu(self.deep(x) + self.past(x))


def resnet(width: int, depths: tuple[int, ...], classes: int) -> Any:
    """ResNet-50 has 64, (3, 4, 6, 3) and 1000."""
    layers: list[Any] = [
        nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    before = width
    for stage, depth in enumerate(depths):
        for number in range(depth):
            stride = 2 if stage > 0 and number == 0 else 1
            layers.append(Bottleneck(before, width << stage, stride))
            before = 4 * (width << stage)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))


class Task(NamedTuple):
    model: Any
    batch: Callable[[], tuple[Any, Any]]
    loss: Callable[[Any, Any], Any]


def _gpt(device: Any, small: bool) -> Task:
    width, blocks, heads, tokens, length = (
        (32, 2, 2, 500, 16) if small else (768, 12, 12, TOKENS, CONTEXT)
    )
    batch = 2 if small else 4

    def text() -> tuple[Any, Any]:
        whole = torch.randint(tokens, (batch, length + 1), device=device)
        return whole[:, :-1], whole[:, 1:]

    def loss(guesses: Any, wanted: Any) -> Any:
        return functional.cross_entropy(guesses.flatten(0, 1).float(), wanted.flatten())

    return Task(Gpt(width, blocks, heads, tokens, length).to(device), text, loss)


def _resnet50(device: Any, small: bool) -> Task:
    width, depths, classes, size, batch = (
        (4, (1, 1, 1, 1), 10, 32, 4) if small else (64, (3, 4, 6, 3), 1000, 224, 64)
    )
    model = resnet(width, depths, classes).to(device, memory_format=torch.channels_last)

    def pictures() -> tuple[Any, Any]:
        x = torch.randn(batch, 3, size, size, device=device)
        wanted = torch.randint(classes, (batch,), device=device)
        return x.to(memory_format=torch.channels_last), wanted

    return Task(model, pictures, lambda guesses, wanted: functional.cross_entropy(guesses, wanted))


TASKS: dict[str, Callable[[Any, bool], Task]] = {"gpt": _gpt, "resnet50": _resnet50}
