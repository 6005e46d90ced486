"""`mercury lab`, which lives in the source tree: it is for who works on mercury-ps."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main(argv: Sequence[str]) -> int:
    if not (ROOT / "scripts" / "lab" / "bed" / "command.py").exists():
        print("mercury lab: the lab is in the source tree; this is an installed package")
        return 1
    # Whoever imported this from the tree finds the lab beside it.
    return int(importlib.import_module("scripts.lab.bed.command").main(argv))
