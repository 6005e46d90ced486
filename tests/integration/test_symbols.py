"""libmxnet.so holds a second ps-lite and ZeroMQ: of ours, others see only the entry point."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pslite_ext import _core


def symbols(which: str) -> list[str]:
    command = ["nm", "--dynamic", which, _core.__file__]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [line.split()[-1].split("@")[0] for line in listing.splitlines()]


def test_only_the_entry_point_is_visible() -> None:
    assert symbols("--defined-only") == ["PyInit__core"]


def test_nothing_of_ours_is_taken_from_libmxnet() -> None:
    """With MXNet loaded first and globally, ours still speaks to its own libzmq and ps-lite."""
    names = symbols("--undefined-only")
    assert [n for n in names if n.startswith(("zmq_", "_ZN2ps", "_ZN4dmlc", "_ZN3zmq"))] == []


def test_checks_are_not_in_it() -> None:
    """What tests with sanitizers look at costs users nothing (base/check.h)."""
    assert b"MERCURY_CHECK(" not in Path(_core.__file__).read_bytes()


def test_either_import_order() -> None:
    for first, second in (("mxnet", "pslite_ext._core"), ("pslite_ext._core", "mxnet")):
        code = (
            f"import {first}\nimport {second}\nimport mxnet as mx\nprint(mx.nd.ones(2).asnumpy())"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60, capture_output=True)
