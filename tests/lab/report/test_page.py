"""From figures to results.json, to a table, to the page of the docs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from scripts.lab.benches import mercury_paper
from scripts.lab.benches.case import Case, Failure, Figure, Row, Setting
from scripts.lab.benches.catalogue import BENCHES, LONG, PROGRAMS, cases_of
from scripts.lab.benches.prophet import foretold_s, greatest_lead, prophet
from scripts.lab.report.page import write_pages
from scripts.lab.report.results import Results, table, with_gains, write
from scripts.lab.report.summary import headings
from scripts.lab.runner import in_turn
from scripts.lab.systems.system import BASIC, FABRIC, TORCH, system
from scripts.lab.workloads.job_config import Config, workload_of

ABOUT = {
    "command": "python runner.py",
    "started": "today",
    "commit": "c0ffee",
    "changed since": False,
    "machine": "2 x chip",
    "kernel": "6",
    "python": "3.11",
    "mxnet": "1.9.1",
    "stock mxnet": "1.9.1",
}


def row(system_name: str, metric: str, *values: float, unit: str = "s") -> Row:
    return Row("communication", "vgg16", system_name, metric, unit, "2 workers", list(values))


def page_of(
    folder: Path, rows: list[Row], failures: Sequence[Failure] = (), **more: Any
) -> tuple[str, list[Path]]:
    """Of one results file: the page of its bench, and the charts."""
    about = {**ABOUT, "skipped": more.get("skipped", {})}
    write(folder / "results.json", about, rows, list(failures), more.get("series", ()))
    write_pages(folder, [folder / "results.json"])
    page = (folder / "benchmarks" / f"{rows[0].bench}.md").read_text()
    charts = sorted((folder / "benchmarks").glob("*.svg"))
    assert all(f"({chart.name})" in page for chart in charts)
    return page, charts


def test_every_bench_has_its_place_on_the_page() -> None:
    assert set(headings()) == set(BENCHES)


def test_gains_say_how_many_times_better() -> None:
    rows = with_gains(
        [row("stock", "time", 2.0, 2.2), row("zmq", "time", 1.0), row("zmq", "floor", 1.0)]
    )
    gains = {r.metric: r.median for r in rows if "gain" in r.metric}
    assert gains == {"time, gain over stock": 2.1}
    turns = with_gains([row("stock", "time", 2.0, 4.0, 9.0), row("zmq", "time", 1.0, 1.0, 3.0)])
    assert turns[-1].values == [2.0, 4.0, 3.0]


def test_what_did_not_take_turns_is_compared_by_medians_and_says_so(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks" / "communication.md"
    for started, name, values in (("1", "stock", (2.0, 4.0, 9.0)), ("2", "zmq", (1.0, 2.0, 3.0))):
        write(
            tmp_path / f"{name}.json",
            {**ABOUT, "started": started},
            [row(name, "time", *values)],
            [],
        )
        write_pages(tmp_path, [tmp_path / f"{name}.json"])
    assert "| zmq | 2 ± 1 | 2 (not by turns) |" in page.read_text()


def test_a_table_says_where_repeats_are_missing(tmp_path: Path) -> None:
    page, _ = page_of(tmp_path, [row("stock", "time", 2.0), row("zmq", "time", 1.0, 1.0, 3.0)])
    assert "vgg16; 2 workers; up to 3 repeats:" in page
    assert "| stock | 2 (1 of 3) |" in page
    assert "| zmq | 1 ± 1 | 2 |" in page
    search = [
        replace(r, bench="tuning") for r in (row("a", "search", 9.0), row("a", "time", 1.0, 1.0))
    ]
    page, _ = page_of(tmp_path, search)
    assert "| a | 9 | 1 |" in page  # which is searched for once


def test_results_hold_repeats_median_and_spread_and_become_a_page(tmp_path: Path) -> None:
    failure = Failure(
        "communication", "vgg16", "2 workers", "mercury-fifo", "scheduler ended\nmore"
    )
    page, _ = page_of(tmp_path, [row("stock", "time", 2.0, 2.4, 2.1)], [failure])
    rows = Results([tmp_path / "results.json"]).rows
    assert (rows[0].values, rows[0].median) == ([2.0, 2.4, 2.1], 2.1)
    assert any("2.1 s +- 0.2" in line for line in table(rows))
    assert "| stock | 2.1 ± 0.2 |" in page
    assert "- failed: mercury-fifo, vgg16; 2 workers: scheduler ended" in page
    assert "commit c0ffee;" in page


def test_a_later_file_replaces_cases_and_forgives_failures(tmp_path: Path) -> None:
    first, second = tmp_path / "b.json", tmp_path / "a.json"
    page = tmp_path / "benchmarks" / "communication.md"
    failure = Failure("communication", "vgg16", "2 workers", "zmq", "wrong sums")
    write(first, ABOUT, [row("stock", "time", 2.0), row("zmq", "time", 1.0)], [failure])
    write_pages(tmp_path, [first])
    assert "- failed: zmq, vgg16; 2 workers: wrong sums" in page.read_text()  # of one repeat
    later = {**ABOUT, "started": "tomorrow"}
    write(second, later, [row("stock", "time", 3.0), row("zmq", "time", 1.0)], [])
    write_pages(tmp_path, [second])
    text = page.read_text()
    assert "| stock | 3 |" in text
    assert "| zmq | 1 | 3 |" in text  # the gain is the later figures'
    assert "failed" not in text


def test_a_page_stays_without_its_results_and_goes_with_new_ones(tmp_path: Path) -> None:
    kept = tmp_path / "benchmarks"
    for commit, rows in (
        ("first", [row("stock", "time", 2.0), Row("sum_kernel", "a", "b", "c", "d", "e", [9.0])]),
        ("second", [row("stock", "time", 3.0)]),
    ):
        write(tmp_path / "r.json", {**ABOUT, "commit": commit}, rows, [])
        write_pages(tmp_path, [tmp_path / "r.json"])  # in place of the one of that name
    assert "commit first;" in (kept / "sum_kernel.md").read_text()
    again = (kept / "communication.md").read_text()
    assert "| stock | 3 |" in again
    assert "commit second;" in again
    assert "first" not in again
    write_pages(tmp_path)
    assert (kept / "communication.md").read_text() == again


def test_throughput_becomes_charts(tmp_path: Path) -> None:
    place = {"bench": "communication", "what": "vgg16", "setting": "2 workers"}
    points = [[0.05 * i, 1e9, 5e8] for i in range(100)]
    series = [{**place, "system": "a<b", "throughput": points}]
    _, charts = page_of(tmp_path, [row("a<b", "time", 2.0)], series=series)
    assert len(charts) == 2
    for chart in charts:
        names = [element.text for element in ElementTree.parse(chart).iter() if element.text]
        assert "a<b" in names
        assert "Mbit/s" in names


def test_a_missing_system_is_on_the_page_with_its_reason(tmp_path: Path) -> None:
    page, _ = page_of(tmp_path, [row("stock", "time", 1.0)], skipped={"mpi": "not installed"})
    assert "- skipped: mpi: not installed" in page


def test_systems_take_turns() -> None:
    setting = Setting()

    def case(bench: str, name: str) -> Case:
        made = system(name, "/stock/python")
        config = Config("rounds", {})
        return Case(bench, "x", made, setting, config, lambda _: {"n": Figure(0.0, "")}, 1)

    cases = [case(b, n) for b in ("goodput", "soak") for n in ("stock", "zmq")]
    order = [(c.bench, c.system.name) for c in in_turn(cases, 2)]
    turn = [("goodput", "stock"), ("goodput", "zmq")]
    assert order == [*turn, *turn, ("soak", "stock"), ("soak", "zmq")]


def test_quick_is_for_every_commit() -> None:
    systems = [system(name, "/stock/python") for name in BASIC]
    quick = cases_of([b for b in BENCHES if b not in LONG], systems, "quick")
    assert sum(case.estimate_s for case in quick) < 300
    everything = [*systems, *(replace(systems[0], name=name) for name in (TORCH, FABRIC))]
    usual = cases_of(BENCHES, everything, "usual")
    assert {case.bench for case in usual} == set(BENCHES) - set(PROGRAMS)


def test_prophet_is_compared_with_bytescheduler_and_its_blocks_are_drawn(tmp_path: Path) -> None:
    rows = [
        Row("prophet", "resnet18", name, "time", "s", "3 workers", [seconds])
        for name, seconds in (("mercury-bytescheduler", 3.0), ("mercury-prophet", 2.0))
    ]
    gains = {(r.system, r.metric): r.median for r in with_gains(rows) if "gain" in r.metric}
    assert gains == {("mercury-prophet", "time, gain over mercury-bytescheduler"): 1.5}
    place = {"bench": "prophet", "what": "resnet18", "setting": "3 workers"}
    blocks = [[0.5, 4e6, 90_000.0], [1.0, 8e6, 180_000.0]]
    series = {**place, "system": "mercury-prophet", "throughput": [], "blocks": blocks}
    page, (chart,) = page_of(tmp_path, rows, series=[series])
    assert page.startswith("# Prophet")
    assert "mean block, kB" in chart.read_text()


def test_prophet_s_rivals_have_predictions() -> None:
    systems = [system(name, "/stock/python") for name in BASIC]
    cases = prophet(systems, "usual")
    at_3 = [c.system for c in cases if c.what == "Table 2, resnet50 as at 3 Gbit/s"]
    at_3 += [c.system for c in cases if c.what.startswith("whole gradients")]
    names = [s.name for s in at_3]
    assert {"zmq", "zmq prophet", "mercury-prophet", "mercury-bytescheduler"} < {*names}
    assert len(names) == len({*names}) == 8
    job = workload_of({"model": "lenet5", "steps": 3}).job()
    foretold = {s.name: foretold_s(job, 1e6, s) for s in at_3}
    assert foretold.pop("zmq") is None
    assert foretold.pop("stock-p3") is None
    times = {name: time for name, time in foretold.items() if time is not None}
    assert len(times) == len(foretold)
    assert times["mercury-mercury"] == min(times.values())
    assert times["mercury-prophet"] < times["zmq prophet"]


def test_a_slow_link_is_what_all_wait_for() -> None:
    systems = [system(name, "/stock/python") for name in BASIC]
    slow = [c for c in prophet(systems, "usual") if c.what.startswith("one worker as at 0.5")]
    assert "stock-p3" in {case.system.name for case in slow}
    assert all(case.disturbance is not None for case in slow)
    slow = [c for c in mercury_paper.mercury_paper(systems, "usual") if "21b" in c.what]
    assert {c.what.split()[2] for c in slow} == {*mercury_paper.SLOWED}
    # With half the rate, all bytes and all computation are in the way of each other for longer.
    outcome: Any = SimpleNamespace(
        rounds_s=[1.2], worker_cpu_s=lambda: [0.1], cpu_s=lambda _role: [0.1]
    )
    usual = [c for c in mercury_paper.mercury_paper(systems, "usual") if "13, vgg19" in c.what]
    ratios = [c[0].measure(outcome)["ratio to floor"].value for c in (slow, usual)]
    assert 0.5 < ratios[0] / ratios[1] < 1
    # So are twice the computation, and rates that are drawn.
    for figure in ("21a, vgg19", "19, "):
        (other,) = (
            c for c in mercury_paper.mercury_paper(systems[:1], "usual") if figure in c.what
        )
        assert other.measure(outcome)["ratio to floor"].value < ratios[1], figure


def test_how_far_a_worker_is_ahead() -> None:
    """Of what each has sent since all began; their clocks are one, their moments are not."""
    first = [(0.0, 100.0, 0.0), (1.0, 1100.0, 0.0), (2.0, 1100.0, 0.0)]
    second = [(0.0, 500.0, 0.0), (2.0, 1500.0, 0.0)]
    assert greatest_lead([first, second]) == pytest.approx(500.0)
    assert greatest_lead([first, first]) == 0.0


def test_models_keep_their_proportions_on_slower_links() -> None:
    """Mercury's evaluation: as much computation beside so many bytes as at 10 Gbit/s."""
    for model in mercury_paper.MODELS:
        whole = workload_of({"model": model})
        at_10 = whole.compute_s / (whole.bytes * 8 / mercury_paper.PUBLISHED)
        for rate in mercury_paper.RATES:
            here = workload_of(mercury_paper.tensors_of(model, rate))
            assert here.compute_s / (here.bytes * 8 / rate) == pytest.approx(at_10, rel=0.01)
            assert here.bytes * 8 / rate == pytest.approx(mercury_paper.LINK_S, rel=0.01)
