"""A model's training in local steps: after some of them, fragments are sent and applied.

A hook after the optimizer's step counts, and does what the schedule says. With each fragment a few
numbers travel that stand for the outer optimizer's options: where these differ, all workers hear.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.torch.agreement import (
    USED_PRIORITY,
    counts,
    difference,
    digest,
    options_of,
)
from pslite_ext.torch.fragment_schedule import FragmentSchedule
from pslite_ext.torch.fragments import Fragment
from pslite_ext.torch.local_agreement import LocalArguments
from pslite_ext.torch.optimizers import parameters_of
from pslite_ext.torch.updates import UpdateFailedError
from pslite_ext.torch.values import memory, wire_key
from pslite_ext.torch.words import NUMBERS, said_alike, words_of


class LocalTraining:
    """One model and its optimizer. All of it belongs to the thread that trains."""

    def __init__(
        self,
        number: int,
        optimizer: Any,
        fragments: Sequence[Fragment],
        schedule: FragmentSchedule,
        arguments: LocalArguments,
        workers: int,
    ) -> None:
        """`workers`: 0 where there is only this one, and nothing travels."""
        self._number, self._optimizer, self._workers = number, optimizer, workers
        self._fragments, self._schedule, self._arguments = fragments, schedule, arguments
        self._given = parameters_of(self._optimizer)
        self._steps = 0
        self._options: _core.Tensor | None = None
        if workers:
            key = wire_key(number, "outer options", "")
            self._options = _core.Tensor(key, "outer options", "int32", [NUMBERS])
        self._said: list[str] = []  # of the fragment under way
        self._sums: Any = None
        self._work: _core.Work | None = None
        self._failure: Exception | None = None
        self._shows_shared = False
        self._before_loading = ""  # what stands for the weights that the script has loaded over
        optimizer.register_step_pre_hook(self._steps_on)
        optimizer.register_step_post_hook(self._stepped)

    def loads(self, *_: Any) -> None:
        """The script is about to load weights, which are this worker's alone."""
        if not self._shows_shared:  # else its own are put back
            self._before_loading = self._before_loading or digest(self._given)

    def _steps_on(self, *_: Any) -> None:
        before, self._before_loading = self._before_loading, ""
        if before and before != digest(self._given):  # else its own are back
            self._failure = InvalidArgumentError(
                "load_state_dict() after mercury.local_steps, which gives all workers the values "
                "of worker 0: load before it, or by mercury.checkpoint"
            )
        self._check()

    # --- a step -----------------------------------------------------------------------------------

    def _stepped(self, *_: Any) -> None:
        if self._is_nested(sys._getframe(1)):
            return
        self._check()
        if self._shows_shared:
            raise InvalidArgumentError(
                "optimizer.step() inside of mercury.shared_weights, after which this worker's own "
                "weights are put back: train outside of it"
            )
        self._steps += 1
        try:
            if (number := self._schedule.sent_after(self._steps)) is not None:
                self._send(self._fragments[number])
            if (number := self._schedule.applied_after(self._steps)) is not None:
                self._apply(self._fragments[number])
        except InvalidArgumentError as error:
            self._failure = error
            raise
        except BaseException as error:
            self._failure = UpdateFailedError(
                f"fragment {number} was not synchronized after step {self._steps} "
                f"({type(error).__name__}: {error}): go on from a checkpoint"
            )
            raise

    def _is_nested(self, frame: Any) -> bool:
        """Whether the step that has called a hook is part of another, by super().step(): torch
        calls hooks for both. A count of those begun would be off after one that has raised."""
        code = frame.f_code
        while (frame := frame.f_back) is not None:
            if frame.f_code is code and frame.f_locals["args"][0] is self._optimizer:
                return True
        return False

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _send(self, fragment: Fragment) -> None:
        now = parameters_of(self._optimizer)
        if not all(a is b for a, b in itertools.zip_longest(now, self._given)):
            raise InvalidArgumentError(
                "the optimizer's parameters are not those it had at mercury.local_steps: call that "
                "when it has all of them"
            )
        due = self._steps + self._schedule.delay
        self._say(fragment, due)
        fragment.send(-due)  # what is due first, of all models, is most urgent

    def _apply(self, fragment: Fragment) -> None:
        self._hear()
        fragment.apply(self._arguments.alpha)

    def _say(self, fragment: Fragment, due: int) -> None:
        if self._options is None:
            return
        groups = fragment.outer.param_groups
        lines = [line for index in range(len(groups)) for line in options_of(groups, index)]
        self._said = [f"outer {line}" for line in lines]
        self._said.append(f"fragment {fragment.number} due after step {due}")
        words = words_of("; ".join(self._said))
        self._sums = torch.tensor(words, dtype=torch.int32, device="cpu")
        self._work = self._options.sum_memory(memory(self._sums), USED_PRIORITY)

    def _hear(self) -> None:
        if self._work is None:
            return
        self._work.wait()
        self._work = None
        said = "; ".join(self._said)
        if not said_alike(self._sums.tolist(), said, *counts(self._workers)):
            raise difference(self._number, f"step {self._steps}", self._said)

    # --- for scripts ------------------------------------------------------------------------------

    def synchronize(self) -> None:
        """Waits for what is under way; it is applied in its turn."""
        self._check()
        self._hear()
        for fragment in self._fragments:
            fragment.wait()

    def finish(self) -> None:
        """The script has ended well. Were there too few steps, or some that no hook has counted?"""
        self.synchronize()
        members = [member for fragment in self._fragments for member in fragment.members]
        never = self._steps < self._schedule.interval and any(m.is_apart() for m in members)
        if never and _core.rank() == 0:
            print(
                f"mercury: weights never came together: {self._steps} of every="
                f"{self._schedule.every} steps were counted (calls of optimizer.step())",
                file=sys.stderr,
            )

    @contextmanager
    def shared(self) -> Iterator[None]:
        """The model's parameters have the values that all workers have alike."""
        if self._shows_shared:
            yield
            return
        members = [member for fragment in self._fragments for member in fragment.members]
        with torch.no_grad():
            own = [member.parameter.clone() for member in members]
            for member in members:
                member.parameter.copy_(member.shared)
        self._shows_shared = True
        try:
            yield
        finally:
            self._shows_shared = False
            with torch.no_grad():
                for member, value in zip(members, own):
                    member.parameter.copy_(value)

    # --- for checkpoints, and for a worker that comes while the job runs --------------------------

    def check_own(self) -> None:
        """Whether the model has this worker's own weights."""
        if self._shows_shared:
            raise InvalidArgumentError(
                "mercury.checkpoint inside of mercury.shared_weights, where the model does not "
                "have this worker's own weights: call save() and step() outside; inside, "
                "torch.save(model.state_dict(), path) saves the shared ones"
            )

    def state_dict(self) -> dict[str, Any]:
        """What all workers have alike."""
        self.check_own()
        self.synchronize()
        return {
            "arguments": self._in_words(),
            "steps": self._steps,
            "fragments": [fragment.state_dict() for fragment in self._fragments],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.check_own()
        if state["arguments"] != self._in_words():
            raise InvalidArgumentError(
                f"it was saved with {state['arguments']}; the script has {self._in_words()}"
            )
        self._before_loading = ""  # the weights were those of this checkpoint
        self._steps = state["steps"]
        for fragment, saved in zip(self._fragments, state["fragments"]):
            fragment.load_state_dict(saved)

    def _in_words(self) -> str:
        return f"{self._arguments}, outer={type(self._fragments[0].outer).__name__}"

    def standing(self) -> dict[str, Any]:
        """What a newcomer needs beside that."""
        self.check_own()
        self.synchronize()
        return {"workers": self._workers}

    def stand(self, standing: Mapping[str, Any]) -> None:
        self._workers = standing["workers"]
        for fragment in self._fragments:
            fragment.divide_by(self._workers)
