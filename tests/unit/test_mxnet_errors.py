"""Whatever a store raises is an MXNetError, and what it was before."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import Any

import mxnet as mx
import pytest

from mxnet_plugins import errors as ours
from mxnet_plugins import keys
from pslite_ext import _core, errors
from pslite_ext.job.reason import why
from tests.cluster import clean_environment


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process with a store; afterwards, as it was."""
    monkeypatch.setattr(errors, "_raised", dict(errors.BY_CODE))
    monkeypatch.setattr(mx.base, "error_types", dict(mx.base.error_types))
    ours.install()


@pytest.mark.parametrize("code", errors.BY_CODE)
def test_every_status_is_one(installed: None, code: int) -> None:
    plain = errors.BY_CODE[code]
    with pytest.raises(mx.MXNetError, match="what happened") as raised:
        errors.raise_status(errors.Failure(code), "what happened")
    assert isinstance(raised.value, plain)
    assert type(raised.value).__name__ == plain.__name__
    assert type(pickle.loads(pickle.dumps(raised.value))) is plain


@pytest.mark.parametrize("code", errors.BY_CODE)
def test_every_error_of_the_engine_is_one(installed: None, code: int) -> None:
    text, name = mx.base.c2pyerror(f"mercury.error_{code}: 1000 tensor 'w': what\nhappened\n")
    error = mx.base.error_types[name](text)
    assert isinstance(error, mx.MXNetError)
    assert isinstance(error, errors.BY_CODE[code])
    assert str(error) == "tensor 'w': what\nhappened"


def test_the_core_s_own(installed: None) -> None:
    with pytest.raises(mx.MXNetError) as raised:
        _core.barrier()
    assert isinstance(raised.value, errors.ClosedError)


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        (lambda: keys.pairs(1.5, mx.nd.ones(1)), (TypeError, errors.InvalidArgumentError)),
        (lambda: keys.pairs("k", 7), (TypeError, errors.InvalidArgumentError)),
        (lambda: keys.pairs(["k"], 7), (TypeError, errors.InvalidArgumentError)),
        (lambda: keys.pairs(["k"], iter([7])), (TypeError, errors.InvalidArgumentError)),
        (lambda: keys.pairs(["k"], "7"), (TypeError, errors.InvalidArgumentError)),
        (lambda: keys.pairs("k", [7]), (TypeError, errors.InvalidArgumentError)),
        (lambda: keys.pairs("k", []), (ValueError, errors.InvalidArgumentError)),
        (lambda: keys.pairs(["k", 1], [mx.nd.ones(1)] * 2), (ValueError,)),
        (lambda: keys.checked("k", 2**31), (ValueError, errors.InvalidArgumentError)),
    ],
)
def test_what_a_store_refuses(given: Any, kinds: tuple[type[Exception], ...]) -> None:
    with pytest.raises(mx.MXNetError) as raised:
        given()
    for kind in kinds:
        assert isinstance(raised.value, kind)


def test_values_of_keys_have_a_length_and_can_be_iterated() -> None:
    """As in MXNet's own stores: a dictionary's values, an array whose rows they are."""
    by_key = {"a": mx.nd.ones((2,)), "b": mx.nd.zeros((2,))}
    rows = mx.nd.array([[1, 1], [0, 0]])
    for values in (list(by_key.values()), by_key.values(), rows):
        grouped = keys.pairs(list(by_key), values)
        got = [(key, array.asnumpy().tolist()) for key, (array,) in grouped]
        assert got == [("a", [1, 1]), ("b", [0, 0])]


def test_the_others_hear_what_mxnet_found_wrong() -> None:
    with pytest.raises(mx.MXNetError) as raised:
        mx.nd.dot(mx.nd.ones((2, 3)), mx.nd.ones((2, 3)))
    said = why(raised.value)
    assert said.startswith("MXNetError: Check failed: ")
    assert said.endswith("[2,3] X [2,3]")


def test_what_was_raised_is_known(installed: None) -> None:
    failure = errors.Failure(errors.InvalidArgumentError.code, number=1 << 60)
    assert failure.number not in errors.told()
    errors.from_status(failure, "tensor 'v': what was raised")
    assert failure.number in errors.told()


def test_settings_that_are_wrong() -> None:
    code = (
        "import mxnet as mx\n"
        "try:\n    mx.kv.create('dist_sync')\n"
        "except mx.MXNetError as error:\n"
        "    print(type(error).__name__, isinstance(error, ValueError))"
    )
    env = clean_environment(DMLC_PS_VAN_TYPE="zmq", DMLC_ROLE="worker", DMLC_NUM_WORKER="0")
    result = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60
    )
    assert result.stdout.strip() == "SettingError True", result.stderr


def test_the_package_of_the_core_needs_no_mxnet() -> None:
    code = "import sys, pslite_ext.errors, pslite_ext.config; assert 'mxnet' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], env=dict(os.environ), check=True, timeout=60)
