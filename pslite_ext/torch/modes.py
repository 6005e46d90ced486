"""Modes that code may be in when it needs a weight, which are not to see what is done late for it.

Late is what is left of a step: the sum, and the update. It is done as it would have been in its
time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext

import torch
from torch._functorch.pyfunctorch import temporarily_pop_interpreter_stack
from torch.utils._python_dispatch import _disable_current_modes

_AS_IT_IS = nullcontext()


def in_transform() -> bool:
    """Of torch.func, such as grad or vmap."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def in_dispatch_mode() -> bool:
    """Which sees each operation: that of selective checkpointing, say, or of make_fx."""
    return bool(torch._C._len_torch_dispatch_stack())


def outside_of_modes() -> AbstractContextManager[None]:
    return _outside() if in_transform() or in_dispatch_mode() else _AS_IT_IS


@contextmanager
def _outside() -> Iterator[None]:
    with ExitStack() as modes:
        while in_transform():
            modes.enter_context(temporarily_pop_interpreter_stack())
        if in_dispatch_mode():
            modes.enter_context(_disable_current_modes())
        yield
