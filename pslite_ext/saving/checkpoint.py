"""A job's checkpoints: every so many steps all that training needs, and the way back to it.

Worker 0, or the first that is left, writes what all workers have alike (weights, the optimizer's
state); each worker writes what is its own (random numbers, statistics, the place in its data). What
is saved is copied in memory, and written while training goes on.
"""

from __future__ import annotations

import itertools
import re
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.job import figures
from pslite_ext.saving import choice, claim, letting_in, part_file
from pslite_ext.saving.exchange import Exchange, Seat
from pslite_ext.saving.folder import RUNS, SHARED, Folder, Place, own
from pslite_ext.saving.kept import SPARE, outlived, superfluous
from pslite_ext.saving.letting_in import Newcomer
from pslite_ext.saving.writer import Writer

KEEP_LEAST = 2  # one might be damaged
LOOKED_AT = 64  # of the newest, by each worker
KEEP_MOST = LOOKED_AT - SPARE  # what is kept is looked at
NUMBERS = 3  # that are a place
NEVER = -1  # instead of a step
NOTHING = [NEVER] * NUMBERS
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")  # of something elsewhere, as s3://bucket/run
_numbers = itertools.count()
_folders: set[Path] = set()  # of this process's
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

    def parts(self) -> Iterator[State]:
        """What `capture_shared` copies, in parts that `dump` takes one by one. Nothing changes it
        until the last is dumped."""

    def load_parts(self, files: Iterator[BinaryIO]) -> State:
        """Of a worker that comes while the job runs: what those parts are together."""

    def standing(self) -> dict[str, Any]:
        """What a worker that comes while the job runs needs beside the shared state: what JSON can
        say. Nothing is under way then."""

    def stand(self, standing: Mapping[str, Any]) -> None:
        """Of that worker, once the shared state is restored."""

    def missing(self) -> str:
        """What is trained, and not in the shared state; empty: nothing."""


class Checkpoint:
    """`steps`: how many are done, those of earlier runs with them."""

    def __init__(self, folder: str | Path, front: Front, seat: Seat, every: int, keep: int) -> None:
        for name, value, least in (("every", every, 1), ("keep", keep, KEEP_LEAST)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InvalidArgumentError(
                    f"checkpoint: {name} is {value!r}; a whole number is needed, {least} or more"
                )
        if keep > KEEP_MOST:
            raise InvalidArgumentError(
                f"checkpoint: keep is {keep}; {KEEP_MOST} at most are kept, for no more are looked "
                "at when the job goes on"
            )
        if ADDRESS.match(str(folder)):
            raise InvalidArgumentError(
                f"checkpoint: '{folder}' is not a folder of this host: mount what it names, and "
                "give the path"
            )
        try:
            self._folder = Folder(Path(folder).absolute())  # wherever the script goes
        except OSError as error:
            raise InvalidArgumentError(f"checkpoint: the folder cannot be used: {error}") from None
        if (whole := self._folder.root.resolve()) in _folders:
            raise InvalidArgumentError(
                f"checkpoint: {folder} is another checkpoint's: name all that is saved in one call"
            )
        if seat.rank == 0 and (why := self._folder.why_unwritable()) is not None:
            print(f"mercury: checkpoint: nothing can be written now: {why}", file=sys.stderr)
        self._front, self._rank, self._seat = front, seat.rank, seat
        self._every, self._keep = every, keep
        self._writer = Writer()
        self._exchange = Exchange(next(_numbers), seat)
        self._run = 0  # worker 0's number for it
        self._saves = 0
        self._last = NEVER  # step that this worker has written whole
        self._first = 0  # who wrote the shared part then
        self._by_all: list[int] = []  # those that all workers have
        self._by_hand = False  # the script has saved once
        self._waits: Newcomer | None = None  # at the last step
        self.steps = 0
        if (newcomer := _core.outside()) is not None:
            self._enter(newcomer)
        else:
            self._held = self._hold() if self._rank == 0 else None
            self.steps = self._resume()
        _folders.add(whole)

    def step(self) -> None:
        """One more is done: at the end of the loop's body, on every worker."""
        self._let_in()
        self._one_more()

    def _one_more(self) -> None:
        self.steps += 1
        if self.steps % self._every == 0:
            self._save()

    def save(self) -> None:
        """Now, on every worker, right after `step()`; returns once there is a copy of all that is
        saved."""
        self._by_hand = True
        self._save()

    def _save(self) -> None:
        there = self._exchange.there()
        place = Place(self.steps, len(there), self._run)
        self._writer.wait(place.step)  # so that there is no more than one copy
        parts = {own(self._rank): self._front.capture_own()}
        if self._rank == there[0]:
            parts[SHARED] = self._front.capture_shared()
        alike = self._exchange.all_say(f"written before save {self._saves}", str(self._last))
        self._saves += 1
        if alike and self._last not in (NEVER, *self._by_all[-1:]) and self._first in there:
            self._by_all = [*self._by_all, self._last][-self._keep :]
        self._last, self._first = NEVER, there[0]

        def work() -> None:
            try:
                for name, state in parts.items():
                    part_file.write(self._folder.room(place, name), self._dumps(state))
                self._last = place.step
            except BaseException:
                if place.step not in self._by_all:  # else it is whole already, as others count on
                    for name in parts:
                        self._folder.remove([place], name)
                raise
            finally:
                self._remove_old(parts)
            figures.add("checkpoint", place.step)

        self._writer.write(place.step, work)

    def _remove_old(self, parts: Iterable[str]) -> None:
        old = outlived(self._folder.all_places(), self._by_all, self._keep)
        self._folder.remove_whole(old)
        for name in {*parts, SHARED}:  # this worker may have written the shared one before
            old = superfluous(self._folder.places(name), self._by_all, self._keep)
            self._folder.remove(old, name)

    def wait(self) -> None:
        """Until nothing is being written."""
        self._writer.wait()

    def _dumps(self, state: State) -> Callable[[Any], None]:
        return lambda file: self._front.dump(state, file)

    # --- workers that come while the job runs -----------------------------------------------------

    def _let_in(self) -> None:
        """By the first worker. What may have come of who had the newcomer's place before is out of
        all sums one step after this one was heard of."""
        before, self._waits = self._waits, _core.next_to_let_in()
        newcomer = self._waits
        if newcomer is None or (newcomer[1] and newcomer != before):
            return
        if self._by_hand:
            print(
                f"mercury: worker {newcomer[0]} is not let in: this script saves by hand, which "
                "one that comes cannot know of; leave saving to `every`",
                file=sys.stderr,
            )
            return
        words = {
            "steps": self.steps,
            "run": self._run,
            "saves": self._saves,
            "by_all": self._by_all,
            "alike": [self._every, self._keep],
            "front": self._front.standing(),
        }
        letting_in.give(newcomer, words, map(self._dumps, self._front.parts()))

    def _enter(self, newcomer: Newcomer) -> None:
        if missing := self._front.missing():
            raise InvalidArgumentError(
                f"checkpoint: {missing} is not named in the call, so this worker, which comes "
                "while the job runs, cannot be given what the others have of it: name it"
            )
        words, parts = letting_in.take(newcomer)
        if words["alike"] != [self._every, self._keep]:
            every, keep = words["alike"]
            raise InvalidArgumentError(
                f"checkpoint: the others ask for every={every}, keep={keep}, this worker for "
                f"every={self._every}, keep={self._keep}"
            )
        self._front.restore(self._front.load_parts(parts), None)
        self._front.stand(words["front"])
        self._run, self._saves = words["run"], words["saves"]
        self._by_all, self.steps = words["by_all"], words["steps"]
        self._folder.sweep(own(self._rank))  # who let it in may be writing the shared part
        letting_in.enter(newcomer, words["standing"])
        print(
            f"mercury: worker {newcomer[0]} goes on after step {self.steps + 1}, with the others",
            file=sys.stderr,
        )
        self._one_more()

    # --- the way back -----------------------------------------------------------------------------

    def _hold(self) -> BinaryIO | None:
        try:
            return claim.hold(self._folder.root)
        except claim.FolderInUseError as process:
            raise InvalidArgumentError(
                f"checkpoint: another job writes to {self._folder.root}, as process {process} on "
                "this host: end it, or give each a folder of its own"
            ) from None

    def _resume(self) -> int:
        self._folder.sweep()  # nobody writes before all have told what they see
        mine, shared = self._whole(own(self._rank)), self._whole(SHARED)
        damaged = {*self._folder.places(own(self._rank))[:LOOKED_AT]} - {*mine}
        table = [self._every, self._keep, secrets.randbelow(RUNS)]
        for seen in (mine, shared, damaged):
            padded = [*map(list, seen), *[NOTHING] * LOOKED_AT][:LOOKED_AT]
            table += itertools.chain.from_iterable(padded)
        rows = self._exchange.gather("found", table)[: self._seat.workers]
        self._check_alike(rows)
        self._run = rows[0][2]
        found = [_found(row[3:] if row[0] else []) for row in rows]
        if (rank := choice.missed(found)) is not None:
            where = f"in {self._folder.root}" if self._rank == 0 else "where it looks"
            raise InvalidArgumentError(
                f"checkpoint: worker 0 sees none that is whole {where}, but worker {rank} has "
                f"parts of step {max(found[rank].own).step} and before: give worker 0 the folder "
                "that it had, or remove what the others have"
            )
        chosen = choice.choose(found)
        if chosen is None:
            return 0
        self._take(chosen, shared)
        for name in (own(self._rank), SHARED):
            # Worker 0 may be writing already, in this run.
            places = [p for p in self._folder.places(name) if p.run != self._run]
            later = {p for p in places if p.step >= chosen.place.step}
            self._folder.remove(later - {chosen.place}, name)
        self._by_all = [] if chosen.strangers else [chosen.place.step]
        if self._rank == 0:
            self._say(chosen)
        return chosen.place.step

    @staticmethod
    def _check_alike(rows: list[list[int]]) -> None:
        if not rows[0][0]:
            raise InvalidArgumentError(
                "checkpoint: worker 0 was lost before it had said what it sees: start the job again"
            )
        for rank, row in enumerate(rows):
            if row[0] and row[:2] != rows[0][:2]:  # else it is lost
                first, other = (f"every={r[0]}, keep={r[1]}" for r in (rows[0], row))
                raise InvalidArgumentError(
                    "checkpoint: all workers must ask for the same: "
                    f"worker 0 has {first}, worker {rank} {other}"
                )

    def _whole(self, part: str) -> dict[Place, Path]:
        """The newest of which that part is there, and whole."""
        found = {}
        for place in self._folder.places(part)[:LOOKED_AT]:
            path = self._folder.path(place, part)
            try:
                part_file.read(path).close()
            except (part_file.DamagedError, OSError) as error:
                print(f"mercury: {path} is not used: {error}", file=sys.stderr)
            else:
                found[place] = path
        return found

    def _take(self, chosen: choice.Resumption, shared: Mapping[Place, Path]) -> None:
        with self._shared_file(chosen, shared) as file:
            state = self._front.load(file)
        mine = None
        if self._rank not in chosen.strangers:
            with part_file.read(self._folder.path(chosen.place, own(self._rank))) as file:
                mine = self._front.load(file)
        try:
            self._front.restore(state, mine)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                f"the checkpoint of step {chosen.place.step} in {self._folder.root} does not fit "
                f"what is to be restored: {error}; parameter groups and layers that were added "
                "while training went on must be there again; another training needs another folder"
            ) from None

    def _shared_file(self, chosen: choice.Resumption, shared: Mapping[Place, Path]) -> BinaryIO:
        path = shared.get(chosen.place)
        if not chosen.lacking:
            assert path is not None
            return part_file.read(path)
        file = part_file.read(path) if path is not None and self._rank == chosen.giver else None
        size = 0 if file is None else file.seek(0, 2)
        if file is not None:
            file.seek(0)
        sizes = self._exchange.gather("size", [size])
        return self._exchange.of_one(file, sizes[chosen.giver][0])

    def _say(self, chosen: choice.Resumption) -> None:
        more = ""
        if chosen.strangers:
            ranks = ", ".join(map(str, chosen.strangers))
            more = (
                f"; workers {ranks} have no part of their own there and begin as the one who wrote "
                "the rest"
            )
        print(
            f"mercury: goes on after step {chosen.place.step}, from {self._folder.root}{more}",
            file=sys.stderr,
        )


def _found(numbers: list[int]) -> choice.Found:
    """What a worker's table says."""
    groups = [numbers[at : at + NUMBERS] for at in range(0, len(numbers), NUMBERS)]
    own_ones, shared, damaged = (
        frozenset(Place(*group) for group in groups[at : at + LOOKED_AT] if group != NOTHING)
        for at in range(0, 3 * LOOKED_AT, LOOKED_AT)
    )
    return choice.Found(own_ones, shared, damaged)
