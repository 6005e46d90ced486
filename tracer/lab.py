"""`mercury lab`, which lives in the source tree: it is for who works on mercury-ps."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

LAB = Path(__file__).resolve().parents[1] / "scripts" / "lab"


def main(argv: Sequence[str]) -> int:
    if not (LAB / "lab_command.py").exists():
        print("mercury lab: the lab is in the source tree; this is an installed package")
        return 1
    sys.path.insert(0, str(LAB))
    return int(importlib.import_module("lab_command").main(argv))
