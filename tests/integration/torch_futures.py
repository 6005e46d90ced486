"""A worker whose futures have callbacks that wait for other collectives, several levels deep.

Each worker is late at moments of its own, so what finishes first differs between workers.
"""

from __future__ import annotations

import random
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

import pslite_ext.torch  # noqa: F401 (it brings the backend)

ROUNDS = 12
DEPTH = 4


def late(rank: int) -> None:
    """By nothing, by less than a collective takes, or by more."""
    time.sleep(random.Random(f"{rank} {time.monotonic()}").choice((0.0, 0.0, 0.0005, 0.01)))


def nested(level: int, rank: int, workers: int) -> float:
    """What a sum of ones is, in a callback, in a callback, and so on."""
    late(rank)
    future = dist.all_reduce(torch.ones(5), async_op=True).get_future()
    late(rank)
    if level == 0:
        return float(future.wait()[0][0])

    def callback(done: torch.futures.Future[list[torch.Tensor]]) -> float:
        assert done.value()[0].tolist() == [workers] * 5
        return nested(level - 1, rank, workers)

    return float(future.then(callback).wait())


def chains(rank: int, workers: int) -> None:
    """Many at once, of tensors that look alike: each callback's sum must be its own."""
    ends = []
    for number in range(ROUNDS):
        late(rank)
        future = dist.all_reduce(torch.full((7,), 1.0 * number), async_op=True).get_future()

        def again(done: torch.futures.Future[list[torch.Tensor]]) -> torch.Tensor:
            late(rank)
            tensor = done.value()[0] / workers
            dist.all_reduce(tensor)
            return tensor

        def once_more(done: torch.futures.Future[torch.Tensor]) -> float:
            gathered = [torch.empty(7) for _ in range(workers)]
            dist.all_gather(gathered, done.value())
            return float(sum(t.sum() for t in gathered))

        late(rank)
        ends.append(future.then(again).then(once_more))
    # Of another size than those of the callbacks, which may come first or last.
    dist.all_reduce(torch.ones(7000))
    for number, end in enumerate(ends):
        assert end.wait() == 7 * number * workers * workers, number


def out_of_order(workers: int) -> None:
    """A callback that waits for one that was asked for later."""
    first, second = (dist.all_reduce(torch.ones(3), async_op=True).get_future() for _ in "ab")
    later: list[torch.futures.Future[float]] = []
    asked = first.then(lambda _: later_value(later))
    later.append(second.then(lambda done: float(done.value()[0][0])))
    assert asked.wait() == workers


def later_value(later: list[torch.futures.Future[float]]) -> float:
    while not later:
        time.sleep(0.001)
    return float(later[0].wait())


def over_gloo(rank: int, workers: int) -> None:
    """At two depths at once, of tensors that look alike."""

    def largest(first: int) -> list[int]:
        tensors = [torch.tensor(first + 10 * number + rank) for number in range(10 * ROUNDS)]
        for work in [dist.all_reduce(t, op=dist.ReduceOp.MAX, async_op=True) for t in tensors]:
            work.wait()
        return [int(tensor) - workers + 1 for tensor in tensors]

    future = dist.all_reduce(torch.ones(3), async_op=True).get_future()
    end = future.then(lambda _: largest(5000))
    assert largest(0) == [*range(0, 100 * ROUNDS, 10)]
    assert end.wait() == [*range(5000, 5000 + 100 * ROUNDS, 10)]


def errors() -> None:
    future = dist.all_reduce(torch.ones(3), async_op=True).get_future()
    told: list[BaseException] = []

    def see(done: torch.futures.Future[None]) -> None:
        try:
            done.value()
        except ZeroDivisionError as error:
            told.append(error)

    future.then(lambda _: 1 / 0).then(see).wait()
    assert told


def power_sgd(rank: int) -> None:
    torch.manual_seed(5)
    layers = [torch.nn.Linear(40, 40) for _ in range(6)]
    parallel = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(*layers), bucket_cap_mb=0.007
    )
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=40, start_powerSGD_iter=2)
    parallel.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    torch.manual_seed(rank)
    for step in range(6):
        x = torch.randn(8, 40)
        parallel.zero_grad()
        (parallel(x) ** 2).mean().backward()
        grads = torch.cat([p.grad.reshape(-1) for p in parallel.parameters() if p.grad is not None])
        alike = grads.clone()
        dist.broadcast(alike, 0)
        assert torch.equal(grads, alike), step


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("mercury")
    rank, workers = dist.get_rank(), dist.get_world_size()
    for _ in range(3):
        assert nested(DEPTH, rank, workers) == workers
    chains(rank, workers)
    out_of_order(workers)
    over_gloo(rank, workers)
    errors()
    power_sgd(rank)
    dist.barrier()
    dist.destroy_process_group()
    print("futures of any depth", flush=True)


if __name__ == "__main__":
    main()
