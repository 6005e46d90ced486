"""A table: what every analysis takes the form of, on the way to a terminal, JSON, CSV or a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Value = Any  # int, float or str


@dataclass
class Table:
    """Columns of equal length. A column's name ends in its unit, if it has one."""

    title: str
    columns: Mapping[str, Any]  # NumPy arrays or lists
    note: str = ""

    @staticmethod
    def of_rows(title: str, rows: Sequence[Mapping[str, Value]], note: str = "") -> Table:
        """The first row says which columns there are; without a row there are none."""
        names = rows[0] if rows else ()
        return Table(title, {name: [row[name] for row in rows] for name in names}, note)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    def rows(self) -> Iterator[dict[str, Value]]:
        lists = {name: as_list(values) for name, values in self.columns.items()}
        for row in zip(*lists.values()):
            yield dict(zip(lists, row))

    def row(self, **wanted: Value) -> dict[str, Value]:
        """The first row with these values."""
        for row in self.rows():
            if all(row[name] == value for name, value in wanted.items()):
                return row
        raise KeyError(f"no row of '{self.title}' with {wanted}")

    def as_dict(self) -> dict[str, Any]:
        return {"title": self.title, "note": self.note, "rows": list(self.rows())}

    def text(self, rows_max: int = 40) -> str:
        shown = [[show(value) for value in row.values()] for row in self.first(rows_max)]
        lines = [self.names, *shown]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.names))]
        out = [self.title]
        for line in lines:
            out.append("  " + "  ".join(cell.rjust(w) for cell, w in zip(line, widths)))
        if len(self) > rows_max:
            out.append(f"  ... {len(self) - rows_max} more rows")
        if self.note:
            out.append(f"  {self.note}")
        return "\n".join(out)

    def first(self, count: int) -> Iterator[dict[str, Value]]:
        cut = {name: values[:count] for name, values in self.columns.items()}
        return Table(self.title, cut).rows()


def as_list(values: Any) -> list[Value]:
    """Plain Python values; what is not a number becomes None."""
    out: list[Value] = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return [None if isinstance(v, float) and v != v else v for v in out]


def show(value: Value) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        if 0 < abs(value) < 0.001:
            return f"{value:.6f}"
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


@dataclass
class Section:
    """The answer to one question."""

    name: str
    title: str
    question: str
    tables: list[Table] = field(default_factory=list)
    figures: dict[str, Table] = field(default_factory=dict)  # what its plots are drawn from

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "question": self.question,
            "tables": [table.as_dict() for table in self.tables],
        }


PERCENTILES: Sequence[int] = (5, 25, 50, 75, 95, 99)
"""Of which every summary tells the value."""
