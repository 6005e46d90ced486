"""Four workers, of which groups of two shard a model: what torch builds on a backend, on ours.

Its argument: a folder for checkpoints.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.algorithms.join import Join
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

import pslite_ext.torch  # noqa: F401 (it brings the backend)
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.torch.saved_state import TorchState

STEPS = 4
BATCH = 3


def network() -> torch.nn.Sequential:
    torch.manual_seed(4)
    layers = [torch.nn.Linear(9, 7), torch.nn.Tanh(), torch.nn.Linear(7, 5), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(5, 2)).double()


def batch(step: int, workers: range) -> torch.Tensor:
    """The joint batch of some workers."""
    parts = []
    for worker in workers:
        torch.manual_seed(100 * step + worker)
        parts.append(torch.randn(BATCH, 9, dtype=torch.float64))
    return torch.cat(parts)


def trained(model: torch.nn.Module, workers: range) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(STEPS):
        (model(batch(step, workers)) ** 2).mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()


def sharded(mesh: DeviceMesh) -> torch.nn.Module:
    model = network()
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def as_alone(mesh: DeviceMesh, rank: int, workers: int, folder: Path) -> None:
    """One process trains on the joint batch; then a checkpoint brings the weights back."""
    alone = network()
    trained(alone, range(workers))
    model = sharded(mesh)
    trained(model, range(rank, rank + 1))

    def weights_are_right() -> None:
        for (name, parameter), due in zip(model.named_parameters(), alone.parameters()):
            torch.testing.assert_close(
                parameter.full_tensor(), due, rtol=0, atol=1e-9, msg=f"{mesh.ndim} {name}"
            )

    weights_are_right()
    try:
        TorchState({"model": model})
    except InvalidArgumentError as error:
        print("told:", error, flush=True)
    saved = get_model_state_dict(model)
    dcp.save(saved, checkpoint_id=folder / f"mesh_{mesh.ndim}")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    loaded = get_model_state_dict(model)
    dcp.load(loaded, checkpoint_id=folder / f"mesh_{mesh.ndim}")
    set_model_state_dict(model, loaded)
    weights_are_right()


def tensors(mesh: DeviceMesh) -> None:
    """DTensor: from one placement to another, over both dimensions of a mesh."""
    whole = torch.arange(48.0).reshape(8, 6)
    one = distribute_tensor(whole, mesh, [Shard(0), Shard(1)])
    other = one.redistribute(mesh, [Replicate(), Shard(0)])
    assert torch.equal(other.full_tensor(), whole)
    product = one @ distribute_tensor(whole.t().contiguous(), mesh, [Replicate(), Shard(0)])
    assert torch.equal(product.full_tensor(), whole @ whole.t())


def uneven(rank: int) -> None:
    """Join: each worker has another number of batches."""
    model = DistributedDataParallel(network())
    with Join([model]):
        for step in range(2 + rank):
            model(batch(step, range(rank, rank + 1))).sum().backward()


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("mercury")
    rank, workers = dist.get_rank(), dist.get_world_size()
    folder = Path(sys.argv[1])
    as_alone(init_device_mesh("cpu", (workers,)), rank, workers, folder)
    mesh = init_device_mesh("cpu", (2, workers // 2), mesh_dim_names=("replicate", "shard"))
    as_alone(mesh, rank, workers, folder)
    tensors(mesh)
    uneven(rank)
    dist.barrier()
    dist.destroy_process_group()
    print("sharded as alone", flush=True)


if __name__ == "__main__":
    main()
