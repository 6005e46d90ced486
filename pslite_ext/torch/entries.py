"""A parameter of a wrapped model, between its gradient's appearance and its update.

While a parameter waits for something, its class is one that hears of its use, whatever code that
is. Reading `.grad` waits for the sum, and after the optimizer's step for the update as well; any
operation of torch's on the parameter itself waits for the update. Before the first gradient, uses
are noted: they are the order in which a forward needs the parameters. Once nothing is to be
waited for, the parameter has its own class again, and costs what it always did.
"""

from __future__ import annotations

import copy
import functools
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import torch

from pslite_ext.errors import InvalidArgumentError
from pslite_ext.torch.layouts import is_dense, same_order
from pslite_ext.wire_words import AUTO, coded_as

if TYPE_CHECKING:
    from pslite_ext.torch.parcels import Parcel

# `.grad` as it is now, of a parameter that waits for nothing, or unheard.
raw_grad: Callable[[Any], Any] = torch.Tensor.grad.__get__
set_raw_grad: Callable[[Any, Any], None] = torch.Tensor.grad.__set__
# By the parameter's id: who has an entry keeps the parameter alive. A copy has none.
wrapped: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def unheard() -> AbstractContextManager[Any]:
    """In this context, uses of parameters are not heard."""
    context: AbstractContextManager[Any] = torch._C.DisableTorchFunctionSubclass()
    return context


_CAN_COUNT = hasattr(torch.Tensor, "_use_count") and hasattr(torch._C, "_storage_Use_Count")
# Asking a tensor for its storage, where there is no other way, costs more than all the rest.
_storage_of: Callable[[Any], int] = getattr(
    torch._C, "_storage_address", lambda tensor: tensor.untyped_storage()._cdata
)


def _holders(tensor: Any) -> int:
    """Of its memory; what asking for the storage leaves behind counts, too."""
    count: int = torch._C._storage_Use_Count(_storage_of(tensor))
    return count


_ALONE = _holders(torch.empty(1, device="cpu")) if _CAN_COUNT else 0


def _is_shared(grad: Any) -> bool:
    """Of what autograd has just made a parameter's `.grad`: whether others have its memory, too.

    Else the base of a view is held by that view and, here, by us; and the memory by these and by
    `.grad`. Where torch cannot count, it may be shared.
    """
    if not _CAN_COUNT:
        return True
    base = grad._base
    if base is None:
        return _holders(grad) > _ALONE + 1
    return base._use_count() > 2 or _holders(grad) > _ALONE + 2


def refuse_sparse(name: str) -> None:
    raise InvalidArgumentError(
        f"parameter '{name}' has a sparse gradient: give its embedding sparse=False"
    )


class ParameterEntry:
    """One parameter's.

    `total` is its gradient from submission to update. While that is under way, `.grad` is empty:
    what a backward adds meanwhile is not mixed with it. `kept`: afterwards `.grad` is to be the
    total. `idle`: this worker had none, and whether another had is not known yet. `touched` hears
    of uses before the first gradient, until it says that it has heard enough.
    """

    def __init__(
        self, name: str, parameter: Any, codec: str, touched: Callable[[ParameterEntry], bool]
    ) -> None:
        self.name, self.parameter = name, parameter
        # As what its gradient travels, and the least that may be, with which its neighbours share.
        self.codec = codec
        small = coded_as("int8", parameter.numel(), parameter.dim())
        self.narrowest = small if codec == AUTO else codec
        self.parcel: Parcel | None = None  # from the first gradient on
        self.total: Any = None
        self.kept = False
        self.idle = False
        # Of the tensor that has been `.grad` in memory of its own, if that is still there.
        self._owned: Callable[[], Any] = lambda: None
        self._touched = touched
        # As it was claimed: what workers have agreed on, and the order in which it is sent.
        self.dtype, self.device = parameter.dtype, parameter.device
        self.stride = parameter.stride()
        self._is_complex = parameter.is_complex()
        self.own_class: Any = type(parameter)
        self.listening_class = _listening(self.own_class)
        wrapped[id(parameter)] = self
        self.listen()

    def listen(self) -> None:
        self.parameter.__class__ = self.listening_class

    def rest(self) -> None:
        self.parameter.__class__ = self.own_class

    def fits(self, grad: Any) -> bool:
        """Whether both are as the parameter was claimed; this is asked for each gradient."""
        return (
            grad.layout is torch.strided
            and grad.stride() == self.stride == self.parameter.stride()
            and grad.dtype is self.dtype
            and grad.device == self.device
            and not (self._is_complex and grad.is_conj())
        )

    def fit(self, grad: Any) -> Any:
        """The gradient in its parameter's memory order, in which some optimizers read both."""
        parameter = self.parameter
        if grad.is_sparse:
            refuse_sparse(self.name)
        self._check_unchanged("parameter", parameter)
        self._check_unchanged("the gradient of parameter", grad)
        if same_order(grad, parameter) and is_dense(grad) and not grad.is_conj():
            return grad
        with torch.no_grad():
            return self._own_copy(grad)

    def _check_unchanged(self, what: str, now: Any) -> None:
        if (now.dtype, now.device) != (self.dtype, self.device):
            raise InvalidArgumentError(
                f"{what} '{self.name}' is {now.dtype} on {now.device}, but the parameter was "
                f"{self.dtype} on {self.device} when it was wrapped: convert the model before "
                "mercury.wrap"
            )

    def own(self, came: Any) -> None:
        """After autograd has added `came`: `.grad` is in memory that nobody else has, so it may be
        divided and summed there.

        Autograd makes the first gradient `.grad` without a copy, if nobody else has that tensor.
        But the tensor may be a view of what nodes that are still to run will read, or of what is
        another parameter's `.grad` as well; and what the script has put there may be anybody's.
        """
        grad = raw_grad(self.parameter)
        if grad is self._owned():
            return
        is_what_came = (
            came is not None
            and grad.layout is came.layout is torch.strided
            and grad.data_ptr() == came.data_ptr()
        )
        if not is_what_came or _is_shared(came):
            grad = grad.clone()
            set_raw_grad(self.parameter, grad)
        self._owned = weakref.ref(grad)

    def take(self) -> None:
        """The gradient goes on its way: its total from now on, or nothing."""
        total = grad = raw_grad(self.parameter)
        if grad is None:
            self.idle = True
        else:
            if not self.fits(grad):
                total = self.fit(grad)
                assert self.parcel is not None
                self.parcel.lends = False
            set_raw_grad(self.parameter, None)
        self.total, self.kept = total, True

    def owns_total(self) -> bool:
        """Whether it may be written. What the script has put there, it may have elsewhere."""
        return self.total is self._owned()

    def make_total(self, values: Any) -> None:
        """A copy of these."""
        self.total = self._own_copy(values)

    def _own_copy(self, values: Any) -> Any:
        """In memory that nobody else has, and in its parameter's order."""
        copied = torch.empty_like(self.parameter, requires_grad=False).copy_(values)
        self._owned = weakref.ref(copied)
        return copied

    def give_back(self) -> None:
        """`.grad` is the total if that is wanted, with what a backward has added meanwhile."""
        if self.kept:
            self.kept = False
            added = raw_grad(self.parameter)
            if self.total is not None:
                if added is not None and added is not self.total:
                    self.total.add_(added)
                set_raw_grad(self.parameter, self.total)

    # --- heard while the parameter listens --------------------------------------------------------

    def used(self) -> None:
        """The parameter may be read, and written, from here on."""
        if self.parcel is None:
            if self._touched(self):
                self.rest()
        elif self.parcel.stepped:
            tracing = torch._C._get_tracing_state()
            torch._C._set_tracing_state(None)  # the update is no part of what torch.jit traces
            try:
                self.parcel.finish()
            finally:
                torch._C._set_tracing_state(tracing)

    def settle(self) -> None:
        """The gradient may be read, and written, from here on."""
        if self.parcel is not None:
            self.parcel.settle()

    def replace(self, value: Any) -> None:
        """The script sets `.grad`. What the optimizer has been told of stays as it is."""
        if self.parcel is not None:
            if not self.parcel.stepped:
                self.parcel.wait()
                self.total = value
            self.kept = False


# What neither reads nor writes values: anything else may.
_ATTRIBUTES = (
    *("grad", "_grad", "grad_fn", "requires_grad", "retains_grad", "is_leaf", "output_nr"),
    *("shape", "dtype", "device", "layout", "ndim", "names", "_version", "_base"),
    *("is_sparse", "is_cuda", "is_cpu", "is_meta", "is_nested", "is_quantized"),
)
_METHODS = (
    *("size", "stride", "dim", "ndimension", "numel", "nelement", "element_size", "get_device"),
    *("storage_offset", "is_contiguous", "is_floating_point", "is_complex", "is_conj", "is_neg"),
    *("is_inference", "requires_grad_", "register_hook", "register_post_accumulate_grad_hook"),
)


def _of_tensors(names: Iterable[str]) -> Iterator[Any]:
    """Not every version of torch has all of them."""
    return (getattr(torch.Tensor, name) for name in names if hasattr(torch.Tensor, name))


_OF_NO_VALUES = frozenset(
    (
        *(attribute.__get__ for attribute in _of_tensors(_ATTRIBUTES)),
        *(attribute.__set__ for attribute in _of_tensors(("grad", "requires_grad"))),
        *_of_tensors(_METHODS),
    )
)


def entry_of(parameter: Any) -> ParameterEntry | None:
    found = wrapped.get(id(parameter))
    return found if isinstance(found, ParameterEntry) else None


@torch.compiler.disable  # type: ignore[misc]
def _hear(used: Any) -> None:
    """Of an operation's arguments: some of them listen."""
    if isinstance(used, torch.Tensor):
        entry = entry_of(used)
        if entry is not None:
            entry.used()
    elif isinstance(used, (list, tuple)):
        for one in used:
            _hear(one)
    elif isinstance(used, dict):
        _hear(tuple(used.values()))


@functools.cache
def hear_in_nested_tensors() -> None:
    """Jagged ones are asked before the parameters, and never ask these."""
    try:
        from torch.nested._internal.nested_tensor import NestedTensor
    except ImportError:  # before torch 2.2
        return
    own = NestedTensor.__torch_function__.__func__

    def hearing(cls: Any, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(issubclass(kind, Listening) for kind in types) and function not in _OF_NO_VALUES:
            _hear((args, kwargs))
        return own(cls, function, types, args, kwargs)

    NestedTensor.__torch_function__ = classmethod(hearing)


@functools.cache
def _asked(types: tuple[Any, ...]) -> tuple[Any, ...]:
    """The classes that torch would ask if no parameter listened."""
    own = (kind.__mro__[2] if issubclass(kind, Listening) else kind for kind in types)
    nobody = torch._C._disabled_torch_function_impl
    return tuple(kind for kind in own if kind.__torch_function__ is not nobody)


class Listening:
    """What a parameter's class is, too, as long as something is to be waited for."""

    __slots__ = ()

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function not in _OF_NO_VALUES:
            _hear((args, kwargs))
        asked = _asked(types)
        if not asked:
            with unheard():
                return function(*args, **(kwargs or {}))
        for kind in asked:
            answer = kind.__torch_function__(function, asked, args, kwargs or {})
            if answer is not NotImplemented:
                return answer
        return NotImplemented

    @property
    def grad(self) -> Any:
        entry = entry_of(self)
        if entry is not None:
            entry.settle()
        with unheard():
            return raw_grad(self)

    @grad.setter
    def grad(self, value: Any) -> None:
        entry = entry_of(self)
        if entry is not None:
            entry.replace(value)
        with unheard():
            set_raw_grad(self, value)

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    # A copy is nobody's, and of the parameter's own class.

    def __reduce_ex__(self, protocol: Any) -> Any:
        with _at_rest(self):
            return self.__reduce_ex__(protocol)

    def __deepcopy__(self, memo: Any) -> Any:
        with _at_rest(self):
            return copy.deepcopy(self, memo)


@contextmanager
def _at_rest(parameter: Any) -> Iterator[None]:
    listening = type(parameter)
    entry = entry_of(parameter)
    if entry is None:
        parameter.__class__ = listening.__mro__[2]
        yield
        return
    entry.settle()
    before = type(parameter)
    entry.rest()
    try:
        yield
    finally:
        parameter.__class__ = before


_classes: dict[Any, type[Any]] = {}


def _listening(own: Any) -> type[Any]:
    if own in _classes:
        return _classes[own]
    members = {"__module__": own.__module__, "__qualname__": own.__qualname__}
    _classes[own] = type(own.__name__, (Listening, own), members)
    return _classes[own]
