"""Figures that others are derived from, and the derived ones: docs/benchmarks/ and README.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.lab.report import page as pages_of_benches
from scripts.lab.report import pictures
from scripts.lab.report.markdown_table import tables
from scripts.lab.report.results import COMPARED, Results
from scripts.lab.report.summary import NOT_MEASURED, figures, headings, pages, summary
from scripts.lab.systems.system import MERCURY

ROOT = Path(__file__).resolve().parents[2]
CASE = re.compile(r"[^;|]+; [^;]+; (?:once|(?:up to )?\d+ repeats):")
# A cell's figure has three digits, and a ratio of two such figures may differ by so much.
ROUNDED = 0.011


FOLDER = ROOT / "docs" / "benchmarks"
PAGES = pages(FOLDER)
README = (ROOT / "README.md").read_text()
PYTORCH = (ROOT / "docs" / "pytorch.md").read_text()
PROPHET = " ".join((ROOT / "docs" / "prophet.md").read_text().split())
BYTES = (ROOT / "docs" / "bytes.md").read_text()
MODELS = ["vgg16", "resnet50", "bert_base"]


def test_the_short_page_says_what_the_others_do() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    assert page == summary(PAGES), "run python -m scripts.lab.report.page"
    assert NOT_MEASURED not in page
    assert len(page) < 10_000


def test_pages_are_what_their_results_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those whose results are kept: each figure on them is computed again."""
    # These take long, and are not looked at here: charts, and races that are simulated.
    for chart in ("bar_chart", "line_chart", "timeline_chart"):
        monkeypatch.setattr(pictures, chart, lambda *_: "")
    monkeypatch.setattr(pages_of_benches, "foretold", lambda _rows: [])
    results = Results((FOLDER / "results").glob("*.json"))
    kept = {row.bench for row in results.rows}
    assert len(kept) > 5
    for bench, heading in headings().items():
        if bench in kept:
            made = pages_of_benches.page_of(bench, heading, results, tmp_path)
            missing = [line for line in made.splitlines() if line not in PAGES[bench].splitlines()]
            assert not missing, f"run python -m scripts.lab.report.page: {bench}"
            assert made == PAGES[bench] or bench == "fabric", bench


def test_every_picture_is_shown() -> None:
    shown = {name for page in PAGES.values() for name in re.findall(r"\]\((\w+\.svg)\)", page)}
    assert shown == {picture.name for picture in FOLDER.glob("*.svg")}


def test_the_pages_gains_and_ratios_follow_from_its_times() -> None:
    ratios = {
        "ratio to floor": ("time", "floor"),
        "predicted / measured": ("predicted time", "time"),
    }
    checked = 0
    for bench, page in PAGES.items():
        for title, (_, *heads), rows in tables(page):
            if not CASE.fullmatch(title):
                continue
            cells = {
                (system, head): float(cell.partition(" ")[0])
                for system, *row in rows
                for head, cell in zip(heads, row)
                if cell
            }
            spreads = {
                (system, head): float(spread[1])
                for system, *row in rows
                for head, cell in zip(heads, row)
                if (spread := re.search(r" ± (\S+)", cell))
            }
            for (system, column), printed in cells.items():
                metric, is_gain, reference = column.partition(", gain over ")
                if is_gain:
                    derived = cells[reference, metric] / cells[system, metric]
                    derived = 1 / derived if COMPARED[bench, metric] else derived
                elif column in ratios:
                    above, below = ratios[column]
                    if not {(system, above), (system, below)} <= cells.keys():  # not on the page
                        continue
                    derived = cells[system, above] / cells[system, below]
                else:
                    continue
                allowed = ROUNDED * derived
                if is_gain:  # a median of quotients, which lie on both sides of the medians' one
                    allowed += 2 * spreads.get((system, column), 0.0)
                assert printed == pytest.approx(derived, abs=allowed), (title, system, column)
                checked += 1
    assert checked > 100


def test_readmes_seconds_are_the_pages() -> None:
    names = {"floor": MERCURY, "mercury-ps": MERCURY, "stock `dist_sync`": "stock"}
    names["stock with P3"] = "stock-p3"
    (shown,) = [table for table in tables(README) if "stock with P3" in table.heads]
    for model, *cells in shown.rows:
        what = model.replace("-", "").lower() + ("" if " x " in model else " x 1")
        for name, cell in zip(shown.heads[1:], cells):
            column = "floor" if name == "floor" else "time"
            asked = f"iteration; ^{what}, network-b; {names[name]}; {column}"
            assert cell.strip("*").removesuffix(" s") == figures(PAGES, asked), (model, name)


def test_readmes_ratios_are_the_pages() -> None:
    """Models in a cell, hosts in columns, systems and places in rows; DDP's best buckets count."""
    names = {
        "mercury-ps": f"scaling; {MERCURY}",
        "MPI": "scaling; mpi",
        "PyTorch DDP": "torch; 0\\.6; torch-ddp.*",
    }
    (shown,) = [table for table in tables(README) if "2 hosts" in table.heads[1]]
    assert _models(shown.heads[0].rpartition(": ")[2], " / ") == MODELS
    for name, *row in shown.rows:
        (page,) = [names[known] for known in names if known in name]
        place = "own hosts" if "own hosts" in name else "beside workers"
        for hosts, cell in zip(shown.heads[1:], row):
            if cell == "not measured":
                continue
            at = f"{page}; {place}; 0\\.3; {hosts.replace(' hosts', '')}"
            for model, printed in zip(MODELS, cell.replace("*", "").split(" / ")):
                best = figures(PAGES, f"{at}; {model}").split()[0]  # has three decimals
                assert float(printed) == pytest.approx(float(best), abs=0.0051), (at, model)


def test_the_gains_over_ddp_are_the_pages() -> None:
    """docs/pytorch.md: amounts of computation in rows, hosts in columns, ranges over the models."""
    (shown,) = [table for table in tables(PYTORCH) if table.heads[0] == "computation"]
    for amount, *cells in shown.rows:
        times, by, _ = amount.split(" ", 2)  # "0.6 s ...", "0.9 times ..."
        of = {"s": times, "times": f"{times}0"}[by]  # a link's way; a ring's
        models = _models(amount.partition("takes: ")[2], ", ") if "takes: " in amount else MODELS
        for heading, cell in zip(shown.heads[1:], cells):
            if cell == "not measured":
                continue
            n = int(heading.removesuffix(" hosts"))
            at = f"torch; DDP's with the best; {n}, {400 // n} Mbit/s; {re.escape(of)}"
            assert cell == figures(PAGES, f"{at}; {'|'.join(models)}"), (amount, heading)


def test_a_step_beside_ddp_s_is_the_pages() -> None:
    limits = figures(PAGES, "turns; torch; time / DDP's").split(" to ")
    printed = " to ".join(f"{float(limit):.2f}" for limit in limits)
    assert f'takes {printed} of DDP\'s (`make bench BENCH="--only turns"`)' in PYTORCH


def test_prophet_s_gains_and_seconds_are_the_pages() -> None:
    at = "prophet; Table 2, resnet50 as at "
    gains = figures(PAGES, f"{at}[123] Gbit; mercury-prophet; time, gain over mercury-bytes.*")
    wfbp, ours = (figures(PAGES, f"{at}3 Gbit; mercury-{x}; time") for x in ("wfbp", "prophet"))
    with_it, without = (
        figures(PAGES, f"prophet; whole gradients; {x}; time") for x in ("zmq prophet", "zmq")
    )
    assert f"{gains} times as fast as ByteScheduler as it is" in PROPHET
    assert f"({with_it} and {without} s an iteration" in PROPHET
    assert f"({wfbp} s)" in PROPHET
    assert f"({ours} s)" in PROPHET


def test_fewer_bytes_are_as_measured() -> None:
    """docs/bytes.md: what is sent and how long it takes, as parts of float32's; losses."""
    (shown,) = [table for table in tables(BYTES) if "loss" in table.heads[-1]]
    seen = 0
    for word, sent, took, _, loss in shown.rows:
        name = word.strip("`")
        for cell, column in ((sent, "sent by.*"), (took, "time")):
            if name in ("float32", "fp16"):
                continue
            at = "wire; 2 workers, 2 servers beside them, 200 Mbit/s; vgg16"
            whole = float(figures(PAGES, f"{at}; mercury-mercury; {column}"))
            part = float(figures(PAGES, f"{at}; mercury-mercury {name}; {column}"))
            assert float(cell) == pytest.approx(part / whole, abs=0.006), (name, column)
            seen += 1
        if loss:
            at = f"accuracy; transformer; torch {name}"
            mean, spread = (float(figures(PAGES, f"{at}; {of}")) for of in ("loss", "loss, spread"))
            assert loss == f"{mean:.3f} ± {spread:.3f}"
            seen += 1
    assert seen == 7


def _models(names: str, between: str) -> list[str]:
    """As benches call them."""
    plain = names.replace("-", "").replace("BERTBase", "bert_base").lower()
    return [name.strip() for name in plain.split(between)]
