"""Series are thinned to what pictures draw."""

from __future__ import annotations

from typing import Any

import pytest

from scripts.lab.report.series import BIN_S, SHORT_S, drawn


def seen(bench: str) -> dict[str, Any]:
    place = dict(zip(("bench", "what", "setting", "system"), (bench, "vgg16", "2 workers", "ours")))
    points = [(0.05 * i, 1e9 + i, 2e9) for i in range(100)]
    return {**place, "throughput": points, "timeline": [(1.0, 2.0, 3.0, 4.0)], "blocks": []}


def test_an_iteration_is_shown_closely_and_not_for_long() -> None:
    (kept,) = drawn([seen("iteration")])
    times = [point[0] for point in kept["throughput"]]
    assert times == pytest.approx([0.05 * i for i in range(61)])
    assert times[-1] == SHORT_S
    assert kept["timeline"] == [[1, 2, 3, 4]]


def test_others_are_shown_as_means() -> None:
    (kept,) = drawn([seen("adapt")])
    assert len(kept["throughput"]) == round(100 * 0.05 / BIN_S)
    assert kept["throughput"][1] == pytest.approx([1.5 * BIN_S, 1e9, 2e9], rel=1e-3)
    assert "timeline" not in kept


def test_layers_are_kept_of_the_cases_that_are_drawn() -> None:
    cases = [{**seen("prophet"), "what": what} for what in ("Fig. 8, resnet152 as", "Table 2")]
    assert ["timeline" in kept for kept in drawn(cases)] == [True, False]


def test_nothing_to_draw_is_not_kept() -> None:
    assert drawn([{**seen("scaling"), "throughput": []}]) == []
