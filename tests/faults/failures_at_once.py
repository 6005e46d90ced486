"""A script: hundreds of operations begin at the same moment, after the job has failed.

What they all wait for is a gate, an operation of MXNet's engine that this script completes.
"""

from __future__ import annotations

import ctypes
import time

import mxnet as mx

from pslite_ext.job import leaving

KEYS = 400

FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class OnComplete(ctypes.Structure):
    _fields_ = (
        ("callback", CALLBACK),
        ("engine", ctypes.c_void_p),
        ("param", ctypes.c_void_p),
    )


class Gate:
    """Whoever reads `array` waits until it is opened."""

    def __init__(self, array: mx.nd.NDArray) -> None:
        self._complete: OnComplete | None = None

        def begin(_run: object, on_complete: int, _param: object) -> None:
            self._complete = OnComplete.from_buffer_copy(
                ctypes.string_at(on_complete, ctypes.sizeof(OnComplete))
            )

        self._kept = FUNCTION(begin), DELETER(lambda _: None)
        context = (ctypes.c_int32 * 2)(1, 0)
        code = mx.base._LIB.MXEnginePushAsyncND(
            self._kept[0], None, self._kept[1], context, None, 0,
            ctypes.byref(array.handle), 1, None, 0, b"gate", False,
        )  # fmt: skip
        assert code == 0
        while self._complete is None:
            time.sleep(0.01)

    def open(self) -> None:
        assert self._complete is not None
        self._complete.callback(self._complete.engine, self._complete.param, None)


kv = mx.kv.create("dist_sync")
gradient = mx.nd.ones((16,))
outs = [mx.nd.zeros((16,)) for _ in range(KEYS)]
kv.init(list(range(KEYS)), [gradient] * KEYS)
mx.nd.waitall()
gate = Gate(gradient)
for key, out in enumerate(outs):
    kv.pushpull(key, gradient, out=out)
print("waiting", flush=True)
while not leaving.failure():
    time.sleep(0.01)
gate.open()
failed = 0
for out in outs:
    try:
        out.wait_to_read()
    except mx.MXNetError:
        failed += 1
print(f"{failed} of {KEYS} failed", flush=True)
