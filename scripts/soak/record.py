"""Runs of the soak in a file, a line of JSON for each round.

A run that is killed loses nothing, and a page is made of all runs that have the same file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from scripts.soak.verdict import Verdict


@dataclass(frozen=True)
class Round:
    seed: int
    van: str
    fault: str
    verdict: Verdict
    seconds: float  # from the fault to the end of the last process, if the job ended
    narrowed: str = ""  # what else decides what the seed draws: words of the command
    took_s: float = 0.0  # all of it


@dataclass
class Run:
    began: str
    commit: str
    command: str
    rounds: list[Round] = field(default_factory=list)

    def add(self, done: Round, log: Path | None) -> None:
        self.rounds.append(done)
        if log is None:
            return
        log.parent.mkdir(parents=True, exist_ok=True)
        line = {"began": self.began, "commit": self.commit, "command": self.command}
        with log.open("a") as file:
            file.write(json.dumps({**line, "round": asdict(done)}) + "\n")


def read(log: Path) -> list[Run]:
    """In the order in which they began to write; none if there is no such file."""
    runs: dict[tuple[str, str, str], Run] = {}
    for line in log.read_text().splitlines() if log.exists() else []:
        entry = json.loads(line)
        key = (entry["began"], entry["commit"], entry["command"])
        fields = dict(entry["round"])
        fields["verdict"] = Verdict(**fields["verdict"])
        runs.setdefault(key, Run(*key)).rounds.append(Round(**fields))
    return list(runs.values())


def rounds_of(runs: Sequence[Run]) -> list[Round]:
    return [done for run in runs for done in run.rounds]
