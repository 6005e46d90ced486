"""Charts hold what was measured, and say it in words that a reader of SVG can find."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from scripts.lab.benches.adapt import EVERY_S, HIGH, LOW, adapted_after_s
from scripts.lab.benches.case import Row
from scripts.lab.report.chart import bar_chart, line_chart, timeline_chart
from scripts.lab.report.pictures import Pictures
from tracer.report.drawing import BLUE, GREEN, ORANGE

CORNER = re.compile(r"(-?[\d.]+) (-?[\d.]+)")
SVG = "{http://www.w3.org/2000/svg}"


def words(svg: str) -> list[str]:
    return [element.text for element in ElementTree.fromstring(svg).iter() if element.text]


def boxes(svg: str, colour: str) -> list[tuple[float, float, float]]:
    """(left, width, height) of the boxes of a colour, the legend's left out."""
    found = []
    for path in ElementTree.fromstring(svg).iter(f"{SVG}path"):
        if path.get("style") == f"fill: {colour}":
            x, y = zip(*((float(x), float(y)) for x, y in CORNER.findall(path.get("d", ""))))
            found.append((min(x), max(x) - min(x), max(y) - min(y)))
    return found[:-1]


def dots(svg: str, colour: str) -> list[tuple[float, float]]:
    """Where the points of a colour are, the legend's left out."""
    return [
        (float(point.get("x", 0)), float(point.get("y", 0)))
        for point in ElementTree.fromstring(svg).iter(f"{SVG}use")
        if point.get("style", "").startswith(f"fill: {colour}")
    ][:-1]


def test_bars_are_as_long_as_their_values_and_missing_ones_are_left_out() -> None:
    svg = bar_chart("t", "y", {"vgg": {"a": 0.5, "b": 1.0}, "resnet": {"b": 0.25}})
    ((_, _, a),) = boxes(svg, BLUE)
    (_, _, b), (_, _, other) = boxes(svg, ORANGE)
    assert (b / a, b / other) == pytest.approx((2, 4), rel=0.01)
    assert {"vgg", "resnet", "a", "b", "y"} <= {*words(svg)}


def test_a_chart_is_the_same_whenever_it_is_drawn() -> None:
    charts = [line_chart("t", "x", "y", {"a": [(0, 1), (1, 2)], "b": []}) for _ in range(2)]
    assert charts[0] == charts[1]


def test_doubled_values_are_evenly_spaced() -> None:
    svg = line_chart("t", "x", "y", {"a": [(1, 1), (2, 2), (4, 3), (8, 4)]}, doubling=True)
    points = dots(svg, BLUE)
    gaps = [b - a for (a, _), (b, _) in zip(points, points[1:])]
    assert gaps == pytest.approx([gaps[0]] * 3, abs=0.2)
    assert {"1", "2", "4", "8"} <= {*words(svg)}


def test_a_timeline_shows_each_layer_s_three_phases() -> None:
    # Two layers: backward 0..1 of the second, 1..2 of the first; forward waits for the second.
    layers = [(2.0, 3.0, 3.0, 4.0), (1.0, 8.0, 8.0, 10.0)]
    svg = timeline_chart("t", {"ours": layers})
    second = boxes(svg, ORANGE)
    assert second[1][1] / second[0][1] == pytest.approx(7, rel=0.01)
    forward = boxes(svg, GREEN)
    assert forward[1][1] / forward[0][1] == pytest.approx(2, rel=0.01)
    backward = boxes(svg, BLUE)
    assert backward[0][1] == pytest.approx(backward[1][1])
    assert "ours" in words(svg)


def row(what: str, system: str, metric: str, value: float, unit: str = "") -> Row:
    return Row("any", what, system, metric, unit, "", [value])


def test_a_page_shows_speed(tmp_path: Path) -> None:
    pictures = Pictures(tmp_path / "charts")
    shown = pictures.speed(
        [row("vgg16 x 1", "zmq", "ratio to floor", 2.0), row("vgg16 x 1", "zmq", "time", 9.0)]
    )
    assert shown[1].endswith("(any_speed_by_system_and_model.svg)")
    assert (tmp_path / "charts" / "any_speed_by_system_and_model.svg").exists()
    assert pictures.speed([]) == []


def test_a_link_is_used_from_the_first_full_window_on() -> None:
    sent, series = 0.0, []
    for sample in range(80):
        at = 0.05 * sample
        series.append((at, sent, sent))
        sent += (LOW if at < 1.2 else HIGH) / 8 * 0.05 * 0.95  # one direction as the other
    changed = 1.0
    assert adapted_after_s(series, changed, changed + EVERY_S, HIGH) == pytest.approx(0.2, abs=0.06)
    assert adapted_after_s(series, 0.0, 1.0, LOW) == pytest.approx(0, abs=0.06)
    assert adapted_after_s(series, 0.0, 1.0, HIGH) is None


def scaled(
    n: int,
    place: str,
    rate: int,
    ratio: float,
    name: str = "mercury-mercury",
    scale: float = 0.06,
    computed: float = 0.6,
) -> Row:
    way_s = 8 * 553.43 * scale / rate
    what = f"vgg16 x {scale:g}, {computed * way_s:.3f} s of computation"
    setting = f"{n} workers, {n} servers{place}, {rate} Mbit/s"
    return Row("scaling", what, name, "ratio to floor", "", setting, [ratio])


def test_scaling_is_drawn_by_placement_with_most_bytes_at_the_highest_rate(tmp_path: Path) -> None:
    of = scaled
    rows = [of(n, place, 1000 // n, 1.01) for n in (2, 4, 8) for place in ("", " beside them")]
    rows += [of(2, "", 250, 3.0), of(2, " beside them", 500, 1.13, "mpi")]
    rows += [of(2, "", 1000, 3.0, scale=0.03)]
    rows += [replace(of(8, "", 999, 9.0), setting="8 workers, 4 servers, 999 Mbit/s")]
    (line,) = Pictures(tmp_path).scaling(rows)[1:]
    (chart,) = tmp_path.glob("*.svg")
    assert f"({chart.name})" in line
    svg = chart.read_text()
    assert {"mercury, own hosts", "mercury, beside"} <= {*words(svg)}
    assert "mpi, beside" not in words(svg)  # one point is no line
    assert len({round(y, 1) for _, y in dots(svg, BLUE)}) == 1


def test_curves_end_with_the_last_loss(tmp_path: Path) -> None:
    def row(what: str, metric: str, value: float) -> Row:
        return Row("accuracy", what, "torch bf16", metric, "", "here", [value])

    what = "lenet5, 240 steps"
    rows = [row(what, "loss", 1.0), row(what, "loss after 1 of 2", 2.0)]
    shown = Pictures(tmp_path).curves([*rows, row("a race", "loss", 3.0)])
    assert shown == ["", "![lenet5, 240 steps: loss](accuracy_lenet5.svg)"]
    assert {"torch bf16", "loss"} <= {*words((tmp_path / "accuracy_lenet5.svg").read_text())}
