"""The backend "mercury" of torch.distributed: its collectives, made of sums over all workers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NoReturn

import torch
import torch.distributed as dist

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.torch import membership
from pslite_ext.torch.beside import Meeting
from pslite_ext.torch.collectives import Job, can_sum, collectives

NOT_OFFERED = (
    *("gather", "scatter", "send", "recv", "recv_anysource", "alltoall", "alltoall_base"),
    *("all_to_all_single", "allgather_into_tensor_coalesced"),
    *("all_gather_single_coalesced", "reduce_scatter_single_coalesced"),
    *("reduce_scatter_tensor_coalesced", "monitored_barrier", "split_group"),
)
_groups = itertools.count()


def _refuse(text: str) -> NoReturn:
    raise InvalidArgumentError(f"the backend 'mercury': {text}")


class Work(dist._Work):  # type: ignore[misc]
    """One collective under way."""

    def __init__(self, job: Job, result: Any, patience: timedelta) -> None:
        super().__init__()
        self._job, self._result, self._patience = job, result, patience

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        self._job.wait((timeout or self._patience).total_seconds())
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._job.over.is_set()

    def is_success(self) -> bool:
        return self.is_completed() and self._job.error is None

    def exception(self) -> BaseException | None:
        return self._job.error

    def result(self) -> Any:
        return self._result

    def get_future(self) -> Any:
        return self._job.result(self._result)


class ProcessGroup(dist.ProcessGroup):  # type: ignore[misc]
    """Of all workers: their sums are what the transport carries."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        workers = membership.join(Meeting(store, rank, size))
        if (size, rank) != (workers, _core.rank()):
            _refuse(
                f"a group is always of all {workers} workers, in the job's order; this is rank "
                f"{rank} of {size}, in the job {_core.rank()}: make it with backend='gloo'"
            )
        self._number = next(_groups)
        self._patience = timeout
        self._name = ""

    def getBackendName(self) -> str:
        return "mercury"

    @property
    def group_name(self) -> str:
        return str(dist.distributed_c10d._world.pg_names.get(self, self._name))

    def shutdown(self) -> None:
        """The last moment at which torch knows the name, which it asks for again."""
        self._name = self.group_name

    # --- sums -------------------------------------------------------------------------------------

    def allreduce(self, tensors: Any, opts: Any = None) -> Work:
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        average = self._is_average(opts, tensors)
        flats = [_flat(tensor) for tensor in tensors]
        self._divide(flats, average)

        def finish() -> None:
            for tensor, flat in zip(tensors, flats):
                _put(tensor, flat)

        return self._start(f"allreduce ({_name(average)})", flats, tensors, finish)

    allreduce_coalesced = allreduce

    def reduce(self, tensors: Any, opts: Any) -> Work:
        average = self._is_average(opts, tensors)
        flats = [_flat(tensor).clone() for tensor in tensors]
        self._divide(flats, average)

        def finish() -> None:
            if self.rank() == opts.rootRank:
                for tensor, flat in zip(tensors, flats):
                    _put(tensor, flat)

        what = f"reduce ({_name(average)}) to {opts.rootRank}"
        return self._start(what, flats, list(tensors), finish)

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        average = self._is_average(opts, [tensor for given in inputs for tensor in given])
        flats = [torch.cat([_flat(tensor) for tensor in given]) for given in inputs]
        self._divide(flats, average)

        def finish() -> None:
            for output, given, flat in zip(outputs, inputs, flats):
                output.copy_(flat.split([t.numel() for t in given])[self.rank()].view_as(output))

        return self._start(f"reduce_scatter ({_name(average)})", flats, list(outputs), finish)

    def _reduce_scatter_base(self, output: Any, given: Any, opts: Any = None) -> Work:
        if given.numel() != output.numel() * self.size():
            _refuse(f"reduce_scatter of {given.numel()} elements into {output.numel()} a worker")
        parts = _flat(given).view(self.size(), output.numel()).unbind()
        return self.reduce_scatter([output], [list(parts)], opts)

    reduce_scatter_single = _reduce_scatter_base  # so newer versions of torch call it

    # --- bytes: the owner's, plus zeros -----------------------------------------------------------

    def broadcast(self, tensors: Any, opts: Any) -> Work:
        tensors = list(tensors)
        flats = [_bytes(tensor) for tensor in tensors]
        if self.rank() != opts.rootRank:
            flats = [torch.zeros_like(flat) for flat in flats]

        def finish() -> None:
            if self.rank() != opts.rootRank:
                for tensor, flat in zip(tensors, flats):
                    _put(tensor, flat.view(tensor.dtype))

        return self._start(f"broadcast from {opts.rootRank}", flats, tensors, finish)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        flats = []
        for given in inputs:
            own = _bytes(given)
            everybody = torch.zeros(self.size(), own.numel(), dtype=torch.uint8)
            everybody[self.rank()] = own
            flats.append(everybody.view(-1))

        def finish() -> None:
            for places, flat in zip(outputs, flats):
                for place, part in zip(places, flat.view(self.size(), -1) if flat.numel() else ()):
                    _put(place, part.clone().view(place.dtype))

        return self._start("allgather", flats, list(outputs), finish)

    def _allgather_base(self, output: Any, given: Any, opts: Any = None) -> Work:
        if output.numel() != given.numel() * self.size():
            _refuse(f"allgather of {given.numel()} elements a worker into {output.numel()}")
        if not output.is_contiguous():
            _refuse("all_gather_into_tensor needs a contiguous output")
        parts = output.view(self.size(), given.numel()).unbind()
        return self.allgather([list(parts)], [given], opts)

    all_gather_single = _allgather_base

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """`outputs` has a list for each worker."""
        return self.allgather([list(places) for places in zip(*outputs)], inputs, opts)

    def barrier(self, opts: Any = None) -> Work:
        return self._start("barrier", [], [], lambda: None)

    # --- of all -----------------------------------------------------------------------------------

    def _start(
        self, what: str, flats: Sequence[Any], result: Any, finish: Callable[[], None]
    ) -> Work:
        job = collectives().sum(f"{what}, group {self._number},", flats, finish)
        return Work(job, result, self._patience)

    def _is_average(self, opts: Any, tensors: Sequence[Any]) -> bool:
        op = dist.ReduceOp.SUM if opts is None else opts.reduceOp
        average = bool(op == dist.ReduceOp.AVG)
        if not (average or op == dist.ReduceOp.SUM):
            name = getattr(op, "op", op).name
            _refuse(f"{name} is not offered, SUM and AVG are; use a group with backend='gloo'")
        for tensor in tensors:
            _check(tensor)
            if not can_sum(tensor.dtype) or (average and not tensor.dtype.is_floating_point):
                _refuse(f"no {_name(average)} of {tensor.dtype}")
        return average

    def _divide(self, flats: Sequence[Any], average: bool) -> None:
        if average:
            with torch.no_grad():
                for flat in flats:
                    flat.div_(self.size())


def _not_offered(name: str) -> Callable[..., NoReturn]:
    def refuse(*_args: Any, **_options: Any) -> NoReturn:
        _refuse(f"{name} is not offered; use a group with backend='gloo'")

    return refuse


for _refused in NOT_OFFERED:
    setattr(ProcessGroup, _refused, _not_offered(_refused))


def _name(average: bool) -> str:
    return "AVG" if average else "SUM"


def _check(tensor: Any) -> None:
    if tensor.device.type != "cpu":
        _refuse(f"a tensor on {tensor.device}: only the CPU is supported")
    if tensor.layout != torch.strided:
        _refuse(f"a tensor of layout {tensor.layout}: only dense ones are supported")


def _flat(tensor: Any) -> Any:
    """Its memory, or a copy if that is not contiguous."""
    _check(tensor)
    return tensor.detach().contiguous().view(-1)


def _bytes(tensor: Any) -> Any:
    return _flat(tensor).view(torch.uint8)


def _put(tensor: Any, flat: Any) -> None:
    """Unless it is there already."""
    if tensor.data_ptr() != flat.data_ptr():
        tensor.detach().copy_(flat.view(tensor.shape))
