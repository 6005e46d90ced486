"""Figures that others are derived from, and the derived ones: docs/benchmarks.md and README.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts.lab.benches.slow_host import APART
from scripts.lab.report.page import HEADINGS, sections
from scripts.lab.report.results import COMPARED, number
from scripts.lab.systems.system import MERCURY

ROOT = Path(__file__).resolve().parents[2]
CASE = re.compile(r"(?P<what>[^;|]+); (?P<setting>[^;]+); (?:once|\d+ repeats):")
# A cell's figure has three digits, and a ratio of two such figures may differ by so much.
ROUNDED = 0.011


@dataclass(frozen=True)
class Table:
    bench: str
    what: str
    setting: str
    cells: dict[tuple[str, str], float]  # of a system and a column without its unit


def _rows(lines: list[str]) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]


def _tables(page: str) -> list[Table]:
    """One for each case; a column's head has lost its unit, a cell its spread."""
    found = []
    below = sections(page)
    for bench, heading in HEADINGS.items():
        lines = below.get(heading, "").splitlines()
        for i, line in enumerate(lines):
            case = CASE.fullmatch(line)
            if case is None or not lines[i + 2].startswith("| system |"):
                continue
            end = next((j for j in range(i + 2, len(lines)) if not lines[j]), len(lines))
            head, _, *rows = _rows(lines[i + 2 : end])
            columns = [re.sub(r" \[[^]]*\]$", "", column) for column in head]
            cells = {
                (row[0], column): float(cell.partition(" ")[0])
                for row in rows
                for column, cell in zip(columns[1:], row[1:])
                if cell
            }
            found.append(Table(bench, case["what"], case["setting"], cells))
    return found


BENCHMARKS = (ROOT / "docs" / "benchmarks.md").read_text()
PAGE = _tables(BENCHMARKS)
README = (ROOT / "README.md").read_text()


def _close(printed: float, derived: float) -> bool:
    return abs(printed - derived) <= ROUNDED * abs(derived)


def test_the_pages_gains_and_ratios_follow_from_its_times() -> None:
    checked = 0
    for table in PAGE:
        for (system, column), printed in table.cells.items():
            metric, is_gain, reference = column.partition(", gain over ")
            if is_gain:
                mine, other = table.cells[system, metric], table.cells[reference, metric]
                derived = mine / other if COMPARED[table.bench, metric] else other / mine
            elif column == "ratio to floor":
                derived = table.cells[system, "time"] / table.cells[system, "floor"]
            elif column == "predicted / measured":
                predicted = "predicted time"
                derived = table.cells[system, predicted] / table.cells[system, "time"]
            else:
                continue
            assert _close(printed, derived), (table.what, system, column, printed, derived)
            checked += 1
    assert checked > 100


def _first_tables() -> list[list[list[str]]]:
    """README's tables of figures."""
    blocks = re.split(r"\n\n", README.partition("## Try it")[0])
    return [_rows(block.splitlines()) for block in blocks if block.startswith("|")]


def test_readmes_seconds_are_the_pages() -> None:
    names = {"floor": MERCURY, "mercury-ps": MERCURY, "stock `dist_sync`": "stock"}
    names["stock with P3"] = "stock-p3"
    (rows,) = [table for table in _first_tables() if "stock with P3" in table[0]]
    head, _, *models = rows
    assert models
    for model, *cells in models:
        what = model.replace("-", "").lower() + ("" if " x " in model else " x 1")
        (table,) = [
            t for t in PAGE if t.bench == "iteration" and t.what.startswith(f"{what}, network-b")
        ]
        for name, cell in zip(head[1:], cells):
            column = "floor" if name == "floor" else "time"
            printed = float(cell.strip("*").removesuffix(" s"))
            assert printed == table.cells[names[name], column], (model, name)


@pytest.mark.parametrize("place", ["beside", "own hosts"])
def test_readmes_ratios_are_the_pages(place: str) -> None:
    """More and more hosts: models in a cell, hosts in columns, systems and places in rows."""
    names = {"mercury-ps": MERCURY, "MPI": "mpi", "PyTorch DDP": "torch-ddp"}
    (rows,) = [table for table in _first_tables() if "2 hosts" in table[0][1]]
    head, _, *systems = rows
    order = _models(head[0].rpartition(": ")[2], " / ")
    here = [row for row in systems if ("own hosts" in row[0]) == (place == "own hosts")]
    assert here
    for name, *cells in here:
        (system,) = [names[known] for known in names if known in name]
        for hosts, cell in zip(head[1:], cells):
            n, rate = re.findall(r"\d+", hosts)
            servers = f"{n} servers" + (" beside them" if place == "beside" else "")
            for model, printed in zip(order, cell.replace("*", "").split(" / ")):
                setting = f"{n} workers, {servers}, {rate} Mbit/s"
                (what,) = {
                    t.what
                    for t in PAGE
                    if t.bench == "scaling"
                    and t.what.startswith(f"{model} x ")
                    and APART not in t.what
                    and t.setting == setting
                }
                exact = _best(system, what, setting)
                assert printed == f"{exact:.2f}", (name, hosts, model, number(exact))


def _best(system: str, what: str, setting: str) -> float:
    """Of a rival's variants, such as DDP's buckets in PyTorch's bench, the best counts."""
    return min(
        ratio
        for table in PAGE
        if (table.what, table.setting) == (what, setting)
        for (name, column), ratio in table.cells.items()
        if column == "ratio to floor" and f"{name} ".startswith(f"{system} ")
    )


def test_the_gains_over_ddp_are_the_pages() -> None:
    """docs/pytorch.md: amounts of computation in rows, hosts in columns, ranges over the models."""
    begins = "| hosts | of the models | computation / way | computation / ring |"
    head, _, *gains = _rows(_block(sections(BENCHMARKS)[HEADINGS["torch"]], begins))
    models = head[4:]
    page = (ROOT / "docs" / "pytorch.md").read_text()
    hosts, _, *rows = _rows(_block(page, "| computation | 2 hosts |"))
    for amount, *cells in rows:
        times, by, _ = amount.split(" ", 2)  # "0.6 s ...", "0.8 times ...", "as long ..."
        column, ratio = {"s": (2, times), "times": (3, times), "long": (3, "1")}[by]
        asked = _models(amount.partition("takes: ")[2], ", ") if "takes: " in amount else models
        for heading, cell in zip(hosts[1:], cells):
            n = int(heading.removesuffix(" hosts"))
            found = sorted(
                gain
                for row in gains
                if row[0] == f"{n}, {400 // n} Mbit/s" and float(row[column]) == float(ratio)
                for model, gain in zip(models, row[4:])
                if model in asked
            )
            assert cell == " to ".join(dict.fromkeys((found[0], found[-1]))), (amount, heading)


def test_a_step_beside_ddp_s_is_the_pages() -> None:
    ratios = [
        ratio
        for table in PAGE
        if table.bench == "turns"
        for (_, column), ratio in table.cells.items()
        if column == "time / DDP's"
    ]
    page = (ROOT / "docs" / "pytorch.md").read_text()
    printed = re.search(
        r"takes (\S+) to (\S+) of DDP's \(`make bench BENCH=\"--only turns\"`\)", page
    )
    assert printed is not None
    assert list(printed.groups()) == [f"{limit:.2f}" for limit in (min(ratios), max(ratios))]


def _block(text: str, first: str) -> list[str]:
    """The table that begins so."""
    return text[text.index(first) :].partition("\n\n")[0].splitlines()


def _models(names: str, between: str) -> list[str]:
    """As benches call them."""
    plain = names.replace("-", "").replace("BERTBase", "bert_base").lower()
    return [name.strip() for name in plain.split(between)]
