"""What pages are made of: sections with a question each, pictures, tables, cards."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from tracer.output import whole_file
from tracer.report.drawing import Draw, svg
from tracer.report.stylesheet import CSS
from tracer.table import Table, as_list, show

ROWS_OPEN, ROWS_MOST = 8, 500

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{css}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def write_page(title: str, body: Sequence[str], path: str | Path) -> None:
    page = PAGE.format(title=html.escape(title), css=CSS, body="\n".join(body))
    with whole_file(path) as file:
        file.write(page.encode())


def figure(name: str, says: str, draw: Draw) -> str:
    ident = name.replace(".", "-")
    both = "".join(
        f'<div class="{kind}">{svg(draw, ident, kind == "narrow", says)}</div>'
        for kind in ("wide", "narrow")
    )
    return f"<figure><figcaption>{html.escape(says)}</figcaption>{both}</figure>"


def section(name: str, title: str, question: str, drawn: list[str], tables: list[str]) -> str:
    return (
        f'<section id="{name}"><h2>{html.escape(title)}</h2>'
        f'<p class="question">{html.escape(question)}</p>{"".join(drawn)}{"".join(tables)}'
        "</section>"
    )


def cards(shown: Sequence[tuple[str, str, str]], note: str) -> str:
    """Name, value, and what it is, of each."""
    items = "".join(
        f'<div class="card"><span>{html.escape(name)}</span><b>{value}</b>'
        f"<span>{html.escape(what)}</span></div>"
        for name, value, what in shown
    )
    return f'<div class="cards">{items}</div><p class="note">{note}</p>'


def table(found: Table) -> str:
    """A short table is open; of a long one the first rows are."""
    parts = [f"<h3>{html.escape(found.title)}</h3>"]
    if found.note:
        parts.append(f'<p class="note">{html.escape(found.note)}</p>')
    if not len(found):
        return "".join([*parts, '<p class="note">No records for this.</p>'])
    parts.append(_rows(found, 0, ROWS_OPEN))
    if len(found) > ROWS_OPEN:
        shown = min(len(found), ROWS_MOST)
        rest = "" if shown == len(found) else f"; {len(found) - shown} more in the JSON output"
        parts.append(
            f"<details><summary>rows {ROWS_OPEN + 1} to {shown}{rest}</summary>"
            f"{_rows(found, ROWS_OPEN, ROWS_MOST)}</details>"
        )
    return "".join(parts)


def _rows(table: Table, begin: int, end: int) -> str:
    columns = [as_list(values[begin:end]) for values in table.columns.values()]
    texts = [bool(column) and isinstance(column[0], str) for column in columns]
    head = "".join(
        f"<th{' class=text' if text else ''}>{html.escape(_label(name))}</th>"
        for name, text in zip(table.names, texts)
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td{' class=text' if text else ''}>{html.escape(show(value))}</td>"
            for value, text in zip(row, texts)
        )
        + "</tr>"
        for row in zip(*columns)
    )
    body = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f'<div class="scroll"><table>{body}</table></div>'


def _label(name: str) -> str:
    """`mean_us` as `mean µs`."""
    return " ".join("µs" if word == "us" else word for word in name.split("_"))
