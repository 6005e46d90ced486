"""Operations of ours in MXNet's engine, by ctypes alone: any build of MXNet 1.9 takes them."""

from __future__ import annotations

import ctypes
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

from mxnet.base import _LIB, check_call

_PRIORITIZED = 3  # FnProperty::kCPUPrioritized, a pool of its own: never behind real computation
_AsyncFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
Complete = Callable[[], None]
Body = Callable[[Complete], None]


class _Context(ctypes.Structure):
    _fields_ = (("dev_type", ctypes.c_int32), ("dev_id", ctypes.c_int32))


class _OnComplete(ctypes.Structure):
    """What the engine's second argument points at; it is gone after the call."""

    _fields_ = (
        ("callback", ctypes.c_void_p),
        ("engine", ctypes.c_void_p),
        ("param", ctypes.c_void_p),
    )


class Engine:
    """Arrays handed over, and this object, must live until their operations have ended."""

    def __init__(self) -> None:
        self._context = _Context(1, 0)
        self._property = ctypes.c_int(_PRIORITIZED)
        self._numbers = itertools.count(1)
        self._bodies: dict[int, Body] = {}
        self._function = _AsyncFunction(self._begin)

    def push(self, body: Body, reads: Sequence[Any], writes: Sequence[Any], name: str) -> None:
        """Queues `body` behind all earlier operations on the arrays.

        It runs on a thread of the engine, must not block, and sees to it that the function which
        it is given is called once, now or later, from any thread.
        """
        number = next(self._numbers)
        self._bodies[number] = body
        const = (ctypes.c_void_p * len(reads))(*[a.handle for a in reads])
        mutable = (ctypes.c_void_p * len(writes))(*[a.handle for a in writes])
        check_call(
            _LIB.MXEnginePushAsyncND(
                self._function,
                ctypes.c_void_p(number),
                None,
                ctypes.byref(self._context),
                const,
                len(reads),
                mutable,
                len(writes),
                ctypes.byref(self._property),
                0,
                name.encode(),
                ctypes.c_bool(False),
            )
        )

    def note(self, array: Any, when: Callable[[float], None]) -> None:
        """Calls `when` with the time on the clock at which the array was ready to be read."""

        def body(complete: Complete) -> None:
            when(time.monotonic())
            complete()

        self.push(body, [array], [], "note")

    def _begin(self, _run_context: int, on_complete: int, number: int) -> None:
        words = _OnComplete.from_address(on_complete)
        callback, engine, param = _Callback(words.callback), words.engine, words.param
        self._bodies.pop(number)(lambda: callback(engine, param, None))


def memory_of(array: Any) -> Any:
    """A one-dimensional float32 array's memory as a NumPy array. The engine knows nothing of it."""
    import numpy as np

    array.wait_to_read()
    data = ctypes.c_void_p()
    check_call(_LIB.MXNDArrayGetData(array.handle, ctypes.byref(data)))
    floats = ctypes.cast(data, ctypes.POINTER(ctypes.c_float))
    return np.ctypeslib.as_array(floats, shape=(array.size,))
