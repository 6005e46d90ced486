"""The models' tensors, in the order of the forward pass, from their architecture.

A layer's floating-point operations (of one sample's forward pass, a multiply-add being two) are
put on its last tensor: in the backward pass all gradients of the layer are then ready at once,
and in the forward pass it computes when all of its tensors are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Callable, Union

Pair = Union[int, tuple[int, int]]


@dataclass(frozen=True)
class Parameter:
    name: str
    shape: tuple[int, ...]
    flops: float  # 0 on all but the last of a layer

    @property
    def elements(self) -> int:
        product = 1
        for n in self.shape:
            product *= n
        return product


def _pair(value: Pair) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value


@dataclass
class Builder:
    """Follows an image through a network: `channels` of `height` x `width`."""

    channels: int
    height: int
    width: int
    parameters: list[Parameter] = field(default_factory=list)

    def add(self, name: str, shapes: dict[str, tuple[int, ...]], flops: float) -> None:
        last = list(shapes)[-1]
        for part, shape in shapes.items():
            self.parameters.append(
                Parameter(f"{name}_{part}", shape, flops if part == last else 0.0)
            )

    def conv(
        self, name: str, out: int, kernel: Pair, stride: int = 1, pad: Pair = 0, bias: bool = True
    ) -> None:
        (kh, kw), (ph, pw) = _pair(kernel), _pair(pad)
        self.height = (self.height + 2 * ph - kh) // stride + 1
        self.width = (self.width + 2 * pw - kw) // stride + 1
        shapes: dict[str, tuple[int, ...]] = {"weight": (out, self.channels, kh, kw)}
        if bias:
            shapes["bias"] = (out,)
        self.add(name, shapes, 2.0 * self.channels * kh * kw * out * self.height * self.width)
        self.channels = out

    def depthwise(self, name: str, kernel: int, stride: int = 1, pad: int = 0) -> None:
        """Each channel by itself."""
        self.height = (self.height + 2 * pad - kernel) // stride + 1
        self.width = (self.width + 2 * pad - kernel) // stride + 1
        shape = (self.channels, 1, kernel, kernel)
        flops = 2.0 * kernel * kernel * self.channels * self.height * self.width
        self.add(name, {"weight": shape}, flops)

    def norm(self, name: str) -> None:
        """Batch normalisation; its running figures are not exchanged."""
        shape = (self.channels,)
        flops = 4.0 * self.channels * self.height * self.width
        self.add(name, {"gamma": shape, "beta": shape}, flops)

    def pool(self, kernel: int, stride: int, pad: int = 0) -> None:
        self.height = (self.height + 2 * pad - kernel) // stride + 1
        self.width = (self.width + 2 * pad - kernel) // stride + 1

    def pool_to(self, side: int) -> None:
        self.height = self.width = side

    def dense(self, name: str, out: int) -> None:
        inputs = self.channels * self.height * self.width
        self.add(name, {"weight": (out, inputs), "bias": (out,)}, 2.0 * inputs * out)
        self.channels, self.height, self.width = out, 1, 1


def _vgg(blocks: Sequence[int], side: int, classes: int) -> list[Parameter]:
    net = Builder(3, side, side)
    for block, (convs, channels) in enumerate(zip(blocks, (64, 128, 256, 512, 512)), 1):
        for i in range(1, convs + 1):
            net.conv(f"conv{block}_{i}", channels, 3, pad=1)
        net.pool(2, 2)
    for name, out in (("fc6", 4096), ("fc7", 4096), ("fc8", classes)):
        net.dense(name, out)
    return net.parameters


def _alexnet() -> list[Parameter]:
    """The one-tower form of model zoos."""
    net = Builder(3, 224, 224)
    net.conv("conv1", 64, 11, stride=4, pad=2)
    net.pool(3, 2)
    net.conv("conv2", 192, 5, pad=2)
    net.pool(3, 2)
    net.conv("conv3", 384, 3, pad=1)
    net.conv("conv4", 256, 3, pad=1)
    net.conv("conv5", 256, 3, pad=1)
    net.pool(3, 2)
    for name, out in (("fc6", 4096), ("fc7", 4096), ("fc8", 1000)):
        net.dense(name, out)
    return net.parameters


def _resnet(blocks: Sequence[int], bottleneck: bool) -> list[Parameter]:
    net = Builder(3, 224, 224)

    def unit(name: str, out: int, kernel: int, stride: int = 1) -> None:
        net.conv(f"{name}_conv", out, kernel, stride, pad=kernel // 2, bias=False)
        net.norm(f"{name}_bn")

    unit("stem", 64, 7, stride=2)
    net.pool(3, 2, pad=1)
    expansion = 4 if bottleneck else 1
    for stage, count in enumerate(blocks, 1):
        inner = 64 << (stage - 1)
        for block in range(1, count + 1):
            name = f"stage{stage}_block{block}"
            stride = 2 if stage > 1 and block == 1 else 1
            entry = (net.channels, net.height, net.width)
            if bottleneck:
                unit(f"{name}_1", inner, 1)
                unit(f"{name}_2", inner, 3, stride)
                unit(f"{name}_3", inner * expansion, 1)
            else:
                unit(f"{name}_1", inner, 3, stride)
                unit(f"{name}_2", inner, 3)
            if entry[0] != net.channels or stride != 1:
                net.channels, net.height, net.width = entry
                unit(f"{name}_shortcut", inner * expansion, 1, stride)
    net.pool_to(1)
    net.dense("fc", 1000)
    return net.parameters


# Inception-v3: a block is a set of branches, a branch a chain of (channels, kernel, stride, pad);
# a list inside a chain is a fork into parallel convolutions.
_Conv = tuple[int, Pair, int, Pair]
_Branch = list[Union[_Conv, list[_Conv]]]


def _a(pooled: int) -> list[_Branch]:
    return [
        [(64, 1, 1, 0)],
        [(48, 1, 1, 0), (64, 5, 1, 2)],
        [(64, 1, 1, 0), (96, 3, 1, 1), (96, 3, 1, 1)],
        [(pooled, 1, 1, 0)],
    ]


def _c(n: int) -> list[_Branch]:
    row: tuple[Pair, Pair] = ((1, 7), (0, 3))
    column: tuple[Pair, Pair] = ((7, 1), (3, 0))
    return [
        [(192, 1, 1, 0)],
        [(n, 1, 1, 0), (n, row[0], 1, row[1]), (192, column[0], 1, column[1])],
        [
            (n, 1, 1, 0),
            (n, column[0], 1, column[1]),
            (n, row[0], 1, row[1]),
            (n, column[0], 1, column[1]),
            (192, row[0], 1, row[1]),
        ],
        [(192, 1, 1, 0)],
    ]


def _e() -> list[_Branch]:
    fork: list[_Conv] = [(384, (1, 3), 1, (0, 1)), (384, (3, 1), 1, (1, 0))]
    return [
        [(320, 1, 1, 0)],
        [(384, 1, 1, 0), fork],
        [(448, 1, 1, 0), (384, 3, 1, 1), fork],
        [(192, 1, 1, 0)],
    ]


_B: list[_Branch] = [[(384, 3, 2, 0)], [(64, 1, 1, 0), (96, 3, 1, 1), (96, 3, 2, 0)]]
_D: list[_Branch] = [
    [(192, 1, 1, 0), (320, 3, 2, 0)],
    [(192, 1, 1, 0), (192, (1, 7), 1, (0, 3)), (192, (7, 1), 1, (3, 0)), (192, 3, 2, 0)],
]


def _inception_v3() -> list[Parameter]:
    """Without the auxiliary classifier."""
    net = Builder(3, 299, 299)

    def unit(name: str, conv: _Conv) -> None:
        out, kernel, stride, pad = conv
        net.conv(f"{name}_conv", out, kernel, stride, pad, bias=False)
        net.norm(f"{name}_bn")

    def block(name: str, branches: list[_Branch], passed_on: int = 0) -> None:
        """`passed_on`: channels of a branch that only pools."""
        entry, total = (net.channels, net.height, net.width), passed_on
        for b, branch in enumerate(branches, 1):
            net.channels, net.height, net.width = entry
            for i, step in enumerate(branch, 1):
                fork = step if isinstance(step, list) else [step]
                before, ends = (net.channels, net.height, net.width), 0
                for f, conv in enumerate(fork, 1):
                    net.channels, net.height, net.width = before
                    unit(f"{name}_{b}_{i}" + (f"_{f}" if len(fork) > 1 else ""), conv)
                    ends += net.channels
                net.channels = ends
            total += net.channels
        net.channels = total

    stem: list[_Conv | None] = [(32, 3, 2, 0), (32, 3, 1, 0), (64, 3, 1, 1), None]
    stem += [(80, 1, 1, 0), (192, 3, 1, 0), None]
    for i, step in enumerate(stem, 1):
        if step is None:
            net.pool(3, 2)
        else:
            unit(f"stem{i}", step)
    for i, pooled in enumerate((32, 64, 64), 1):
        block(f"a{i}", _a(pooled))
    block("b", _B, passed_on=net.channels)
    for i, n in enumerate((128, 160, 160, 192), 1):
        block(f"c{i}", _c(n))
    block("d", _D, passed_on=net.channels)
    for i in (1, 2):
        block(f"e{i}", _e())
    net.pool_to(1)
    net.dense("fc", 1000)
    return net.parameters


def _bert_base(tokens: int = 128) -> list[Parameter]:
    hidden, inner, vocabulary, positions = 768, 3072, 30522, 512
    net = Builder(hidden, 1, 1)

    def norm(name: str) -> None:
        net.add(name, {"gamma": (hidden,), "beta": (hidden,)}, 8.0 * tokens * hidden)

    def linear(name: str, inputs: int, out: int, rows: int = tokens, extra: float = 0.0) -> None:
        flops = 2.0 * rows * inputs * out + extra
        net.add(name, {"weight": (out, inputs), "bias": (out,)}, flops)

    for name, rows in (("word", vocabulary), ("position", positions), ("type", 2)):
        net.add(f"embedding_{name}", {"weight": (rows, hidden)}, 2.0 * tokens * hidden)
    norm("embedding_norm")
    for layer in range(1, 13):
        name = f"layer{layer}"
        for part in ("query", "key", "value"):
            linear(f"{name}_{part}", hidden, hidden)
        # The scores and what they weigh, both tokens x tokens x hidden, come before this one.
        linear(f"{name}_output", hidden, hidden, extra=4.0 * tokens * tokens * hidden)
        norm(f"{name}_norm1")
        linear(f"{name}_intermediate", hidden, inner)
        linear(f"{name}_down", inner, hidden)
        norm(f"{name}_norm2")
    linear("pooler", hidden, hidden, rows=1)
    return net.parameters


def _mobilenet() -> list[Parameter]:
    """The first one, of full width."""
    net = Builder(3, 224, 224)
    net.conv("stem_conv", 32, 3, stride=2, pad=1, bias=False)
    net.norm("stem_bn")
    widths = (64, 128, 128, 256, 256, *(512,) * 6, 1024, 1024)
    halved = (2, 4, 6, 12)  # blocks that look at every other pixel
    for block, out in enumerate(widths, 1):
        stride = 2 if block in halved else 1
        net.depthwise(f"block{block}_depthwise", 3, stride, pad=1)
        net.norm(f"block{block}_depthwise_bn")
        net.conv(f"block{block}_pointwise", out, 1, bias=False)
        net.norm(f"block{block}_pointwise_bn")
    net.pool_to(1)
    net.dense("fc", 1000)
    return net.parameters


def _lenet5() -> list[Parameter]:
    net = Builder(1, 28, 28)
    net.conv("conv1", 20, 5)
    net.pool(2, 2)
    net.conv("conv2", 50, 5)
    net.pool(2, 2)
    net.dense("fc1", 500)
    net.dense("fc2", 10)
    return net.parameters


ARCHITECTURES: dict[str, Callable[[], list[Parameter]]] = {
    "vgg16": lambda: _vgg((2, 2, 3, 3, 3), 224, 1000),
    "vgg16_32x32": lambda: _vgg((2, 2, 3, 3, 3), 32, 10),
    "vgg19": lambda: _vgg((2, 2, 4, 4, 4), 224, 1000),
    "alexnet": _alexnet,
    "resnet18": lambda: _resnet((2, 2, 2, 2), bottleneck=False),
    "resnet50": lambda: _resnet((3, 4, 6, 3), bottleneck=True),
    "resnet152": lambda: _resnet((3, 8, 36, 3), bottleneck=True),
    "inception_v3": _inception_v3,
    "bert_base": _bert_base,
    "mobilenet": _mobilenet,
    "lenet5": _lenet5,
}
