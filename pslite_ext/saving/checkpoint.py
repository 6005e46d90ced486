"""A job's checkpoints: every so many steps all that training needs, and the way back to it.

Worker 0 writes what all workers have alike (weights, the optimizer's state); each worker writes
what is its own (random numbers, statistics, the place in its data). What is saved is copied in
memory, and written while training goes on.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from pslite_ext.errors import InvalidArgumentError
from pslite_ext.job import figures
from pslite_ext.saving import choice, part_file
from pslite_ext.saving.exchange import Exchange
from pslite_ext.saving.folder import SHARED, Folder, own
from pslite_ext.saving.writer import Writer

KEEP_LEAST = 2  # workers may be one checkpoint apart when the job dies
LOOKED_AT = 8  # of the newest, by each worker
NOTHING = -1
_numbers = itertools.count()
State = Any  # of which a front knows what it is


class Front(Protocol):
    """What a framework's state is, and how it becomes bytes."""

    def capture_shared(self) -> State:
        """A copy of what all workers have alike, and of what a worker without a part needs."""

    def capture_own(self) -> State: ...
    def dump(self, state: State, file: Any) -> None: ...
    def load(self, file: BinaryIO) -> State: ...
    def restore(self, shared: State, mine: State | None) -> None:
        """None: this worker has no part of its own. Raises InvalidArgumentError for what does not
        fit."""


class Checkpoint:
    """`steps`: how many are done, those of earlier runs with them."""

    def __init__(
        self, folder: str | Path, front: Front, rank: int, workers: int, every: int, keep: int
    ) -> None:
        for name, value, least in (("every", every, 1), ("keep", keep, KEEP_LEAST)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InvalidArgumentError(
                    f"checkpoint: {name} is {value!r}; a whole number is needed, {least} or more"
                )
        try:
            self._folder = Folder(Path(folder))
        except OSError as error:
            raise InvalidArgumentError(f"checkpoint: no folder can be made: {error}") from None
        self._front, self._rank, self._workers = front, rank, workers
        self._every, self._keep = every, keep
        self._writer = Writer()
        self._exchange = Exchange(next(_numbers), rank, workers)
        self._exchange.agree(f"every {every} steps, {keep} are kept")
        self.steps = self._resume()

    def step(self) -> None:
        """One more is done: at the end of the loop's body, on every worker."""
        self.steps += 1
        if self.steps % self._every == 0:
            self.save()

    def save(self) -> None:
        """Now, on every worker; returns once there is a copy of all that is saved."""
        step = self.steps
        parts = {own(self._rank): self._front.capture_own()}
        if self._rank == 0:
            parts[SHARED] = self._front.capture_shared()

        def work() -> None:
            for name, state in parts.items():
                part_file.write(self._folder.place(step, name), self._dumps(state))
            for name in parts:
                self._folder.keep_newest(name, self._keep)
            figures.add("checkpoint", step)

        self._writer.write(step, work)

    def wait(self) -> None:
        """Until nothing is being written."""
        self._writer.wait()

    def _dumps(self, state: State) -> Callable[[Any], None]:
        return lambda file: self._front.dump(state, file)

    # --- the way back -----------------------------------------------------------------------------

    def _resume(self) -> int:
        mine = self._whole(own(self._rank)), self._whole(SHARED)
        table = [step for steps in mine for step in [*steps, *[NOTHING] * LOOKED_AT][:LOOKED_AT]]
        found = [
            choice.Found(
                frozenset(row[:LOOKED_AT]) - {NOTHING}, frozenset(row[LOOKED_AT:]) - {NOTHING}
            )
            for row in self._exchange.gather("found", table)
        ]
        chosen = choice.choose(found)
        step = 0 if chosen is None else chosen.step
        if chosen is not None:
            self._take(chosen, mine[1])
        for name in (own(self._rank), *([SHARED] if self._rank == 0 else [])):
            self._folder.drop_after(name, step)
        if self._rank == 0:
            self._say(chosen)
        return step

    def _whole(self, part: str) -> Mapping[int, Path]:
        """The newest steps of which that part is there, and whole."""
        found = {}
        for step in self._folder.steps(part)[:LOOKED_AT]:
            path = self._folder.path(step, part)
            try:
                part_file.read(path).close()
            except (part_file.DamagedError, OSError) as error:
                print(f"mercury: {path} is not used: {error}", file=sys.stderr)
            else:
                found[step] = path
        return found

    def _take(self, chosen: choice.Resumption, shared: Mapping[int, Path]) -> None:
        with self._shared_file(chosen, shared) as file:
            state = self._front.load(file)
        mine = None
        if self._rank not in chosen.strangers:
            with part_file.read(self._folder.path(chosen.step, own(self._rank))) as file:
                mine = self._front.load(file)
        try:
            self._front.restore(state, mine)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                f"the checkpoint of step {chosen.step} in {self._folder.root} is not one of this "
                f"training: {error}; give another folder, or remove this one"
            ) from None

    def _shared_file(self, chosen: choice.Resumption, shared: Mapping[int, Path]) -> BinaryIO:
        path = shared.get(chosen.step)
        if not chosen.lacking:
            assert path is not None
            return part_file.read(path)
        first = part_file.read(path) if self._rank == 0 and path is not None else None
        size = 0 if first is None else first.seek(0, 2)
        if first is not None:
            first.seek(0)
        return self._exchange.of_worker_0(first, self._exchange.gather("size", [size])[0][0])

    def _say(self, chosen: choice.Resumption | None) -> None:
        if chosen is None:
            return
        without = ", ".join(str(rank) for rank in chosen.strangers)
        more = (
            f"; workers {without} have no part of their own there and begin as worker 0"
            if (without)
            else ""
        )
        print(
            f"mercury: goes on after step {chosen.step}, from {self._folder.root}{more}",
            file=sys.stderr,
        )
