"""`mercury lab`, which lives in the source tree: it is for who works on mercury-ps."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "scripts.lab.bed.command"


def is_here() -> bool:
    """Whether this is the tree, and not an installed package."""
    return (ROOT / COMMAND.replace(".", "/")).with_suffix(".py").exists()


def parser() -> argparse.ArgumentParser:
    # Whoever imported this from the tree finds the lab beside it.
    result: argparse.ArgumentParser = importlib.import_module(COMMAND).parser()
    return result


def main(argv: Sequence[str]) -> int:
    return int(importlib.import_module(COMMAND).main(argv))
