"""Workers that do not have the same: every worker hears what differs, on whom, and nobody hangs."""

from __future__ import annotations

import pytest

from pslite_ext.errors import FAILED_ELSEWHERE
from tests.cluster import Cluster, cluster

# By its own error, or by another worker's of the same kind that came first.
ENDED = (1, FAILED_ELSEWHERE)
both_vans = pytest.mark.parametrize("van", ["zmq", "mercury"])

# The last worker has other shapes and types. What fails is caught, and the job goes on.
SHAPES = """
import mxnet as mx
import mxnet_plugins
from pslite_ext.errors import InvalidArgumentError

kv = mx.kv.create("dist_sync")
odd = kv.rank == kv.num_workers - 1


def told(what, use):
    try:
        use()
    except InvalidArgumentError as error:
        assert isinstance(error, mx.MXNetError)
        print(f"{what}: {error}", flush=True)
    else:
        print(f"{what}: nothing", flush=True)


def summed(key, value):
    def use():
        kv.init(key, value)
        kv.pushpull(key, value)
        value.wait_to_read()
    told(key, use)


def pulled(key, value):
    def use():
        out = value.copy()
        kv.broadcast(key, value, out=out)
        out.wait_to_read()
    told(key, use)


def rows(key, value):
    def use():
        kv.init(key, value.tostype("row_sparse"))
        kv.push(key, value.tostype("row_sparse"))
        out = mx.nd.sparse.zeros("row_sparse", value.shape)
        kv.row_sparse_pull(key, out=out, row_ids=mx.nd.array([0]))
    told(key, use)


mxnet_plugins.announce(kv, [("turned", "fc1_weight", 0), (3, "fc2_weight", -1)])
summed("turned", mx.nd.ones((20, 10) if odd else (10, 20)))
summed(3, mx.nd.ones((6,) if odd else (5,)))
summed("type", mx.nd.ones((4,), dtype="int32" if odd else "float32"))
summed("as many bytes", mx.nd.ones((2, 2) if odd else (4,), dtype="float16"))
summed("in parts", mx.nd.ones((1500, 1000) if odd else (1000, 1500)))
pulled("pulled", mx.nd.ones((2, 3) if odd else (3, 2)))
pulled("pulled in parts", mx.nd.ones((1500, 1000) if odd else (1000, 1500)))
rows("rows", mx.nd.ones((8, 2) if odd else (4, 4)))
value = mx.nd.ones((3,))
kv.init("same", value)
kv.pushpull("same", value)
assert value.asnumpy().tolist() == [kv.num_workers] * 3
print("went on", flush=True)
"""

DIFFERS = {
    "turned": ("tensor 'fc1_weight' (key 'turned')", "float32 of shape (10, 20)", "(20, 10)"),
    "3": ("tensor 'fc2_weight' (key 3)", "float32 of shape (5,)", "(6,)"),
    "type": ("tensor 'type'", "float32 of shape (4,)", "int32 of shape (4,)"),
    "as many bytes": ("tensor 'as many bytes'", "float16 of shape (4,)", "float16 of shape (2, 2)"),
    "in parts": ("tensor 'in parts'", "(1000, 1500)", "(1500, 1000)"),
    "pulled": ("tensor 'pulled'", "(3, 2)", "(2, 3)"),
    "pulled in parts": ("tensor 'pulled in parts'", "(1000, 1500)", "(1500, 1000)"),
    "rows": ("tensor 'rows'", "(4, 4)", "(8, 2)"),
}


@pytest.mark.drawn(1)
@both_vans
def test_shapes_and_types(van: str) -> None:
    with cluster(["-c", SHAPES], 3, 2, van=van) as job:
        job.check()
        for worker in job.workers:
            assert "went on" in worker.output, job.report()
            lines = worker.output.splitlines()
            for key, (tensor, first, other) in DIFFERS.items():
                said = [line for line in lines if line.startswith(f"{key}: ")]
                assert len(said) == 1, job.report()
                words = (tensor, first, other, "worker 2 has ", "all workers must use the same")
                for text in words:
                    assert text in said[0], said[0]
                assert "worker 0 has " in said[0] or "worker 1 has " in said[0]


# The last worker pushes another kind of array, or compresses it otherwise. The job goes on.
MANNERS = """
import mxnet as mx
from pslite_ext.errors import InvalidArgumentError

kv = mx.kv.create("dist_sync")
odd = kv.rank == kv.num_workers - 1
ones = mx.nd.ones((4, 3))


def told(what, push):
    kv.init(what, ones)
    try:
        push(what)
        out = mx.nd.zeros((4, 3))
        kv.pull(what, out=out)
        out.wait_to_read()
    except InvalidArgumentError as error:
        print(f"{what}: {error}", flush=True)
    else:
        print(f"{what}: nothing", flush=True)


def sparse_if(this, value=ones):
    return lambda key: kv.push(key, value.tostype("row_sparse") if this else value)


told("sparse", sparse_if(odd))
# All of them do, and back again.
kv.init("turns", ones)
some_rows = mx.nd.sparse.zeros("row_sparse", (4, 3))
for turn in range(1, 9):
    sparse_if(turn % 2, turn * ones)("turns")
    if turn % 4 > 1:  # or at once, while the engine has not begun this one
        out = mx.nd.zeros((4, 3))
        kv.pull("turns", out=out)
        assert (out == turn * kv.num_workers).asnumpy().all(), (turn, out)
        kv.row_sparse_pull("turns", out=some_rows, row_ids=mx.nd.array([2]))
        assert (some_rows.data == turn * kv.num_workers).asnumpy().all(), (turn, some_rows)
kv.set_gradient_compression({"type": "2bit", "threshold": 0.25 if odd else 0.5})
told("threshold", lambda key: kv.push(key, ones))
kv.set_gradient_compression({"type": "none"} if odd else {"type": "2bit", "threshold": 0.5})
told("compression", lambda key: kv.push(key, ones))
kv.set_gradient_compression({"type": "none"})
# The last worker has no optimizer.
kept, kv = kv, mx.kv.create("dist_sync")
if not odd:
    kv.set_optimizer(mx.optimizer.SGD())
told("optimizer", lambda key: kv.push(key, ones))
kv = mx.kv.create("dist_sync")
kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5 if odd else 0.25))
told("options", lambda key: kv.push(key, ones))
kv = kept
# A whole array right behind rows, and its sum is read.
kv.init("both", ones)
kv.push("both", ones.tostype("row_sparse"))
out = 3 * ones
kv.pushpull("both", out)
assert (out == 3 * kv.num_workers).asnumpy().all(), out
kv.pull("both", out=out)
assert (out == 3 * kv.num_workers).asnumpy().all(), out
print("went on", flush=True)
"""

PUSHES = {
    "sparse": ("row_sparse arrays", "whole arrays"),
    "threshold": ("with a threshold of 0.25", "with a threshold of 0.5"),
    "compression": ("whole arrays, 2bit compressed with a threshold of 0.5", "whole arrays"),
    "optimizer": ("whole arrays for SGD", "worker 2 pushes whole arrays"),
    "options": ("for SGD (", "lr = 0.5", "lr = 0.25"),
}


@both_vans
def test_kinds_of_arrays_and_compression(van: str) -> None:
    with cluster(["-c", MANNERS], 3, 2, van=van) as job:
        job.check()
        for worker in job.workers:
            lines = worker.output.splitlines()
            assert "went on" in lines, job.report()
            for key, kinds in PUSHES.items():
                said = [line for line in lines if line.startswith(f"{key}: ")]
                assert len(said) == 1, job.report()
                for text in (f"tensor '{key}'", "worker 2 pushes ", *kinds, "compressed alike"):
                    assert text in said[0], said[0]


# The last batch of one worker's data is smaller.
BATCH_SIZES = """
import mxnet as mx

kv = mx.kv.create("dist_sync")
net = mx.gluon.nn.Dense(3)
net.initialize()
trainer = mx.gluon.Trainer(net.collect_params(), "sgd", kvstore=kv, update_on_kvstore=WHERE)
for size in (4, 4, 4, 4, 3 - kv.rank, 4, 4, 4, 4):
    with mx.autograd.record():
        loss = net(mx.nd.ones((size, 4))).sum()
    loss.backward()
    trainer.step(size)
    loss.asscalar()
print("went on", flush=True)
"""


@pytest.mark.parametrize(("van", "where"), [("mercury", True), ("zmq", False)])
def test_batches_of_other_sizes(van: str, where: bool) -> None:
    with cluster(["-c", BATCH_SIZES.replace("WHERE", str(where))], van=van) as job:
        all_fail(
            job,
            "the workers' optimizers differ: worker ",
            "rescale_grad = 0.333333 from update 5 on; ",
            "rescale_grad = 0.5 from update 5 on; ",
            "must be told the same at each step",
        )
        assert all("went on" not in worker.output for worker in job.workers), job.report()


# Trainer says at once which parameters there are.
ONE_LAYER_MORE = """
import mxnet as mx

kv = mx.kv.create("dist_sync")
net = mx.gluon.nn.Sequential()
for width in (3, 2) + (4,) * kv.rank:
    net.add(mx.gluon.nn.Dense(width))
net.initialize()
trainer = mx.gluon.Trainer(net.collect_params(), "sgd", kvstore=kv)
for _ in range(3):
    with mx.autograd.record():
        loss = net(mx.nd.ones((2, 4))).sum()
    loss.backward()
    trainer.step(2)
    loss.asscalar()
"""


def all_fail(job: Cluster, *texts: str) -> None:
    job.wait()
    for worker in job.workers:
        assert worker.code in ENDED, job.report()
        for text in ("errors.InvalidArgumentError: ", *texts):
            assert text in worker.output, job.report()


@pytest.mark.drawn(1)
@both_vans
def test_one_layer_more(van: str) -> None:
    with cluster(["-c", ONE_LAYER_MORE], van=van) as job:
        all_fail(job, "worker 1 has key 4 ('dense2_bias') and 1 more, which worker 0 does not")


# By hand: nobody can know of worker 1's key before worker 0 has finished.
ONE_KEY_MORE = """
import sys
import mxnet as mx

kv = mx.kv.create("dist_sync")
value = mx.nd.ones((3,))
kv.init("same", value)
kv.pushpull("same", value)
value.wait_to_read()
if kv.rank == 1:
    out = mx.nd.zeros((3,))
    {use}
    out.wait_to_read()
print("done", flush=True)
"""


@pytest.mark.drawn(2)
@both_vans
@pytest.mark.parametrize("use", ["kv.broadcast('more', value, out=out)", "kv.init('more', value)"])
def test_one_key_more(van: str, use: str) -> None:
    with cluster(["-c", ONE_KEY_MORE.format(use=use)], van=van) as job:
        job.wait()
        alone = job.workers[1]
        assert job.workers[0].code == 0, job.report()
        assert alone.code in ENDED, job.report()
        for text in ("Error: ", "tensor 'more'", "worker 0", "has finished"):
            assert text in alone.output, job.report()
        assert "done" not in alone.output, job.report()
        if "broadcast" in use:
            says = "InvalidArgumentError: tensor 'more': worker 1 has it, worker 0 does not have it"
            assert says in alone.output, job.report()


# What fails in MXNet's engine is never read there: a later call of the store raises the same.
# Worker 1 comes second, so that worker 0's calls cannot be refused at once.
CAUGHT = """
import mxnet as mx
from pslite_ext.errors import InvalidArgumentError

kv = mx.kv.create("dist_sync")
value = mx.nd.ones((2, 3) if kv.rank else (3, 2))


def begin(key):
    if kv.rank == 1:
        kv.barrier()
    try:
        kv.broadcast(key, value, out=value.copy())
    except InvalidArgumentError:
        assert kv.rank == 1
    if kv.rank == 0:
        kv.barrier()


def insist(key):
    try:
        while True:
            kv.push(key, value)
    except InvalidArgumentError:
        print("caught", flush=True)


begin("seen")
insist("seen")
if {unseen}:
    begin("unseen")
    if kv.rank == 1:
        insist("unseen")
print("came to the end", flush=True)
"""


@pytest.mark.drawn(1)
@both_vans
def test_what_was_caught_does_not_fail_the_job_at_the_end(van: str) -> None:
    with cluster(["-c", CAUGHT.format(unseen=False)], van=van) as job:
        job.check()
        for worker in job.workers:
            assert "caught" in worker.output, job.report()


@pytest.mark.drawn(1)
@both_vans
def test_what_nobody_has_seen_does(van: str) -> None:
    """Even behind something that was: MXNet itself would only tell of that."""
    with cluster(["-c", CAUGHT.format(unseen=True)], van=van) as job:
        job.wait()
        worker = job.workers[0]
        assert worker.code == 1, job.report()
        assert "came to the end" in worker.output, job.report()
        said = worker.output.split("mercury: the job has failed: ")
        assert len(said) == 2, job.report()
        assert "tensor 'unseen'" in said[1], job.report()
