"""Links in the docs lead somewhere, and the picture is one."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pslite_ext.settings_table import TABLE

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?://)([^)\s#]*)(?:#([^)\s]+))?\)")


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", t).lower()) for t in titles]
    return {title.strip().replace(" ", "-") for title in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for path, anchor in LINK.findall(text):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        if anchor:
            assert anchor in anchors(target), f"{path}#{anchor}"


def test_the_security_page_names_what_there_is() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    settings = {setting.name for setting in TABLE}
    assert set(re.findall(r"MERCURY_\w+", text)) <= settings
    counted = (ROOT / "pslite_ext" / "job" / "metrics.py").read_text()
    for figure in re.findall(r"`(\w+_refused)`", text):
        assert f'"{figure}"' in counted
    # It names the repository as the way to report because no maintainer has an address here.
    assert not re.search(r"^(authors|maintainers)", (ROOT / "pyproject.toml").read_text(), re.M)


def test_the_picture_says_what_it_shows() -> None:
    picture = ElementTree.parse(ROOT / "docs" / "picture.svg").getroot()
    name = "{http://www.w3.org/2000/svg}"
    assert picture.find(f"{name}title") is not None
    assert picture.find(f"{name}desc") is not None
    said = " ".join("".join(text.itertext()) for text in picture.iter(f"{name}text"))
    for word in ("worker 0", "worker 1", "server 0", "scheduler", "gradient", "packets", "sum"):
        assert word in said
