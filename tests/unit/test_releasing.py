"""The numbers on docs/releasing.md are those in the code, all of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pslite_ext import __version__

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "releasing.md").read_text()
ROWS = re.findall(r"^\| ([\w' ]+) \| ([\w.]+) \| (`.+) \|$", PAGE, re.MULTILINE)
PLACE = re.compile(r"`(\w+)` in `([\w/.]+)`")
DEFINED = re.compile(r"^(?:constexpr uint\d+_t )?(k\w*Version|\w*VERSION) = ", re.MULTILINE)


@pytest.mark.parametrize(("now", "where"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_number_is_that_of_the_code(now: str, where: str) -> None:
    places = PLACE.findall(where)
    assert places
    for name, path in places:
        text = (ROOT / path).read_text()
        found = re.search(rf"\b{name}(?:: int|\[\])?(?: = | )b?\"?(?:[a-z]+ )*([\w.]*\d)", text)
        assert found, f"{path} has no {name}"
        assert found[1] == now, f"{path} has {name} {found[1]}"


def test_every_number_of_what_is_installed_is_on_the_page() -> None:
    assert len(ROWS) == 9
    listed = {place for _, _, where in ROWS for place in PLACE.findall(where)}
    others = {("VERSION", "tracer/export/chakra.py")}  # Chakra's own
    for root in ("pslite_ext", "mxnet_plugins", "tracer"):
        for path in [*(ROOT / root).rglob("*.py"), *(ROOT / root).rglob("*.h")]:
            for name in DEFINED.findall(path.read_text()):
                assert (name, str(path.relative_to(ROOT))) in listed | others


def test_other_pages_have_the_same_numbers() -> None:
    now = {name: number for name, number, _ in ROWS}
    title = (ROOT / "docs" / "wire-format.md").read_text().splitlines()[0]
    assert title.endswith(f", version {now['wire format']}")
    trace = (ROOT / "docs" / "trace-format.md").read_text()
    assert f"SketchDLC trace: version {now['traces']}\n" in trace
    assert f"this node version {now['control protocol']}:" in PAGE
    assert f"git tag -a v{now['release']}`" in PAGE
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert changes.splitlines()[2].startswith(f"## {__version__}")
    names = ("control protocol", "wire format", "letters of MLfabric")
    assert ", ".join(f"{name} {now[name]}" for name in names) in changes
