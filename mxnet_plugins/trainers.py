"""gluon's Trainer with a store of ours: a step may have another batch size than the one before.

MXNet's servers have a copy of the optimizer that nobody can change any more, so a Trainer refuses
that. Ours is the Trainer's own; and where `store.num_workers` changes, so does what steps are
divided by. But all workers must divide by the same.

AMP's loss scaler leaves a step out if its gradients overflow. It asks for that after the sums, so
the Trainer must apply them, not the store.
"""

from __future__ import annotations

from typing import Any

from mxnet import gluon

from mxnet_plugins.base_store import BaseStore
from mxnet_plugins.errors import InvalidArgumentError

_stock = gluon.Trainer._check_and_rescale_grad
_stock_sums = gluon.Trainer._allreduce_grads


def _check_and_rescale_grad(trainer: Any, scale: float) -> None:
    if isinstance(trainer._kvstore, BaseStore):
        trainer._optimizer.rescale_grad = scale
    else:
        _stock(trainer, scale)


def _allreduce_grads(trainer: Any) -> None:
    """All workers come here equally often: in a step, or before an update that they scale."""
    if isinstance(trainer._kvstore, BaseStore):
        if trainer._update_on_kvstore and getattr(trainer, "_amp_loss_scaler", None) is not None:
            raise InvalidArgumentError(
                "AMP leaves out steps that overflow, but this Trainer's store would have made them "
                "already: create the Trainer with update_on_kvstore=False"
            )
        trainer._kvstore.begin_sums(trainer._optimizer)
    _stock_sums(trainer)


def install() -> None:
    """In place of Trainer's own; once is enough."""
    gluon.Trainer._check_and_rescale_grad = _check_and_rescale_grad
    gluon.Trainer._allreduce_grads = _allreduce_grads
