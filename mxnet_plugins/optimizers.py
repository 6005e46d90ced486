"""What stores must know of MXNet's optimizers, which run on every worker."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mxnet as mx
import numpy as np

from mxnet_plugins.errors import InvalidArgumentError

# They write a weight that they compute from their own states alone.
_FROM_STATES = (mx.optimizer.FTML, mx.optimizer.Ftrl)
_PLAIN = (bool, int, float, str)
# But for the last: schedules have their last rate there, whoever asked for it.
_CHANGE_NOTHING = {"begin_num_update", "aggregate_num", "base_lr"}


def check(updater: Any, *, asynchronous: bool, workers: int) -> None:
    """Refuses those that would train to other weights on each worker."""
    optimizer = getattr(updater, "optimizer", None)
    name = type(optimizer).__name__
    if asynchronous and isinstance(optimizer, _FROM_STATES):
        raise InvalidArgumentError(
            f"set_optimizer: {name} computes weights from this worker's gradients alone and would "
            "undo what the others have added: use another optimizer, or 'dist_sync'"
        )
    if not asynchronous and workers > 1 and isinstance(optimizer, mx.optimizer.SGLD):
        raise InvalidArgumentError(
            f"set_optimizer: each worker's {name} draws noise of its own, so their weights would "
            "not stay equal: use another optimizer, or 'dist_async'"
        )


def told(optimizer: Any) -> dict[str, str]:
    """What it is, and all that it is told, in words."""
    return {"optimizer": type(optimizer).__name__, **_options(optimizer)}


def _options(optimizer: Any) -> dict[str, str]:
    """All that it is told and that is a plain value, and its schedule's."""
    said = _plain(optimizer)
    scheduler = getattr(optimizer, "lr_scheduler", None)
    if scheduler is not None:
        said["schedule"] = type(scheduler).__name__
        said |= {f"schedule's {name}": value for name, value in _plain(scheduler).items()}
    return said


@functools.lru_cache
def _arguments(kind: type[Any]) -> set[str]:
    """What MXNet's own classes take: what else a script's class has, may be each worker's own."""
    own = [its for its in kind.__mro__ if its.__module__.startswith("mxnet.")]
    taken = {name for its in own for name in inspect.signature(its).parameters}
    return (taken | {"lr"}) - _CHANGE_NOTHING


def _plain(its: Any) -> dict[str, str]:
    """What is set; processors of different kinds may differ in a number's last digits."""
    names = _arguments(type(its))  # type: ignore[arg-type]
    return {
        name: f"{value:.6g}" if isinstance(value, float) else str(value)
        for name, value in vars(its).items()
        if name in names and isinstance(value, _PLAIN) and value is not False
    }


def use(updater: Any, *, with_options: bool) -> str:
    """What a store's sums are for, which must be the same on all workers."""
    if updater is None:
        return ""
    optimizer = getattr(updater, "optimizer", None)
    if optimizer is None:
        return "an updater of the script's"
    options = _options(optimizer) if with_options else {}
    words = ", ".join(f"{name} = {value}" for name, value in options.items())
    return type(optimizer).__name__ + (f" ({words})" if words else "")


def check_async(updater: Any, label: str, dtype: Any) -> None:
    """The same, of one weight in asynchronous training."""
    master = getattr(getattr(updater, "optimizer", None), "multi_precision", False)
    if master and np.dtype(dtype) == np.float16:
        raise InvalidArgumentError(
            f"{label} is float16: multi_precision would overwrite it by this worker's own float32 "
            "copy and undo what the others have added: leave multi_precision out, or use "
            "'dist_sync'"
        )


def check_compression(updater: Any, kind: str) -> None:
    """Asynchronous: what an optimizer makes of a gradient is pushed, in which a threshold for
    gradients would leave nothing for many steps and then a jump."""
    if updater is not None and kind in ("1bit", "2bit"):
        raise InvalidArgumentError(
            f"{kind} compression is for gradients, but with an optimizer 'dist_async' pushes the "
            "change of the weights: compress to bf16 or int8, or use 'dist_sync'"
        )


def needs_sparse_weight(updater: Any) -> bool:
    """Of gradients by rows. The others change the same rows of a dense weight; this one's operator
    for dense weights would set all other rows to 0."""
    return isinstance(getattr(updater, "optimizer", None), mx.optimizer.Ftrl)


class Moment:
    """When a gradient was pushed that is applied later, and not by all workers at the same time:
    it counts at once, and what scripts and schedulers change of an optimizer is kept."""

    def __init__(self, updater: Any, key: Any) -> None:
        self._optimizer = getattr(updater, "optimizer", None)
        self._then: dict[str, Any] = {}
        if not isinstance(self._optimizer, mx.optimizer.Optimizer):
            return
        self._optimizer._set_current_context(0)
        self._optimizer._update_count(key)
        own = vars(self._optimizer)
        kept = ("num_update", "rescale_grad", "clip_gradient", "momentum")
        self._then = {
            **{name: own[name] for name in kept if name in own},
            "lr": self._optimizer._get_lr(key),
            "wd": self._optimizer._get_wd(key),
            # All that these say is in the two numbers.
            "lr_scheduler": None,
            "param_dict": {},
            "idx2name": {},
            "lr_mult": {},
            "wd_mult": {},
            "_update_count": lambda index: None,
        }

    @contextmanager
    def again(self) -> Iterator[None]:
        """The optimizer is as it was then."""
        if not self._then:
            yield
            return
        own = vars(self._optimizer)
        now = {name: own[name] for name in self._then if name in own}
        own.update(self._then)
        try:
            yield
        finally:
            for name in self._then:
                del own[name]
            own.update(now)
