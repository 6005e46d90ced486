"""`profile_process='server'` of mx.profiler: accepted, and a warning says what there is instead.

Upstream's servers run the optimizer's operators, which its profiler can record. Ours run none.
mx.profiler passes the store on to libmxnet.so, which knows nothing of ours; so what it calls there
is looked through first.
"""

from __future__ import annotations

import warnings
from typing import Any

import mxnet as mx
from mxnet.base import KVStoreHandle

SERVER = 1  # as mx.profiler numbers its processes
SAYS = (
    "profile_process='server' does nothing here: servers run no operators that MXNet could "
    "profile; MERCURY_TRACE_DIR records what they do, and `mercury trace export` makes a Chrome "
    "trace of it (docs/traces.md)"
)


def _plain(handle: Any) -> Any:
    """A handle that libmxnet.so understands: none in place of a store of ours."""
    return handle if isinstance(handle, KVStoreHandle) else KVStoreHandle()


class Library:
    """libmxnet.so as mx.profiler sees it."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._said = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def _ignore(self) -> int:
        if not self._said:
            self._said = True
            warnings.warn(SAYS, stacklevel=4)
        return 0

    def MXSetProcessProfilerConfig(self, count: int, keys: Any, values: Any, handle: Any) -> int:
        if dict(zip(keys, values)).get(b"profile_process") == b"server":
            return self._ignore()
        return int(self._library.MXSetProcessProfilerConfig(count, keys, values, _plain(handle)))

    def MXSetProcessProfilerState(self, state: Any, process: int, handle: Any) -> int:
        if process == SERVER:
            return self._ignore()
        return int(self._library.MXSetProcessProfilerState(state, process, _plain(handle)))

    def MXDumpProcessProfile(self, finished: int, process: int, handle: Any) -> int:
        if process == SERVER:
            return self._ignore()
        return int(self._library.MXDumpProcessProfile(finished, process, _plain(handle)))

    def MXProcessProfilePause(self, paused: int, process: int, handle: Any) -> int:
        if process == SERVER:
            return self._ignore()
        return int(self._library.MXProcessProfilePause(paused, process, _plain(handle)))


def install() -> None:
    """Puts it in mx.profiler's way, once."""
    if not isinstance(mx.profiler._LIB, Library):
        mx.profiler._LIB = Library(mx.profiler._LIB)
