"""Measures what docs/papers.md shows, and writes it.

    make papers [ARGS="--quick"] [ARGS="--only prophet"] [ARGS=--list]

All of it takes hours, and needs root for the test bed; in the end, results are added to those in
docs/, and pages written anew. Of a case that was not measured, earlier results stay. --quick
measures something of each paper in a quarter of an hour and writes build/papers/papers.md; docs/
stays as it is. After Ctrl-C, what was measured is kept, and the pages are written.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pslite_ext.command.output import code_of
from scripts.lab.report.page import write_pages
from scripts.lab.systems.system import MERCURY
from scripts.papers import page
from scripts.papers.measured import DOCS

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "papers"
BEGAN = time.strftime("%Y%m%d_%H%M%S", time.gmtime())


@dataclass(frozen=True)
class Step:
    """One run of the lab, which leaves one file of results: of a name that no earlier one has."""

    name: str
    arguments: tuple[str, ...]

    @property
    def out(self) -> Path:
        return BUILD / f"{self.name}_{BEGAN}.json"

    def command(self) -> list[str]:
        out = str(self.out.relative_to(ROOT))
        return [sys.executable, "-m", "scripts.lab.runner", *self.arguments, "--out", out]


def _step(name: str, arguments: str) -> Step:
    return Step(name, tuple(shlex.split(arguments)))


RACERS = "--only fabric --systems 'ring gloo' tree async fabric"
FULL: dict[str, list[Step]] = {
    "mercury": [
        _step("mercury_paper", "--only mercury_paper --repeats 3"),
        _step("iteration", "--only iteration goodput sum_kernel --repeats 3"),
        _step("tuning", "--only tuning"),
        _step("jobs", "--only jobs --repeats 3"),
        _step(
            "scaling", "--only scaling --nodes 8x8 --rate 50 --models vgg16 --match 'vgg16 x' "
            f"--systems {MERCURY} mpi --repeats 3"
        ),
    ],
    "prophet": [_step("prophet", "--only prophet --repeats 3")],
    "mlfabric": [
        *(
            _step(
                f"fabric_{cell.lower().replace(' ', '')}",
                f"{RACERS} --match '{cell}, to 0.8; 30' --repeats {repeats}",
            )
            for cell, repeats in (
                *(("C1 N1", 5), ("C2 N1", 5), ("C2 N2", 5)),
                *(("C1 N2", 3), ("C1 N3", 3), ("C2 N3", 3)),
                *(("C3 N1", 3), ("C3 N2", 3), ("C3 N3", 3)),
            )
        ),
        _step("fabric_more", f"{RACERS} --match 'of computation' --repeats 3"),
        _step("fabric_lda", f"{RACERS} --match 'LDA, C1 N1' --repeats 3"),
        _step("fabric_late", "--only fabric --match late --repeats 3 --systems fabric"),
        _step("fabric_replica", "--only fabric --match replica --repeats 3 --systems fabric"),
    ],
    "sketchdlc": [_step("captures", "--only captures --repeats 3")],
}  # fmt: skip
QUICK: dict[str, list[Step]] = {
    "mercury": [_step("mercury_paper", "--only mercury_paper --quick")],
    "prophet": [_step("prophet", "--only prophet --quick")],
    "mlfabric": [
        _step(
            "fabric_c2n1", "--only fabric --systems 'ring gloo' fabric --repeats 1 --match "
            "'C2 N1, to 0.8; 30'"
        )
    ],
    "sketchdlc": [_step("captures", "--only captures --quick")],
}  # fmt: skip


def _run(command: Sequence[str]) -> int:
    """130 after Ctrl-C, which the lab hears, too: it is awaited, for it has a bed to remove."""
    interrupted = False
    with subprocess.Popen(command, cwd=ROOT) as lab:
        while lab.poll() is None:
            try:
                lab.wait()
            except KeyboardInterrupt:
                interrupted = True
    return 130 if interrupted else lab.returncode


def measure(steps: Sequence[Step]) -> tuple[bool, list[Path]]:
    """Whether all went well, and what has been measured."""
    well, found = True, []
    for number, step in enumerate(steps, 1):
        shown = shlex.join(step.command()[1:])
        print(f"=== {step.name}, {number} of {len(steps)}: python {shown}", flush=True)
        code = _run(step.command())
        well &= code == 0
        if step.out.exists():
            found.append(step.out)
        if code == 130:
            break
    return well, found


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make papers", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="something of each, < 15 minutes")
    parser.add_argument("--only", nargs="+", choices=FULL, metavar="PAPER", help=", ".join(FULL))
    parser.add_argument("--list", action="store_true", help="say what would be run")
    asked = parser.parse_args()
    chosen = QUICK if asked.quick else FULL
    steps = [step for paper, of in chosen.items() if paper in (asked.only or chosen) for step in of]
    if asked.list:
        for step in steps:
            print(f"python {shlex.join(step.command()[1:])}")
        return 0
    BUILD.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    well, found = measure(steps)
    if not found:
        print("make papers: nothing was measured, and nothing was written", file=sys.stderr)
        return 1
    if asked.quick:
        written = page.write(BUILD, tuple(found))
    else:
        write_pages(DOCS, found)
        written = page.write(DOCS)
    minutes = (time.monotonic() - began) / 60
    print(f"{written.relative_to(ROOT)}, after {minutes:.1f} min{'' if well else ', not all well'}")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(code_of("make papers", main))
