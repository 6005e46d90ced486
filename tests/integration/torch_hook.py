"""DDP with mercury.ddp_comm_hook, over Gloo otherwise, against DDP without it."""

from __future__ import annotations

import torch
import torch.distributed as dist

import pslite_ext.torch as mercury

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


def main() -> None:
    dist.init_process_group("gloo")
    ours, theirs = trained(True), trained(False)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    dist.broadcast(theirs := ours.clone(), 0)
    assert torch.equal(ours, theirs)
    print("as DDP", flush=True)


if __name__ == "__main__":
    main()
