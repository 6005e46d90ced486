"""What a server's own calls are given, and what of them is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pslite_ext.errors import InvalidArgumentError
from pslite_ext.fabric.calls import Calls

SHAPE = (2, 3)


def memory(value: float, *, writable: bool = True) -> memoryview:
    values = np.full(6, value, np.float32)
    values.flags.writeable = writable
    return memoryview(values.data).cast("B")


def values(of: memoryview) -> list[float]:
    return [float(value) for value in np.frombuffer(of, np.float32)]


def test_an_update_changes_the_model_in_place() -> None:
    model, change = memory(1), memory(4, writable=False)
    kept = memoryview(model)
    seen: list[Any] = []

    def update(model: Any, change: Any, updates: int) -> None:
        seen.append((model.shape, change.flags.writeable, updates))
        model += change / updates

    Calls(update, shape=SHAPE).apply(model, change, 2)
    assert seen == [(SHAPE, False, 2)]
    assert values(kept) == [3] * 6


def test_what_a_request_returns_is_what_workers_get() -> None:
    model, shown = memory(2, writable=False), memory(0)
    kept = memoryview(shown)
    Calls(request=lambda model: model * 5, shape=SHAPE).show(model, shown)
    assert values(kept) == [10] * 6
    Calls(request=lambda model: model, shape=SHAPE).show(memory(2), kept)


@pytest.mark.parametrize("wrong", [np.zeros(6, np.float32), np.zeros(SHAPE), None])
def test_a_request_returns_what_the_model_could_be(wrong: Any) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"where the model is of float32 and has \(2, 3\)"
    ):
        Calls(request=lambda _: wrong, shape=SHAPE).show(memory(2), memory(0))


@pytest.mark.parametrize("part", [slice(None), slice(1, 2)])
def test_what_is_lent_cannot_be_kept(part: slice) -> None:
    kept: list[Any] = []

    def keep(model: Any, change: Any, updates: int) -> None:
        kept.append(model[part])

    with pytest.raises(InvalidArgumentError, match="copy what is to be kept"):
        Calls(keep).apply(memory(1), memory(1), 1)


def test_a_frame_that_is_not_collected_yet_keeps_nothing() -> None:
    caught: list[BaseException] = []

    def update(model: Any, change: Any, updates: int) -> None:
        try:
            raise KeyError(updates)
        except KeyError as error:
            why = error  # the frame and its error hold each other, and the arrays
        model += change
        caught.append(ValueError(str(why)))

    Calls(update).apply(memory(1), memory(1), 1)
    assert len(caught) == 1


def test_what_is_copied_can_be_kept() -> None:
    kept: list[Any] = []
    calls = Calls(lambda model, change, updates: kept.append(change.copy()))
    calls.apply(memory(1), memory(4), 1)
    assert kept[0].tolist() == [4] * 6


def test_what_a_call_raises_is_shown_with_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    def update(model: Any, change: Any, updates: int) -> None:
        raise ValueError(f"not {updates}")

    with pytest.raises(ValueError, match="not 7"):
        Calls(update).apply(memory(1), memory(1), 7)
    said = capsys.readouterr().err
    assert "in update" in said
    assert "ValueError: not 7" in said
