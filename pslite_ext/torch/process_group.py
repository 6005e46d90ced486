"""The backend "mercury" of torch.distributed.

A group of all workers makes its collectives of sums, which is what the transport carries; what sums
cannot do goes over Gloo. A group of some workers is Gloo's, since nobody else takes part in it.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.optim.optimizer import register_optimizer_step_pre_hook

from pslite_ext import _core
from pslite_ext.torch import callbacks, gloo, this_worker
from pslite_ext.torch.beside import Meeting
from pslite_ext.torch.collectives import Collective, collectives
from pslite_ext.torch.flat import (
    bytes_of,
    check_operation,
    host_place,
    in_one_piece,
    numbers,
    operation_of,
    put,
    put_bytes,
    refuse,
    sizes_of,
    tensors_in,
)
from pslite_ext.torch.staging import KINDS

_groups = itertools.count()


def create(asked: Any, _options: Any) -> Any:
    """For torch.distributed, which asks for a group with these ranks of the workers."""
    ranks = list(asked.global_ranks_in_group)  # none: all, in order
    if not ranks or ranks == list(range(dist.get_world_size())):
        return ProcessGroup(asked.store, asked.group_rank, asked.group_size, asked.timeout)
    return gloo.GroupOfSome(asked)


@functools.cache
def _hear_of_a_step() -> None:
    """Of any optimizer, once: a group alone averages nothing."""

    def steps(*_: Any) -> None:
        hook.remove()
        this_worker.steps()

    hook = register_optimizer_step_pre_hook(steps)


class CollectiveWork(dist._Work):  # type: ignore[misc]
    """One collective under way."""

    def __init__(self, collective: Collective, result: Any, patience: timedelta) -> None:
        super().__init__()
        self._collective, self._result, self._patience = collective, result, patience

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        self._collective.wait((timeout or self._patience).total_seconds())
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._collective.over.is_set()

    def is_success(self) -> bool:
        return self.is_completed() and self._collective.error is None

    def exception(self) -> BaseException | None:
        return self._collective.error

    def result(self) -> Any:
        return self._result

    def get_future(self) -> callbacks.Future:
        return self._collective.result(self._result)


class ProcessGroup(dist.ProcessGroup):  # type: ignore[misc]
    """Of all workers, in the job's order."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        workers = this_worker.join(Meeting(store, rank, size))
        if (size, rank) != (workers, _core.rank()):
            refuse(
                f"this is rank {rank} of {size}, but worker {_core.rank()} of {workers} in the "
                "job: give init_process_group the rank and the world size of the job"
            )
        if _core.elastic():
            refuse(
                "MERCURY_MIN_WORKERS is set, and torch.distributed knows of no job that goes on "
                "without some of its ranks: use mercury.wrap, or unset it"
            )
        if size > 1:
            _hear_of_a_step()
        self._number = next(_groups)
        self._patience = timeout
        self._name = ""
        # torch asks it what it knows; all that begins something has a method here.
        self._gloo = gloo.connect(store, rank, size, timeout)
        self._store, self._gloos = store, {0: self._gloo}
        for kind in KINDS if torch.cuda.is_available() else KINDS[:1]:
            self._register_backend(torch.device(kind), self.BackendType.CUSTOM, self._gloo)

    def getBackendName(self) -> str:
        return "mercury"

    @property
    def group_name(self) -> str:
        return str(dist.distributed_c10d._world.pg_names.get(self, self._name))

    def shutdown(self) -> None:
        """The last moment at which torch knows the name, which it asks for again."""
        self._name = self.group_name

    # --- sums, or what Gloo makes of all workers' numbers -----------------------------------------

    def allreduce(self, tensors: Any, opts: Any = None) -> CollectiveWork:
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        if any(tensor.layout == torch.sparse_coo for tensor in tensors):
            return self._sparse_allreduce(tensors, opts)

        def finish(flats: Sequence[Any]) -> None:
            for tensor, flat in zip(tensors, flats):
                put(tensor, flat)

        return self._reduced("allreduce", opts, [[t] for t in tensors], tensors, finish)

    allreduce_coalesced = allreduce

    def _sparse_allreduce(self, tensors: list[Any], opts: Any) -> CollectiveWork:
        if opts is not None and operation_of(opts) != "SUM":
            refuse(f"no {operation_of(opts)} of sparse tensors")

        def run(by: Any) -> None:
            for tensor in tensors:
                by.allreduce([tensor]).wait()

        return self._over_gloo("allreduce of sparse tensors", run, tensors, lambda: None)

    def reduce(self, tensors: Any, opts: Any) -> CollectiveWork:
        tensors = list(tensors)

        def finish(flats: Sequence[Any]) -> None:
            if self.rank() == opts.rootRank:
                for tensor, flat in zip(tensors, flats):
                    put(tensor, flat)

        what = f"reduce to {opts.rootRank}"
        return self._reduced(what, opts, [[t] for t in tensors], tensors, finish, kept=True)

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> CollectiveWork:
        def finish(flats: Sequence[Any]) -> None:
            for output, given, flat in zip(outputs, inputs, flats):
                sizes = [numbers(tensor).numel() for tensor in given]
                put(output, flat.split(sizes)[self.rank()])

        return self._reduced("reduce_scatter", opts, inputs, list(outputs), finish, kept=True)

    def _reduce_scatter_base(self, output: Any, given: Any, opts: Any = None) -> CollectiveWork:
        return self.reduce_scatter_tensor_coalesced([output], [given], opts)

    def reduce_scatter_tensor_coalesced(
        self, outputs: Any, inputs: Any, opts: Any = None
    ) -> CollectiveWork:
        parts = [self._parts("reduce_scatter", each, own) for each, own in zip(inputs, outputs)]
        return self.reduce_scatter(outputs, parts, opts)

    # So newer versions of torch call them.
    reduce_scatter_single = _reduce_scatter_base
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    # --- bytes: the owner's, plus zeros -----------------------------------------------------------

    def broadcast(self, tensors: Any, opts: Any) -> CollectiveWork:
        tensors = list(tensors)
        # Sums are put into it, and the root's own memory is only read: it may be mapped so.
        fresh = torch.clone if self.rank() == opts.rootRank else torch.zeros_like
        flats = [fresh(bytes_of(tensor)) for tensor in tensors]

        def finish() -> None:
            if self.rank() != opts.rootRank:
                for tensor, flat in zip(tensors, flats):
                    put_bytes(tensor, flat)

        return self._start(f"broadcast from {opts.rootRank}", flats, tensors, finish)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> CollectiveWork:
        flats = []
        for given in inputs:
            own = bytes_of(given)
            everybody = own.new_zeros(self.size(), own.numel())
            everybody[self.rank()] = own
            flats.append(everybody.view(-1))

        def finish() -> None:
            for places, flat in zip(outputs, flats):
                for place, part in zip(places, flat.view(self.size(), -1) if flat.numel() else ()):
                    put_bytes(place, part)

        return self._start("allgather", flats, list(outputs), finish)

    def _allgather_base(self, output: Any, given: Any, opts: Any = None) -> CollectiveWork:
        return self.allgather_into_tensor_coalesced([output], [given], opts)

    def allgather_into_tensor_coalesced(
        self, outputs: Any, inputs: Any, opts: Any = None
    ) -> CollectiveWork:
        parts = [self._parts("allgather", each, own) for each, own in zip(outputs, inputs)]
        return self.allgather(parts, inputs, opts)

    all_gather_single = _allgather_base
    all_gather_single_coalesced = allgather_into_tensor_coalesced

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> CollectiveWork:
        """`outputs` has a list for each worker."""
        return self.allgather([list(places) for places in zip(*outputs)], inputs, opts)

    def barrier(self, opts: Any = None) -> CollectiveWork:
        work = self._start("barrier", [], [], lambda: None)
        if opts is not None and opts.timeout > timedelta(0):
            work._patience = opts.timeout
        return work

    # --- bytes over Gloo --------------------------------------------------------------------------

    def gather(self, outputs: Any, inputs: Any, opts: Any) -> CollectiveWork:
        own = [bytes_of(tensor).cpu() for tensor in inputs]
        places = [[host_place(tensor) for tensor in each] for each in outputs]

        def finish() -> None:
            for each, flats in zip(outputs, places):
                for tensor, flat in zip(each, flats):
                    put_bytes(tensor, flat)

        what = f"gather to {opts.rootRank} of {sizes_of(own)}"
        return self._over_gloo(
            what, lambda by: by.gather(places, own, opts).wait(), outputs[:1], finish
        )

    def scatter(self, outputs: Any, inputs: Any, opts: Any) -> CollectiveWork:
        places = [host_place(tensor) for tensor in outputs]
        own = [[bytes_of(tensor).cpu() for tensor in each] for each in inputs]

        def finish() -> None:
            for tensor, flat in zip(outputs, places):
                put_bytes(tensor, flat)

        what = f"scatter from {opts.rootRank} of {sizes_of(places)}"
        return self._over_gloo(
            what, lambda by: by.scatter(places, own, opts).wait(), list(outputs), finish
        )

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> CollectiveWork:
        own = [bytes_of(tensor).cpu() for tensor in inputs]
        sizes = [bytes_of(tensor).numel() for tensor in outputs]
        flat, place = torch.cat(own), torch.empty(sum(sizes), dtype=torch.uint8, device="cpu")

        def finish() -> None:
            for tensor, part in zip(outputs, place.split(sizes)):
                put_bytes(tensor, part)

        def run(by: Any) -> None:
            given = [part.numel() for part in own]
            by.alltoall_base(place, flat, sizes, given, dist.AllToAllOptions()).wait()

        return self._over_gloo("alltoall", run, list(outputs), finish)

    def alltoall_base(
        self, output: Any, given: Any, output_sizes: Any, input_sizes: Any, opts: Any = None
    ) -> CollectiveWork:
        places, parts = self._split(output, output_sizes), self._split(given, input_sizes)
        if not output.is_contiguous():
            refuse("all_to_all_single needs a contiguous output")
        work = self.alltoall(places, parts, opts)
        work._result = [output]
        return work

    all_to_all_single = alltoall_base

    def send(self, tensors: Any, to: int, tag: int) -> gloo.GlooWork:
        tensors = [in_one_piece(tensor, f"send to {to}") for tensor in tensors]
        return gloo.GlooWork(
            f"send to {to}", tensors, self._patience, self._gloo.send(tensors, to, tag)
        )

    def recv(self, tensors: Any, source: int, tag: int) -> gloo.GlooWork:
        tensors = [in_one_piece(tensor, f"recv from {source}") for tensor in tensors]
        work = self._gloo.recv(tensors, source, tag)
        return gloo.GlooWork(f"recv from {source}", tensors, self._patience, work)

    def recv_anysource(self, tensors: Any, tag: int) -> gloo.GlooWork:
        tensors = [in_one_piece(tensor, "recv from anyone") for tensor in tensors]
        work = self._gloo.recv_anysource(tensors, tag)
        return gloo.GlooWork("recv from anyone", tensors, self._patience, work)

    # --- of all -----------------------------------------------------------------------------------

    def _start_coalescing(self, _device: Any) -> None:
        """Each is as fast alone."""

    def _end_coalescing(self, _device: Any) -> None:
        """They have been started."""

    def _start(
        self, what: str, flats: Sequence[Any], result: Any, finish: Callable[[], None]
    ) -> CollectiveWork:
        what = f"{what}, group {self._number},"
        collective = collectives().sum(what, flats, finish, results=tensors_in(result))
        return CollectiveWork(collective, result, self._patience)

    def _over_gloo(
        self, what: str, run: Callable[[Any], object], result: Any, finish: Callable[[], None]
    ) -> CollectiveWork:
        """Begins when all workers are known to have called it."""
        depth = callbacks.depth()

        def end() -> None:
            by = self._gloo_at(depth)
            gloo.ended(what, lambda: run(by), self._patience, time.monotonic())
            finish()

        return self._start(what, [], result, end)

    def _gloo_at(self, depth: int) -> Any:
        """Gloo tells collectives apart by their order, and each depth of callbacks has its own."""
        if depth not in self._gloos:
            store = dist.PrefixStore(f"callbacks {depth} deep", self._store)
            self._gloos[depth] = gloo.connect(store, self.rank(), self.size(), self._patience)
        return self._gloos[depth]

    def _reduced(
        self,
        what: str,
        opts: Any,
        tensors: Sequence[Sequence[Any]],
        result: Any,
        finish: Callable[[Sequence[Any]], None],
        kept: bool = False,
    ) -> CollectiveWork:
        """Each list of `tensors` as one; `kept`: their memory stays as it is."""
        name = "SUM" if opts is None else operation_of(opts)
        for each in tensors:
            for tensor in each:
                check_operation(name, tensor)
        flats = [
            torch.cat([numbers(t) for t in each]) if len(each) > 1 else numbers(each[0], kept)
            for each in tensors
        ]
        what = f"{what} ({name})"
        if name in ("SUM", "AVG"):
            with torch.inference_mode():  # which may write to any tensor
                for flat in flats if name == "AVG" else ():
                    if flat.is_floating_point():
                        flat.div_(self.size())

            def summed() -> None:
                for flat in flats if name == "AVG" else ():
                    if not flat.is_floating_point():  # as NCCL has it
                        flat.copy_(torch.div(flat, self.size(), rounding_mode="trunc"))
                finish(flats)

            return self._start(what, flats, result, summed)

        options = dist.AllreduceOptions()
        options.reduceOp = opts.reduceOp

        def run(by: Any) -> None:
            for flat in flats:
                on_host = flat.cpu()
                by.allreduce([on_host], options).wait()
                put(flat, on_host)

        what = f"{what} of {sizes_of(flats)}"
        return self._over_gloo(what, run, result, lambda: finish(flats))

    def _parts(self, what: str, each: Any, own: Any) -> list[Any]:
        """Views of a tensor, each as large as `own`, one for each worker."""
        if each.numel() != own.numel() * self.size():
            refuse(f"{what}: {own.numel()} elements a worker, {each.numel()} of all workers")
        if not each.is_contiguous():
            refuse(f"{what} needs a contiguous tensor of all workers")
        return list(each.view(self.size(), own.numel()).unbind())

    def _split(self, tensor: Any, sizes: Any) -> list[Any]:
        if not sizes:
            if tensor.shape[0] % self.size():
                refuse(f"alltoall: {tensor.shape[0]} rows are not as many for each worker")
            sizes = [tensor.shape[0] // self.size()] * self.size()
        return list(tensor.split(list(sizes)))
