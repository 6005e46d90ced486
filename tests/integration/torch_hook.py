"""DDP with mercury.ddp_comm_hook, over Gloo otherwise, against DDP without it."""

from __future__ import annotations

import copy
import os

import torch
import torch.distributed as dist

import pslite_ext.torch as mercury
from pslite_ext.errors import InvalidArgumentError

STEPS = 20


def trained(with_hook: bool) -> torch.Tensor:
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(30, 400), torch.nn.ReLU(), torch.nn.Linear(400, 2))
    parallel = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.02)
    if with_hook:
        parallel.register_comm_hook(None, mercury.ddp_comm_hook)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.05, momentum=0.9)
    torch.manual_seed(dist.get_rank())
    for _ in range(STEPS):
        optimizer.zero_grad()
        (parallel(torch.randn(8, 30)) ** 2).mean().backward()
        optimizer.step()
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach()


def coded() -> None:
    """One backward: matrices as int8, what is small as bf16, whatever bucket they share."""
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(300, 400), torch.nn.Linear(400, 2))
    twin = copy.deepcopy(model)
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    parallel.register_comm_hook(None, mercury.ddp_comm_hook)
    torch.manual_seed(dist.get_rank())
    x = torch.randn(8, 300)
    (parallel(x) ** 2).mean().backward()
    (twin(x) ** 2).mean().backward()
    for (name, parameter), own in zip(model.named_parameters(), twin.parameters()):
        exact = own.grad / dist.get_world_size()
        dist.all_reduce(exact)
        off = float((parameter.grad - exact).abs().max() / exact.abs().max())
        assert 0 < off < (0.02 if name == "0.weight" else 0.01), (name, off)
        assert name != "0.weight" or off > 0.003, off


def refused() -> None:
    """What it cannot sum, before anything travels."""
    alone = [dist.new_group([rank]) for rank in range(dist.get_world_size())][dist.get_rank()]
    rows = torch.nn.Embedding(5, 2, sparse=True)
    for model, group, state in (
        (torch.nn.Linear(5, 2), alone, None),
        (torch.nn.Linear(5, 2), None, alone),
        (rows, None, None),
    ):
        parallel = torch.nn.parallel.DistributedDataParallel(model, process_group=group)
        parallel.register_comm_hook(state, mercury.ddp_comm_hook)
        x = torch.tensor([1]) if model is rows else torch.ones(1, 5)
        try:
            parallel(x).sum().backward()
        except InvalidArgumentError as error:
            print("told:", error, flush=True)
        else:
            raise AssertionError("not refused")


def main() -> None:
    dist.init_process_group("gloo")
    if os.environ.get("MERCURY_WIRE"):
        coded()
        print("coded", flush=True)
        return
    ours, theirs = trained(True), trained(False)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    dist.broadcast(theirs := ours.clone(), 0)
    assert torch.equal(ours, theirs)
    refused()
    print("as DDP", flush=True)


if __name__ == "__main__":
    main()
