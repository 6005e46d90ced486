"""A wrapped model's training: gradients out as they appear, updates before they are needed."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import filterfalse
from typing import Any

import torch

from pslite_ext import _core
from pslite_ext.job import figures
from pslite_ext.job.wire import Wire, codec_for
from pslite_ext.torch.agreement import Agreement, claim_model, claim_optimizer
from pslite_ext.torch.checks import check_parameters, check_step, names_of
from pslite_ext.torch.choosing import Choice
from pslite_ext.torch.entries import (
    ParameterEntry,
    entry_of,
    hear_in_nested_tensors,
    raw_grad,
    set_raw_grad,
    unheard,
)
from pslite_ext.torch.modes import in_transform
from pslite_ext.torch.modules import (
    ForwardHook,
    Hook,
    is_scripted,
    refuse_assign,
    refuse_parallel_around,
    waiting,
)
from pslite_ext.torch.optimizers import (
    has_step_hooks,
    is_torchs_own,
    parameters_of,
    steps_in_parts,
)
from pslite_ext.torch.order import OrderOfUse
from pslite_ext.torch.parcels import Parcel
from pslite_ext.torch.staging import Sender, sender_from
from pslite_ext.torch.updates import Updates
from pslite_ext.torch.values import take_from_worker_0, type_name, wire_key
from pslite_ext.wire_words import AUTO


class Training:
    """One model and its optimizer. All of it belongs to the thread that trains."""

    def __init__(
        self,
        number: int,
        model: Any,
        optimizer: Any,
        names: dict[Any, str],
        workers: int,
        step: Callable[..., Any],
        wire: Wire,
    ) -> None:
        self._number, self._workers = number, workers
        self._wire = wire
        self._model, self._optimizer, self._names = model, optimizer, names
        self._bare_step = step
        self._may_part = steps_in_parts(optimizer)
        self._lends = is_torchs_own(optimizer)  # which keep no gradient
        self._senders: dict[Any, Sender] = {}  # by device
        self._updates = Updates(optimizer, step, self._senders)
        self._entries: list[ParameterEntry] = []  # in the optimizer's order
        self._parameters: list[Any] = []  # the same
        self._group_of: dict[ParameterEntry, int] = {}
        self._order = OrderOfUse()
        self._orders = 0  # that workers have agreed on
        self._parcels: list[Parcel] = []  # of the agreed order, if there is one
        # Of all orders, by what is in them: the core knows each for as long as the job lasts.
        self._made: dict[tuple[ParameterEntry, ...], Parcel] = {}
        self._unseen: dict[bool, list[Parcel]] = {}  # by whether the model trains
        self._agreement = Agreement(number, names, optimizer, workers, self._heard)
        self._choice = Choice()
        # As what gradients travel if that is the job's choice: now, and from the next backward on.
        self._chosen = self._next = self._choice.word
        self._chooses = False
        self._since, self._waited_s = time.monotonic(), 0.0  # since the last backward's end
        self._in_backward = False
        self._beginning = threading.Lock()  # autograd has a thread for each device
        self._complete_since_step = False
        self._alone = False
        self._steps = self._sums = 0  # made, and begun
        self._additions = 0  # of parameters
        self._frozen: list[ParameterEntry] = []  # which have no hook
        self._nodes: list[Any] = []  # of autograd's, which would lose their hooks
        claim_model(number, "", names, self._codec, optimizer)
        claim_optimizer(number, names, optimizer)
        if _core.outside() is None:  # else it is given today's, once it is let in
            take_from_worker_0(number, "values", [*names, *model.buffers()])
        hear_in_nested_tensors()
        self._take_parameters()
        self._hook_modules()

    # --- hooks ------------------------------------------------------------------------------------

    def _hook_modules(self) -> None:
        for module, parameters in waiting(self._model):
            wait = self._waits_for(parameters)
            module.register_forward_pre_hook(ForwardHook(wait, wait), prepend=True)
        begin = ForwardHook(self._before_model, self._before_graph)
        self._model.register_forward_pre_hook(begin, prepend=True)
        for module in filterfalse(is_scripted, self._model.modules()):
            module._register_load_state_dict_pre_hook(Hook(refuse_assign))
            module.register_load_state_dict_post_hook(Hook(self._model_loaded))

    def _take_parameters(self) -> None:
        """Of the optimizer's groups; those that are new are hooked."""
        self._entries, self._parameters, self._group_of = [], [], {}
        for index, group in enumerate(self._optimizer.param_groups):
            for parameter in group["params"]:
                entry = entry_of(parameter)
                if entry is None:
                    name = self._names[parameter]
                    entry = ParameterEntry(name, parameter, self._codec(parameter), self._note)
                    if parameter.device not in self._senders:
                        self._senders[parameter.device] = sender_from(parameter.device)
                    self._hook_parameter(entry)
                self._entries.append(entry)
                self._parameters.append(parameter)
                self._group_of[entry] = index
        self._chooses = any(entry.codec == AUTO for entry in self._entries)

    def _codec(self, parameter: Any) -> str:
        word = self._wire.word(self._names[parameter])
        return codec_for(word, type_name(parameter.dtype), parameter.shape)

    def _hook_parameter(self, entry: ParameterEntry) -> None:
        if not entry.parameter.requires_grad:
            self._frozen.append(entry)
            return

        def complete(_: Any, came: tuple[Any]) -> None:
            """Its gradient is, as far as this backward goes."""
            parcel = entry.parcel
            if parcel is not None and not parcel.at_rest:
                parcel.settle()  # what is under way is that of an earlier one
            if raw_grad(entry.parameter) is None:
                return  # none came
            if parcel is None or parcel.in_place or self._alone:
                entry.own(*came)
            if not self._in_backward:
                if self._alone:
                    return
                self._backward_begins()
                parcel = entry.parcel
            assert parcel is not None
            parcel.ready.add(entry)
            if len(parcel.ready) == len(parcel.entries):
                self._sums += 1
                parcel.send(self._workers)

        # After all hooks of the script's, which may change the gradient, whenever it adds them.
        with unheard(), torch.inference_mode(False), torch.enable_grad():
            node = entry.parameter.expand_as(entry.parameter).grad_fn.next_functions[0][0]
        node.register_hook(complete)
        self._nodes.append(node)

    def _waits_for(self, parameters: list[Any]) -> Callable[..., None]:
        entries = [entry for entry in map(entry_of, parameters) if entry is not None]

        def wait(*_args: Any) -> None:
            for entry in entries:
                entry.used()

        return wait

    def _before_model(self, model: Any = None, *_args: Any) -> None:
        refuse_parallel_around(model)
        self._updates.check()
        frozen, self._frozen = self._frozen, []
        for entry in frozen:  # some may not be any more
            self._hook_parameter(entry)
        if not self._parcels:
            self._order.watch(self._model.training, self._entries)
        if self._in_backward and torch._C._current_graph_task_id() == -1:
            self._in_backward = False  # a backward that raised has not come to its end
        for parcel in self._unseen.get(self._model.training, ()):
            parcel.entries[0].used()
        # Of parameters that are passed in, nothing is heard in a transform.
        if torch._C._get_tracing_state() is not None or (self._parcels and in_transform()):
            self._wait_for_all()

    def _before_graph(self) -> None:
        """All of the model in a graph of torch.compile's waits once."""
        self._before_model()
        self._wait_for_all()

    def _wait_for_all(self) -> None:
        for entry in self._entries:
            entry.used()

    def _note(self, entry: ParameterEntry) -> bool:
        return self._order.note(entry)

    def _model_loaded(self, *_args: Any) -> None:
        self._agreement.loaded()

    # --- a backward -------------------------------------------------------------------------------

    def _backward_begins(self) -> None:
        with self._beginning:
            if self._in_backward:
                return
            torch.autograd.Variable._execution_engine.queue_callback(self._backward_over)
            self._begin()
            self._travel_as_chosen()
            for parcel in self._parcels:
                parcel.sent = False
                parcel.ready.clear()
            self._in_backward = True

    def _backward_over(self) -> None:
        self._in_backward = False
        self._complete()

    def _begin(self) -> None:
        """With the first gradient: by now a forward has shown the order."""
        if self._parcels:
            return
        self._orders += 1
        which = f"order {self._orders}"
        self._travel_in(self._order.agree(self._entries, self._number, which))

    def _travel_in(self, together: list[list[ParameterEntry]]) -> None:
        self._parcels = [self._parcel_of(tuple(its)) for its in together]
        keys = [wire_key(self._number, "sum", str([e.name for e in its])) for its in together]
        _core.announce(
            [(key, parcel.name, -i) for i, (key, parcel) in enumerate(zip(keys, self._parcels))]
        )
        for index, (key, parcel) in enumerate(zip(keys, self._parcels)):
            parcel.announced(key, -index)
            parcel.travel_as(self._chosen)
        self._unseen = {way: self._order.unseen(self._parcels, way) for way in (True, False)}
        self._agreement.start(self._orders, [entry for entries in together for entry in entries])

    def _parcel_of(self, entries: tuple[ParameterEntry, ...]) -> Parcel:
        if entries not in self._made:
            sender = self._senders[entries[0].device]
            self._made[entries] = Parcel(
                entries, sender, self._is_used, self._update, self._has_waited, self._lends
            )
        self._made[entries].take_up()
        return self._made[entries]

    def _complete(self) -> None:
        """Every worker takes part in every sum, and says of what it had a gradient.

        After each backward: what `.grad` is from then on is the same on all workers.
        """
        self._begin()
        missing = [parcel for parcel in self._parcels if parcel.ready or not parcel.sent]
        for parcel in missing:
            parcel.settle()
        idle = {
            entry
            for parcel in missing
            for entry in parcel.entries
            if raw_grad(entry.parameter) is None
        }
        now = time.monotonic()
        self._sums += len(missing)
        made = f"{self._steps} steps made and {self._sums} sums begun"
        self._agreement.begin(idle, made, now - self._since, self._waited_s)
        self._since, self._waited_s = now, 0.0
        self._next = self._choice.word  # all have heard of the same backward passes
        for parcel in missing:
            parcel.send(self._workers)
        self._complete_since_step = True

    def _has_waited(self, seconds: float) -> None:
        self._waited_s += seconds

    def _heard(self, took_s: float, waited_s: float) -> None:
        if self._chooses and self._choice.heard(took_s, waited_s):
            figures.add("wire", self._choice.word)
            if _core.rank() == 0:
                print(
                    f"mercury: of an iteration of {took_s:.3g} s, workers waited {waited_s:.3g} s; "
                    f"gradients travel as {self._choice.word} from now on",
                    file=sys.stderr,
                )

    def _travel_as_chosen(self) -> None:
        if self._chosen != self._next:
            self._chosen = self._next
            for parcel in self._parcels:
                parcel.travel_as(self._chosen)

    def _is_used(self, entry: ParameterEntry) -> bool:
        return self._agreement.is_used(entry)

    def _update(self, parcel: Parcel) -> None:
        self._updates.wait_for([parcel])

    # --- a step -----------------------------------------------------------------------------------

    def step(self, *args: Any, **kwargs: Any) -> Any:
        """In parts, it notes what is to be done; updates follow when sums are in."""
        self._updates.finish()
        options = dict(kwargs)
        closure = args[0] if args else options.pop("closure", None)
        if not (options or args[1:]) and self._may_part_now():
            loss = None
            if closure is not None:
                with torch.enable_grad():
                    loss = closure()
            self._prepare()
            self._updates.begin(self._parcels, self._group_of)
            return loss
        return self._whole_step(closure, args, kwargs)

    def _may_part_now(self) -> bool:
        scaled = getattr(self._optimizer, "found_inf", None) is not None  # GradScaler's, for now
        return self._may_part and not scaled and not has_step_hooks(self._optimizer)

    def _whole_step(self, closure: Any, args: Any, kwargs: Any) -> Any:
        def with_sums() -> Any:
            loss = closure()
            self._prepare()
            self.synchronize()
            return loss

        if closure is None:
            self._prepare()
            self.synchronize()
        elif args:
            args = (with_sums, *args[1:])
        else:
            kwargs = {**kwargs, "closure": with_sums}
        result = self._bare_step(self._optimizer, *args, **kwargs)
        for parcel in self._parcels:
            parcel.over()
        self._complete_since_step = False
        return result

    def _prepare(self) -> None:
        """All that the optimizer is to see has been sent."""
        with unheard():
            has_gradient = any(
                entry.total is not None or raw_grad(entry.parameter) is not None
                for entry in self._entries
            )
        check_step(self._optimizer, self._parameters, has_gradient)
        if not self._complete_since_step:  # all was accumulated alone, or set by hand
            self._complete()
        self._complete_since_step = False
        self._steps += 1

    # --- for scripts ------------------------------------------------------------------------------

    def synchronize(self) -> None:
        """Waits for all sums that are under way, and does all updates that are left."""
        self._updates.finish()
        for parcel in self._parcels:
            parcel.wait()
        self._agreement.wait()

    meet = synchronize

    def finish_updates(self) -> None:
        self._updates.finish()

    def loaded(self) -> None:
        """The optimizer's state is a checkpoint's."""
        self._agreement.loaded()

    def add_parameters(self) -> None:
        """Those that the optimizer has, and had not; the next forward shows a new order."""
        self.synchronize()
        names = names_of(self._model)
        given = parameters_of(self._optimizer)
        new = check_parameters([p for p in given if entry_of(p) is None], names)
        self._names.update(names)
        self._share(new)
        self._take_parameters()
        self._order, self._parcels, self._unseen = OrderOfUse(), [], {}
        self._complete_since_step = False
        for entry in self._entries:
            entry.parcel = None

    def _share(self, new: dict[Any, str]) -> None:
        """Workers have the same parameters, and worker 0's values."""
        self._additions += 1
        claim_model(self._number, f"{self._additions}", new, self._codec, self._optimizer)
        take_from_worker_0(self._number, f"values {self._additions}", list(new))

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients stay this worker's, and add up; the next backward outside sends the whole.

        Or the step does. All gradients are sent then, since other workers may have had others.
        """
        before, self._alone = self._alone, True
        self._complete_since_step = False
        for parcel in self._parcels:
            parcel.sent = False
        try:
            yield
        finally:
            self._alone = before

    # --- for a worker that comes while the job runs -----------------------------------------------

    def standing(self) -> dict[str, Any]:
        """What it needs to take part from the next backward on; nothing is under way."""
        self.synchronize()
        place = {entry: index for index, entry in enumerate(self._entries)}
        return {
            "workers": self._workers,
            "orders": self._orders,
            "counts": [self._steps, self._sums, self._additions],
            "together": [[place[entry] for entry in p.entries] for p in self._parcels],
            "seen": self._order.seen(place),
            "chosen": [self._chosen, self._next],
            "choice": self._choice.state(),
            "agreement": self._agreement.state(),
        }

    def stand(self, standing: Mapping[str, Any]) -> None:
        """Of that worker: its parameters and its optimizer are the others' already."""
        self._workers, self._orders = standing["workers"], standing["orders"]
        self._steps, self._sums, self._additions = standing["counts"]
        self._chosen, self._next = standing["chosen"]
        self._choice = Choice.of(standing["choice"])
        self._order.saw(standing["seen"], self._entries)
        if standing["together"]:
            together = [[self._entries[i] for i in its] for its in standing["together"]]
            self._travel_in(together)
        self._agreement.stand(standing["agreement"])

    def forget_gradients(self) -> None:
        for parcel in self._parcels:
            if not parcel.stepped:
                parcel.wait()
            parcel.sent = False
        self._complete_since_step = False
        with unheard():
            for entry in self._entries:
                entry.kept = False
                set_raw_grad(entry.parameter, None)
