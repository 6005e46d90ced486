"""A worker under torchrun that starts with init_process_group("mercury"): every collective."""

from __future__ import annotations

import math
import mmap
import os
import random
import re
import sys
from collections.abc import Callable
from datetime import timedelta
from unittest.mock import patch

import torch
import torch.distributed as dist

import pslite_ext.torch  # noqa: F401 (it brings the backend)
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.torch import this_worker
from pslite_ext.torch.collectives import PIECE_BYTES_MAX, PIECE_BYTES_MIN, cut
from pslite_ext.torch.staging import Staged
from pslite_ext.torch.words import words_of
from tests.integration.torch_training import LateCopies

SIZES = 60


def pieces() -> None:
    for size in (1, 1024, 1025, 5000, 9_000_001):
        sizes = list(cut(size))
        assert sizes == sorted(sizes, reverse=True)
        assert 0 <= sum(sizes) - size < PIECE_BYTES_MIN
        assert all(piece & (piece - 1) == 0 for piece in sizes)
        assert PIECE_BYTES_MIN <= sizes[-1] <= sizes[0] <= PIECE_BYTES_MAX
    assert words_of("a") != words_of("b")


def sums(rank: int, workers: int) -> None:
    everybody = sum(range(1, workers + 1))
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int32):
        tensor = torch.full((3, 5), rank + 1, dtype=dtype)
        dist.all_reduce(tensor)
        assert (tensor == everybody).all(), tensor
    tensor = torch.arange(12.0).reshape(3, 4).t() * (rank + 1)  # not contiguous
    dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
    assert torch.allclose(tensor, torch.arange(12.0).reshape(3, 4).t() * everybody / workers)
    random.seed(7)
    works = []
    for _ in range(SIZES):
        size = int(2 ** random.uniform(0, 20))
        tensor = torch.full((size,), float(rank + 1))
        works.append((dist.all_reduce(tensor, async_op=True), tensor))
    large = torch.full((3_000_001,), float(rank + 1))
    works.append((dist.all_reduce(large, async_op=True), large))
    for work, tensor in works:
        work.wait()
        assert work.is_completed()
        assert (tensor == everybody).all(), tensor.numel()
    own = torch.full((4,), rank + 1.0)
    dist.reduce(own, workers - 1)
    assert own[0] == (everybody if rank == workers - 1 else rank + 1)
    dist.all_reduce(torch.empty(0))
    dist.all_gather([torch.empty(0) for _ in range(workers)], torch.empty(0))


def a_step_alone() -> None:
    """With nothing but a group; who does no more than that is told so in the end."""
    assert (this_worker._steps, this_worker._shares) == (False, False)
    alone = torch.nn.Linear(1, 1)
    torch.optim.SGD(alone.parameters()).step()
    assert (this_worker._steps, this_worker._shares) == (True, False)
    dist.barrier()
    assert this_worker._shares


def bytes_of_others(rank: int, workers: int) -> None:
    for root in range(workers):
        tensor = torch.tensor([float("nan"), -0.0, 1.5 + root] if rank == root else [9.0] * 3)
        dist.broadcast(tensor, root)
        assert (
            tensor.view(torch.int32).tolist()
            == torch.tensor([float("nan"), -0.0, 1.5 + root]).view(torch.int32).tolist()
        )
    nobody_writes = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ)
    zeros = torch.frombuffer(nobody_writes, dtype=torch.uint8)
    dist.broadcast(given := zeros if rank == 0 else torch.ones_like(zeros), 0)
    assert not given.any()
    gathered = [torch.empty(2, 2, dtype=torch.int64) for _ in range(workers)]
    dist.all_gather(gathered, torch.full((2, 2), rank))
    assert [int(t.sum()) for t in gathered] == [4 * r for r in range(workers)]
    one = torch.empty(workers * 3)
    dist.all_gather_into_tensor(one, torch.full((3,), float(rank)))
    assert one.tolist() == [float(r) for r in range(workers) for _ in range(3)]
    both = [[torch.empty(2), torch.empty(1)] for _ in range(workers)]
    dist.all_gather_coalesced(both, [torch.full((n,), float(rank)) for n in (2, 1)])
    assert [[t.tolist() for t in pair] for pair in both] == [
        [[float(r)] * 2, [float(r)]] for r in range(workers)
    ]
    flags = torch.tensor([rank == 0, True])
    dist.broadcast(flags, 0)
    assert flags.tolist() == [True, True]
    objects: list[object] = [None] * workers
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * rank * 3000})
    assert objects == [{"rank": r, "text": "x" * r * 3000} for r in range(workers)]
    listed: list[object] = [{"lr": 0.5} if rank == 0 else None]
    dist.broadcast_object_list(listed, 0)
    assert listed == [{"lr": 0.5}]


def parts(rank: int, workers: int) -> None:
    output = torch.empty(3)
    dist.reduce_scatter(output, [torch.full((3,), float(r + rank)) for r in range(workers)])
    assert output.tolist() == [float(workers * rank + sum(range(workers)))] * 3
    given = torch.arange(2.0 * workers)
    dist.reduce_scatter_tensor(output := torch.empty(2), given, op=dist.ReduceOp.AVG)
    assert output.tolist() == [2.0 * rank, 2.0 * rank + 1]


def extremes(rank: int, workers: int) -> None:
    """What is no sum, of types that have no sum of their own, too."""
    everybody = [float(r + 1) for r in range(workers)]
    for op, due in (
        (dist.ReduceOp.MIN, 1.0),
        (dist.ReduceOp.MAX, float(workers)),
        (dist.ReduceOp.PRODUCT, math.prod(everybody)),
    ):
        for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.int16, torch.uint8):
            tensor = torch.full((5, 3), rank + 1).to(dtype).t()  # not contiguous
            dist.all_reduce(tensor, op=op)
            assert (tensor == due).all(), (op, tensor)
    bits = torch.tensor([1 << rank, 7], dtype=torch.int32)
    dist.all_reduce(bits, op=dist.ReduceOp.BOR)
    assert bits.tolist() == [(1 << workers) - 1, 7]
    flags = torch.tensor([rank == 1, False, True])
    dist.all_reduce(flags)
    assert flags.tolist() == [True, False, True]
    dist.all_reduce(flags := torch.tensor([rank == 1, True]), op=dist.ReduceOp.MIN)
    assert flags.tolist() == [False, True]
    whole = torch.tensor([rank - 9, 10 * rank], dtype=torch.int32)  # cut towards zero, as by NCCL
    dist.all_reduce(whole, op=dist.ReduceOp.AVG)
    assert whole.tolist() == [-int(9 - (workers - 1) / 2), 5 * (workers - 1)]
    short = torch.tensor([20000], dtype=torch.int16)
    dist.all_reduce(short)
    assert short.item() == (20000 * workers + 2**15) % 2**16 - 2**15
    both = torch.full((2,), complex(rank, 1))
    dist.all_reduce(both)
    assert both.tolist() == [complex(sum(range(workers)), workers)] * 2
    dist.all_reduce(sparse := torch.eye(3).to_sparse())
    assert torch.equal(sparse.to_dense(), workers * torch.eye(3))
    dist.reduce(own := torch.tensor([rank]), 1, op=dist.ReduceOp.MAX)
    assert own.item() == (workers - 1 if rank == 1 else rank)
    output = torch.empty(2)
    dist.reduce_scatter_tensor(output, torch.arange(2.0 * workers) * rank, op=dist.ReduceOp.MAX)
    assert output.tolist() == [2.0 * rank * (workers - 1), (2.0 * rank + 1) * (workers - 1)]


def from_one_to_one(rank: int, workers: int) -> None:
    own = torch.tensor([rank, rank + 1], dtype=torch.int16)
    places = [torch.empty_like(own) for _ in range(workers)] if rank == 1 else None
    dist.gather(own, places, 1)
    if places is not None:
        assert [p.tolist() for p in places] == [[r, r + 1] for r in range(workers)]
    given = [torch.tensor(float(r)) for r in range(workers)] if rank == 0 else None
    dist.scatter(place := torch.empty(()), given, 0)
    assert place.item() == rank
    outputs = [torch.empty(rank + 1) for _ in range(workers)]
    dist.all_to_all(outputs, [torch.full((r + 1,), 10.0 * rank + r) for r in range(workers)])
    assert [t.tolist() for t in outputs] == [[10.0 * r + rank] * (rank + 1) for r in range(workers)]
    dist.all_to_all_single(rows := torch.empty(workers, 2), torch.full((workers, 2), float(rank)))
    assert rows.tolist() == [[float(r)] * 2 for r in range(workers)]
    objects: list[object] = [None] * workers
    dist.gather_object({"rank": rank}, objects if rank == 0 else None, 0)
    assert rank or objects == [{"rank": r} for r in range(workers)]
    after, before = (rank + 1) % workers, (rank - 1) % workers
    received = torch.empty(3)
    operations = [
        dist.P2POp(dist.isend, torch.full((3,), float(rank)), after),
        dist.P2POp(dist.irecv, received, before),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    assert received.tolist() == [float(before)] * 3
    if rank == 0:
        senders = sorted(dist.recv(received) for _ in range(workers - 1))
        assert senders == list(range(1, workers))
    else:
        dist.send(torch.full((3,), 1.0), 0)


def where_new_tensors_go_elsewhere(rank: int, workers: int) -> None:
    rows, given = torch.empty(workers), torch.full((workers,), float(rank))
    with torch.device("meta"):
        dist.all_reduce(given)
        dist.all_to_all_single(rows, given)
    assert rows.tolist() == [float(sum(range(workers)))] * workers


def together(rank: int, workers: int) -> None:
    with dist._coalescing_manager(async_ops=True) as coalesced:
        for tensor in (summed := [torch.ones(n) for n in (2, 3)]):
            dist.all_reduce(tensor)
    coalesced.wait()
    assert [t.tolist() for t in summed] == [[workers] * 2, [workers] * 3]
    gathered = [torch.empty(workers * n) for n in (1, 2)]
    with dist._coalescing_manager():
        for output in gathered:
            dist.all_gather_into_tensor(
                output, torch.full((output.numel() // workers,), 1.0 * rank)
            )
    assert gathered[1].tolist() == [float(r) for r in range(workers) for _ in "ab"]
    scattered = [torch.empty(n) for n in (1, 2)]
    with dist._coalescing_manager():
        for output in scattered:
            dist.reduce_scatter_tensor(output, torch.arange(1.0 * workers * output.numel()))
    assert scattered[1].tolist() == [workers * (2.0 * rank + i) for i in range(2)]


def in_inference_mode(rank: int, workers: int) -> None:
    """As validation is run; what was made in it may be summed afterwards, too."""
    everybody, before = sum(range(workers)), torch.full((300,), 1.0 * rank)
    with torch.inference_mode():
        made = [torch.full((size,), 1.0 * rank) for size in (1, 300, 4096)]
        for tensor in (*made, before):
            dist.all_reduce(tensor)
            assert (tensor == everybody).all(), tensor.numel()
        dist.all_reduce(whole := torch.tensor([rank - 9]), op=dist.ReduceOp.AVG)
        assert whole.item() == -int(9 - (workers - 1) / 2)
        dist.all_reduce(largest := torch.tensor([rank]), op=dist.ReduceOp.MAX)
        assert largest.item() == workers - 1
        gathered = [torch.empty(2) for _ in range(workers)]
        dist.all_gather(gathered, torch.full((2,), 1.0 * rank))
        assert [t.tolist() for t in gathered] == [[1.0 * r] * 2 for r in range(workers)]
        from_one_to_one(rank, workers)
    for tensor in made:
        dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
        torch.testing.assert_close(tensor, torch.full_like(tensor, everybody))
    assert not before.requires_grad_().mul(2).is_inference()  # training may use it
    dist.all_reduce(sparse := torch.eye(3).to_sparse())
    assert not sparse.values().is_inference()


def all_is_begun_by_us(*groups: dist.ProcessGroup) -> None:
    """What a group has no method for, torch takes from Gloo, which may never come back."""
    said = {name: str(getattr(dist.ProcessGroup, name).__doc__) for name in dir(dist.ProcessGroup)}
    begun = {name for name, text in said.items() if re.search(r"-> .*\bWork\b", text)}
    assert len(begun) > 15, said
    for group in groups:
        assert begun <= {*vars(type(group)), "_register_on_completion_hook"}, begun


def of_some(rank: int, workers: int) -> None:
    """Two groups at once, while nobody else does anything; then of all, in another order."""
    ends = [0, workers - 1]
    outer, inner = dist.new_group(ends), dist.new_group(list(range(1, workers - 1)))
    for group, members in ((outer, ends), (inner, list(range(1, workers - 1)))):
        if rank in members:
            dist.all_reduce(mean := torch.tensor([1.0 * rank]), op=dist.ReduceOp.AVG, group=group)
            assert mean.item() == sum(members) / len(members)
            dist.broadcast(first := torch.tensor([rank]), members[0], group=group)
            assert first.item() == members[0]
    if rank in ends:
        other = ends[1 - ends.index(rank)]
        work = dist.isend(torch.tensor([rank]), other, group=outer)
        dist.recv(number := torch.tensor([-1]), other, group=outer)
        work.wait()
        assert number.item() == other
    mine = outer if rank in ends else inner
    all_is_begun_by_us(dist.group.WORLD, mine)
    outputs = [torch.empty(mine.size() * n) for n in (1, 2)]
    with dist._coalescing_manager(group=mine):
        for output in outputs:
            dist.all_gather_into_tensor(
                output, torch.full((output.numel() // mine.size(),), 1.0 * rank), group=mine
            )
    members = dist.get_process_group_ranks(mine)
    assert outputs[1].tolist() == [float(r) for r in members for _ in "ab"]
    scattered = [torch.empty(n) for n in (1, 2)]
    with dist._coalescing_manager(group=mine):
        for output in scattered:
            dist.reduce_scatter_tensor(output, torch.ones(output.numel() * mine.size()), group=mine)
    assert scattered[1].tolist() == [mine.size()] * 2
    alone = dist.new_group([rank], use_local_synchronization=True)
    dist.all_reduce(one := torch.ones(1), group=alone)
    assert one.item() == 1


def ddp(rank: int) -> None:
    torch.manual_seed(rank)
    model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 1))
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        parallel(torch.randn(4, 6)).sum().backward()
        optimizer.step()
    mine = torch.nn.utils.parameters_to_vector(model.parameters()).detach()
    worker_0 = mine.clone()
    dist.broadcast(worker_0, 0)
    assert torch.equal(mine, worker_0)


def refusals(rank: int) -> None:
    vector = torch.ones(2)
    attempts: tuple[Callable[[], object], ...] = (
        lambda: dist.all_reduce(vector.to(torch.float8_e4m3fn)),
        lambda: dist.all_reduce(torch.tensor([True]), op=dist.ReduceOp.AVG),
        lambda: dist.all_reduce(vector, op=dist.ReduceOp.BAND),
        lambda: dist.broadcast(torch.eye(2).to_sparse(), 0),
        lambda: dist.all_gather_into_tensor(torch.ones(5), vector),
    )
    for attempt in attempts:
        try:
            attempt()
        except InvalidArgumentError as error:
            print(f"told {rank}:", str(error).splitlines()[0], flush=True)
        else:
            raise AssertionError("not refused")


def different(rank: int) -> None:
    """The workers do not do the same: one asks for what Gloo carries."""
    try:
        dist.all_reduce(torch.ones(5), op=dist.ReduceOp.MAX if rank else dist.ReduceOp.SUM)
    except InvalidArgumentError as error:
        print(f"told {rank}:", error, flush=True)
    else:
        raise AssertionError("not noticed")


def main() -> None:
    dist.init_process_group("mercury", timeout=timedelta(seconds=100))
    rank, workers = dist.get_rank(), dist.get_world_size()
    assert (rank, workers) == (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    a_step_alone()
    pieces()
    sums(rank, workers)
    bytes_of_others(rank, workers)
    parts(rank, workers)
    extremes(rank, workers)
    from_one_to_one(rank, workers)
    in_inference_mode(rank, workers)
    where_new_tensors_go_elsewhere(rank, workers)
    together(rank, workers)
    of_some(rank, workers)
    ddp(rank)
    refusals(rank)
    dist.barrier()
    dist.barrier(async_op=True).wait()
    again = dist.new_group()
    dist.all_reduce(vector := torch.ones(3), group=again)
    assert vector.tolist() == [workers] * 3
    dist.destroy_process_group(again)
    if "different" in sys.argv:
        different(rank)
    dist.destroy_process_group()
    print(f"all collectives {rank}", flush=True)


if __name__ == "__main__":
    if "staged" in sys.argv:  # the host's tensors go through memory of their own, as a device's do
        with patch("pslite_ext.torch.staging.sender_from", lambda _: Staged(LateCopies())):
            main()
    else:
        main()
