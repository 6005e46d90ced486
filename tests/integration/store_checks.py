"""Run by every worker of a job: the whole KVStore interface against sums made by hand.

Prints `ok NAME` for each check; test_kvstore.py starts the job and looks for them.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

import mxnet as mx
import numpy as np
import pytest

import mxnet_plugins
from tests.integration import (  # noqa: F401 - they add
    array_checks,
    gluon_checks,
    optimizer_checks,
    refusal_checks,
    wire_checks,
)
from tests.integration.sum_checks import CHECKS, DETERMINISTIC, SHAPE, check, equal, everybody


def store(name: str = "dist_sync") -> Any:
    return mx.kv.create(name)


@check
def what_it_is(kv: Any) -> None:
    assert isinstance(kv, mx.kvstore.KVStore)
    assert kv.type == "dist_sync"
    assert kv.num_workers == int(os.environ["DMLC_NUM_WORKER"])
    assert kv.rank == int(os.environ["DMLC_TASK_ID"])
    assert kv.is_capable("optimizer")
    assert kv.num_dead_node(7) == 0
    for name in ("dist", "dist_device_sync", "dist_sync_device", "dist_async"):
        assert store(name).type == name


@check
def every_distributed_name_is_ours(kv: Any) -> None:
    """As stock reads it: what a name contains counts, and how it is written does not."""
    for name in ("dist_foo", "dist_synch", "p3store_dist", "DIST_Device_Sync", "Dist_Async_x"):
        found = store(name)
        assert type(found) is type(kv)
        assert found.type == name.lower()
        if DETERMINISTIC and "_async" in found.type:
            continue  # see `asynchronous`
        found.init("w", mx.nd.ones(SHAPE))
        value = mx.nd.ones(SHAPE)
        found.pushpull("w", value)
        value.wait_to_read()
        found.barrier()
        found.pull("w", out=value)
        equal(value, 1 + kv.num_workers if "_async" in found.type else kv.num_workers)


@check
def init_gives_all_the_value_of_worker_0(kv: Any) -> None:
    kv.init("i", mx.nd.ones(SHAPE) * (kv.rank + 7))
    out = mx.nd.zeros(SHAPE)
    kv.pull("i", out=out)
    equal(out, 7)


@check
def push_then_pull(kv: Any) -> None:
    kv.init([3, 5], [mx.nd.zeros(SHAPE), mx.nd.zeros((2,))])
    outs = [mx.nd.zeros(SHAPE), mx.nd.zeros((2,))]
    for step in range(5):
        values = [mx.nd.ones(SHAPE) * (kv.rank + 1) * (step + 1), mx.nd.ones((2,)) * (kv.rank + 1)]
        kv.push([3, 5], values)
        kv.pull([3, 5], out=outs)
        equal(outs[0], everybody(kv) * (step + 1))
        equal(outs[1], everybody(kv))


@check
def pushpull_in_place_and_out_of_place(kv: Any) -> None:
    kv.init(2**40, mx.nd.zeros(SHAPE))
    value, out = mx.nd.ones(SHAPE) * (kv.rank + 1), mx.nd.zeros(SHAPE)
    kv.pushpull(2**40, value, out=out, priority=-3)
    equal(out, everybody(kv))
    equal(value, kv.rank + 1)
    kv.pushpull(2**40, value)
    equal(value, everybody(kv))


@check
def several_devices_and_nested_lists(kv: Any) -> None:
    keys = ["n1", "n2"]
    kv.init(keys, [mx.nd.zeros(SHAPE)] * 2)
    devices = [mx.cpu(0), mx.cpu(1), mx.cpu(2)]
    values = [[mx.nd.ones(SHAPE, ctx=d) * (kv.rank + 1) for d in devices] for _ in keys]
    outs = [[mx.nd.zeros(SHAPE, ctx=d) for d in devices] for _ in keys]
    kv.push(keys, values)
    kv.pull(keys, out=outs)
    for out in outs[0] + outs[1]:
        equal(out, 3 * everybody(kv))
    kv.pushpull(keys, values)
    for value in values[0] + values[1]:
        equal(value, 3 * everybody(kv))


@check
def broadcast(kv: Any) -> None:
    outs = [mx.nd.zeros(SHAPE), mx.nd.zeros(SHAPE)]
    kv.broadcast("b", mx.nd.ones(SHAPE) * (kv.rank + 4), out=outs)
    for out in outs:
        equal(out, 4)


@check
def optimizer_runs_on_the_sum(kv: Any) -> None:
    kv = store()
    kv.init("o", mx.nd.ones(SHAPE))
    kv.set_optimizer(mx.optimizer.create("test", rescale_grad=2))
    expected = 1.0
    out = mx.nd.zeros(SHAPE)
    for _ in range(3):
        kv.push("o", mx.nd.ones(SHAPE) * (kv.rank + 1))
        kv.pull("o", out=out)
        expected += 2 * everybody(kv)
        equal(out, expected)


@check
def updater_of_the_user(kv: Any) -> None:
    kv = store()
    kv.init(9, mx.nd.ones(SHAPE))
    seen = []

    def update(key: int, received: Any, stored: Any) -> None:
        seen.append(key)
        stored += received * 2

    kv._set_updater(update)
    out = mx.nd.zeros(SHAPE)
    kv.pushpull(9, mx.nd.ones(SHAPE), out=out)
    equal(out, 1 + 2 * kv.num_workers)
    assert seen == [9]


@check
def optimizer_states(kv: Any) -> None:
    kv = store()
    kv.init("w", mx.nd.ones(SHAPE))
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.1, momentum=0.9))
    out = mx.nd.zeros(SHAPE)
    kv.pushpull("w", mx.nd.ones(SHAPE), out=out)
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "states")
        kv.save_optimizer_states(name, dump_optimizer=True)
        before = kv._updater.states["w"].asnumpy().copy()
        kv.pushpull("w", mx.nd.ones(SHAPE), out=out)
        kv.load_optimizer_states(name)
        np.testing.assert_array_equal(kv._updater.states["w"].asnumpy(), before)


@check
def two_bit_compression(kv: Any) -> None:
    kv = store()
    kv.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    for size in (5, 4096, 1_200_007):
        key = f"c{size}"
        kv.init(key, mx.nd.zeros((size,)))
        gradient = np.linspace(-0.8, 0.8, size).astype(np.float32)
        residual = np.zeros(size, np.float32)
        out = mx.nd.zeros((size,))
        for _ in range(6):
            kv.push(key, mx.nd.array(gradient))
            kv.pull(key, out=out)
            residual += gradient
            sent = np.where(residual >= 0.5, 0.5, np.where(residual <= -0.5, -0.5, 0))
            residual -= sent.astype(np.float32)
            equal(out, sent * kv.num_workers)


@check
def one_bit_compression(kv: Any) -> None:
    kv = store()
    kv.init("c1", mx.nd.zeros((9,)))
    kv.set_gradient_compression({"type": "1bit", "threshold": 0.0})
    value = mx.nd.array(np.arange(-4, 5))
    kv.pushpull("c1", value)
    equal(value, np.where(np.arange(-4, 5) > 0, 1, -1) * kv.num_workers)


@check
def row_sparse(kv: Any) -> None:
    rows = (6, 3)
    kv = store()
    kv.init("r", mx.nd.ones(rows).tostype("row_sparse"))
    out = mx.nd.sparse.zeros("row_sparse", rows)
    kv.row_sparse_pull("r", out=out, row_ids=mx.nd.array([4, 1, 4]))
    expected = np.zeros(rows)
    expected[[1, 4]] = 1
    equal(out, expected)
    out[:] = 0
    kv.row_sparse_pull(["r"], out=[out], row_ids=mx.nd.array([4, 1, 4]))
    equal(out, expected)
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=-1, wd=0))
    mine = np.zeros(rows, np.float32)
    mine[kv.rank % 6] = kv.rank + 1
    mine[5] = 1
    kv.push("r", mx.nd.array(mine).tostype("row_sparse"))
    kv.row_sparse_pull("r", out=out, row_ids=mx.nd.arange(6))
    expected = np.ones(rows)
    for r in range(kv.num_workers):
        expected[r % 6] += r + 1
        expected[5] += 1
    equal(out, expected)


@check
def two_trainers(kv: Any) -> None:
    for _ in range(2):
        net = mx.gluon.nn.Dense(3, in_units=4)
        net.initialize(mx.init.Constant(0.5 + kv.rank))
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", kvstore="dist_sync")
        with mx.autograd.record():
            loss = net(mx.nd.ones((2, 4))).sum()
        loss.backward()
        trainer.step(2 * kv.num_workers)
        equal(net.weight.data(), 0.5 - 0.01, 1e-6)


@check
def row_sparse_without_rows_or_optimizer(kv: Any) -> None:
    rows = (8, 2)
    kv.init("rz", mx.nd.zeros(rows).tostype("row_sparse"))
    nothing, out = (mx.nd.sparse.zeros("row_sparse", rows) for _ in range(2))
    last = mx.nd.sparse.row_sparse_array((np.ones((1, 2), np.float32), [7]), shape=rows)
    for value, total in ((last, 1), (nothing, 0)):
        kv.push("rz", value if kv.rank == 0 else nothing)
        kv.row_sparse_pull("rz", out=out, row_ids=mx.nd.array([0, 7]))
        assert out.indices.asnumpy().tolist() == [0, 7]
        equal(out.data, [[0, 0], [total, total]])


@check
def rows_that_are_not_there(kv: Any) -> None:
    """Refused, on one worker, and the key is as it was."""
    shape = (8, 2)
    kv.init("outside", mx.nd.zeros(shape).tostype("row_sparse"))
    out = mx.nd.sparse.zeros("row_sparse", shape)
    for row in (-1, 8) if kv.rank == 0 else ():
        ones = np.ones((1, 2), np.float32)
        wrong = mx.nd.sparse.row_sparse_array((ones, [row]), shape=shape)
        beside = mx.nd.ones(shape).tostype("row_sparse")
        calls: list[Callable[[], Any]] = [
            partial(kv.init, "outside too", wrong),
            partial(kv.push, "outside", wrong),
            partial(kv.push, "outside", [beside, wrong]),
            partial(kv.row_sparse_pull, "outside", out=out, row_ids=mx.nd.array([row, 3])),
        ]
        for call in calls:
            with pytest.raises(mx.MXNetError, match=f"has 8 rows, so no row {row}") as raised:
                call()
            assert isinstance(raised.value, ValueError)
    kv.push("outside", mx.nd.ones(shape).tostype("row_sparse"))
    kv.row_sparse_pull("outside", out=out, row_ids=mx.nd.arange(8))
    equal(out, kv.num_workers)


@check
def row_sparse_pushes_in_any_order(kv: Any) -> None:
    kv = store()
    keys = ["a", "b", "c", "d"]
    shape = (4, 2)
    kv.init(keys, [mx.nd.zeros(shape).tostype("row_sparse")] * 4)
    order = keys if kv.rank % 2 == 0 else keys[::-1]
    for key in order:
        kv.push(key, mx.nd.ones(shape).tostype("row_sparse"))
    for key in keys:
        out = mx.nd.sparse.zeros("row_sparse", shape)
        kv.row_sparse_pull(key, out=out, row_ids=mx.nd.arange(4))
        equal(out, kv.num_workers)


@check
def sparse_gradient_of_a_dense_weight(kv: Any) -> None:
    kv = store()
    kv.init(0, mx.nd.ones((4, 2)))
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=-1, wd=0))
    gradient = mx.nd.sparse.row_sparse_array((np.ones((1, 2), np.float32), [2]), shape=(4, 2))
    kv.push(0, [gradient])
    out = mx.nd.zeros((4, 2))
    kv.pull(0, out=out)
    expected = np.ones((4, 2))
    expected[2] += kv.num_workers
    equal(out, expected)


@check
def asynchronous(kv: Any) -> None:
    kv = store("dist_async")
    if DETERMINISTIC:  # what is added as it comes has no order
        with pytest.raises(mx.MXNetError, match="MERCURY_DETERMINISTIC=1 asks for the order"):
            kv.init("x", mx.nd.zeros(SHAPE))
        return
    kv.init("x", mx.nd.zeros(SHAPE))
    out = mx.nd.zeros(SHAPE)
    kv.push("x", mx.nd.ones(SHAPE) * (kv.rank + 1))
    kv.pull("x", out=out)
    out.wait_to_read()
    kv._barrier()
    kv.pull("x", out=out)
    equal(out, everybody(kv))


@check
def zero_size(kv: Any) -> None:
    with mx.util.np_shape(True):
        kv.init("z", mx.nd.zeros((0, 3)))
        value = mx.nd.zeros((0, 3))
        kv.pushpull("z", value)
        assert value.asnumpy().shape == (0, 3)


@check
def the_job(kv: Any) -> None:
    kv._barrier()
    kv._send_command_to_servers(5, "text")
    kv.set_barrier_before_exit(True)
    mxnet_plugins.announce(kv, [("later", "later_weight", -1)])
    kv.init("later", mx.nd.zeros(SHAPE))


@check
def mistakes_are_named(kv: Any) -> None:
    def fails(error: type[Exception], text: str, call: Callable[[], Any]) -> None:
        with pytest.raises(error, match=re.escape(text)) as raised:
            call()
        assert isinstance(raised.value, mx.MXNetError)

    fails(ValueError, "init it first", lambda: kv.push("unknown", mx.nd.ones(1)))
    fails(ValueError, "has shape", lambda: kv.push("i", mx.nd.ones((9,))))
    fails(ValueError, "has shape", lambda: kv.pull("i", out=mx.nd.ones((9,))))
    fails(ValueError, "already", lambda: kv.init("i", mx.nd.ones(SHAPE)))
    fails(ValueError, "2 keys, but 1 values", lambda: kv.push(["i", "b"], [mx.nd.ones(SHAPE)]))
    fails(TypeError, "int or a str", lambda: kv.push(1.5, mx.nd.ones(1)))
    fails(TypeError, "NDArray", lambda: kv.push("i", [1.5]))
    two: dict[Any, Any] = {"type": "2bit"}
    compress = kv.set_gradient_compression
    fails(ValueError, "'type' is one of", lambda: compress({"type": "3bit"}))
    fails(ValueError, "threshold 'x' is not a number", lambda: compress({**two, "threshold": "x"}))
    fails(ValueError, "'type' is one of", lambda: compress({**two, 1: 2}))
    fails(TypeError, "such as {'type': '2bit'", lambda: compress("2bit"))
    rows = kv._entries["i"].tensor.push_rows
    fails(ValueError, "give 8 bytes and 8 bytes for each row", lambda: rows(b"1" * 8, b"1", 2))
    array, far = mx.nd.ones(SHAPE), {"priority": 2**31}
    fails(ValueError, "'i': priority 2147483648 is", lambda: kv.push("i", array, **far))
    fails(ValueError, "'i': priority 2147483648 is", lambda: kv.pull("i", array, **far))
    fails(ValueError, "'i': priority -", lambda: kv.pushpull("i", array, priority=-(2**40)))
    fails(ValueError, "'i': priority", lambda: kv.announce([("i", "i", 48, 2**40)]))
    fails(ValueError, "no optimizer", lambda: kv.save_optimizer_states("x"))
    fails(TypeError, "priority is an int", lambda: kv.push("i", array, priority="x"))
    fails(ValueError, "cannot be sent", lambda: kv.init("\udc80", array))
    fails(TypeError, "a command's head", lambda: kv._send_command_to_servers("x", "y"))
    fails(ValueError, "a command's head", lambda: kv._send_command_to_servers(2**40, "y"))
    fails(TypeError, "a command's body", lambda: kv._send_command_to_servers(0, None))
    fails(TypeError, "a capability", lambda: kv.is_capable(None))
    fails(TypeError, "a group of nodes", lambda: kv.num_dead_node("x"))
    fails(TypeError, "(key, name, priority)", lambda: kv.announce([("i", "i")]))
    fails(TypeError, "an optimizer, not str", lambda: kv.set_optimizer("sgd"))
    fails(TypeError, "an updater is", lambda: kv._set_updater(5))
    for values in (["fresh", "fresh"], [array, array]), ("fresh", array.tostype("csr")):
        fails(ValueError, "key 'fresh' has", lambda v=values: kv.init(*v))  # type: ignore[misc]
        fails(ValueError, "key 'fresh'", lambda v=values: kv.broadcast(*v, out=array))  # type: ignore[misc]
    fails(ValueError, "'i' is in the store", lambda: kv.init(["fresh", "i"], [array, array]))
    kv.init("fresh", array)  # nothing of what was refused is in the store


@check
def states_that_cannot_be_loaded_change_nothing(kv: Any) -> None:
    kv = store()
    kv.init("w", mx.nd.ones(SHAPE))
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.1, momentum=0.9))
    value = mx.nd.ones(SHAPE)
    kv.pushpull("w", value)
    text = "holds no optimizer states"
    with tempfile.NamedTemporaryFile() as file, pytest.raises(mx.MXNetError, match=text):
        kv.load_optimizer_states(file.name)
    with pytest.raises(FileNotFoundError):  # as in stock
        kv.load_optimizer_states("/no/such/file")
    for wrong in (kv.save_optimizer_states, kv.load_optimizer_states):
        with pytest.raises(mx.MXNetError, match="name of a file"):
            wrong(3)
    kv.pushpull("w", value)
    value.wait_to_read()


def main() -> None:
    kv = store()
    for function in CHECKS:
        function(kv)
        print("ok", function.__name__, flush=True)
    print("all", len(CHECKS), flush=True)


if __name__ == "__main__":
    main()
