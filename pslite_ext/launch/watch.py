"""A launched job's output under its processes' names, and what it came to."""

from __future__ import annotations

import errno
import queue
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from pslite_ext.errors import FAILED_ELSEWHERE
from pslite_ext.launch.display import Display
from pslite_ext.launch.scheduler_words import culprit, done_without, ending, how_it_ended
from pslite_ext.launch.supervise import Child, Supervisor
from pslite_ext.launch.tasks import CannotRunError, LaunchError, Task

TAIL_LINES = 20
IN_ORDER_S = 0.5  # for what is printed to be shown before what we say of it
# A signal that comes just before the main thread waits does not wake it: it never waits for longer.
HEARS_SIGNALS_S = 1.0
TERM_S = 5.0  # between asking a process to end and killing it
SCHEDULERS_MAX = 5  # that are started for one that was lost: who dies again and again has a reason
ENDED_EARLY = 1  # our exit code if all others failed for one that ended with 0 itself
COLOURS = {"worker": 32, "server": 34, "replica": 36, "scheduler": 35}


class JobWatch:
    def __init__(
        self,
        log_dir: Path,
        grace_s: float,
        least_workers: int = 0,
        replace: int = 0,
        journal: Path | None = None,
    ) -> None:
        """`least_workers`: with which the job goes on; 0: only with all of them. `replace`: how
        often workers and servers are started again that are lost. `journal`: by which another
        scheduler goes on if the first one is."""
        self._log_dir = log_dir
        self._journal = journal
        self._replace, self._replaced = replace, 0
        self._least_workers = least_workers
        self._lost: list[Child] = []  # without which it has gone on
        self._done_without: list[Child] = []  # servers and replicas, of which others were there
        self._lost_to_scheduler: list[str] = []  # which may be there, and hang
        self._grace_s = grace_s  # for the others to notice a failure themselves
        self._supervisor = Supervisor()
        self._tasks: dict[Child, tuple[Task, deque[str]]] = {}  # with its last lines
        self._error = Display(sys.stderr)
        self._output = Display(sys.stdout, self._no_longer_shown)
        self._colour = sys.stdout.isatty()
        self._culprit = ""  # of the job's failure, as the scheduler names it

    def start(self, tasks: Sequence[Task]) -> None:
        try:
            self._log_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LaunchError(f"--log-dir {self._log_dir}: {error.strerror}") from None
        for task in tasks:
            self._start(task)

    def _start(self, task: Task, again: str = "") -> None:
        """`again`: which time it is, in the name of its log."""
        tail: deque[str] = deque(maxlen=TAIL_LINES)
        log = self._log_dir / f"{task.name.replace(' ', '_')}{again}.log"
        prefix = f"[{task.name}] "
        if self._colour:
            prefix = f"\033[{COLOURS[task.role]}m{prefix}\033[0m"
        told = partial(self._print, prefix, tail)
        if task.role == "scheduler":
            told = partial(self._hear_scheduler, told)
        try:
            child = self._supervisor.start(
                task.command,
                task.env or None,
                log=log,
                told=told,
                keeps_up=self._output.keeps_up,
                stdin=task.stdin,
            )
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise
            raise CannotRunError(f"cannot run {task.command[0]}: {error.strerror}") from None
        self._tasks[child] = (task, tail)

    def _hear_scheduler(self, shown: Callable[[str], None], line: str) -> None:
        if lost := done_without(line):
            self._lost_to_scheduler = lost
        elif (named := culprit(line)) is not None:
            self._culprit = self._culprit or named
        else:
            shown(line)

    def _print(self, prefix: str, tail: deque[str], line: str) -> None:
        tail.append(line)
        self._output.say(prefix + line)

    def _no_longer_shown(self, why: str) -> None:
        text = f"output is no longer shown ({why}); it goes on in {self._log_dir}"
        self._error.say(f"mercury launch: {text}")

    def wait(self) -> int:
        """Until all have ended; the exit code of the process that failed first, 0 if none did.

        Those that failed for what another did say so by their exit code, whoever ends sooner.
        """
        first: Child | None = None
        deadline: float | None = None
        late: list[Child] | None = None  # who has time until then; None: all
        ended_by_us: list[Child] = []
        ended_well: list[Child] = []
        hung: list[Child] = []
        running = len(self._tasks)
        while running:
            left_s = HEARS_SIGNALS_S if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                child = self._supervisor.ended.get(timeout=min(left_s, HEARS_SIGNALS_S))
            except queue.Empty:
                if deadline is None or time.monotonic() < deadline:
                    continue
                deadline = None
                ended_by_us += self._tasks if late is None else late
                self._supervisor.end(late, ask_s=TERM_S)
                continue
            running -= 1
            if child.holds_output:
                self._say(
                    f"{self._name(child)} has ended, but a process that it left behind holds "
                    "its output open: not waited for"
                )
            if child in ended_by_us:
                hung.append(child)
                continue
            if not (child.holds_output and child.returncode == 0):  # else what is left may join
                self._tell_scheduler(child)
            if child.returncode == 0:
                ended_well.append(child)
                if child in self._of_role("scheduler"):
                    # The job is over: who is still there was done without.
                    lost = None if self._least_workers else self._left_of_the_lost()
                    if lost is None or (lost and deadline is None):
                        deadline, late = time.monotonic() + self._grace_s, lost
                continue
            if left := self._does_without(child):
                self._done_without.append(child)
                self._say(f"{self._name(child)} {how_it_ended(child.returncode)}; {left} is there")
                continue
            if first is None and self._goes_on_without(child):
                running += self._start_again(child)
                continue
            if deadline is None or late is not None:
                deadline, late = time.monotonic() + self._grace_s, None
            if first is None or first.returncode == FAILED_ELSEWHERE != child.returncode:
                first = child
                if child.returncode != FAILED_ELSEWHERE and running:
                    what = f"{self._name(child)} {how_it_ended(child.returncode)}"
                    self._say(f"{what}; the others have {self._grace_s:g} s to end")
        if first is None:
            # Who was not lost to the scheduler has failed at the job's end: nobody took its place.
            known = self._lost_to_scheduler
            first = next((c for c in self._done_without if self._name(c) not in known), None)
        if first is None:
            came_back = {self._name(child) for child in ended_well}
            names = dict.fromkeys(self._name(child) for child in [*self._lost, *hung])
            if without := [name for name in names if name not in came_back]:
                self._say(f"the job has ended well, without {', '.join(without)}")
            if not any(child.has_read() for child in self._of_role("scheduler")):
                self._say(
                    "all processes have ended, but none of them had joined the job: does your "
                    "script create a store, as mx.kv.create('dist_sync') does?"
                )
            return 0
        code = first.returncode
        if code == FAILED_ELSEWHERE and (culprit := self._blamed(ended_well, hung)):
            first = culprit
            code = ENDED_EARLY if first in [*ended_well, *hung] else first.returncode
        how = f"failed first: it {how_it_ended(first.returncode)}"
        if first in hung:
            how = "hung and was ended"
        elif first in ended_well:
            how = f"{how_it_ended(first.returncode)} before the job was over"
        _, tail = self._tasks[first]
        lines = [f"{self._name(first)} {how}; its last lines:"]
        lines += [f"    {line}" for line in tail] or ["    (it printed nothing)"]
        lines += [f"mercury launch: all logs are in {self._log_dir}"]
        self._say("\n".join(lines))
        return code if code > 0 else 128 - code

    def _tell_scheduler(self, child: Child) -> None:
        """Those who still wait for it at the start would do so for long: the scheduler tells."""
        for scheduler in self._of_role("scheduler"):
            if scheduler is not child:
                task, _ = self._tasks[child]
                scheduler.tell(ending(task.role, task.rank, child.returncode))

    def _left_of_the_lost(self) -> list[Child]:
        """Of those that the scheduler has lost: one that hangs is not noticed by its end."""
        lost = [child for child in self._tasks if self._name(child) in self._lost_to_scheduler]
        return [child for child in lost if child.poll() is None]

    def _does_without(self, child: Child) -> str:
        """Who keeps the job going without it: of servers and their replicas, the others.

        They may have ended well before the end of this one was heard of. A replica takes the place
        of all servers when one is lost; what is left of them keeps nothing going.
        """
        task, _ = self._tasks[child]
        if task.role == "replica" and all(map(_may_serve, self._of_role("server"))):
            return "its server"
        if task.role not in ("server", "replica"):
            return ""
        replicas = [other for other in self._of_role("replica") if other is not child]
        if not any(map(_may_serve, replicas)):
            return ""
        return "another replica" if task.role == "replica" else "its replica"

    def _goes_on_without(self, child: Child) -> bool:
        """The scheduler decides; it also knows of workers that were started elsewhere. Without one,
        training goes on, if enough of ours are left."""
        task, tail = self._tasks[child]
        if not self._least_workers:
            return False
        # It may be cut off from a job that goes on; of one that has failed, all say so.
        if child.returncode == FAILED_ELSEWHERE and (self._is_over() or self._culprit):
            return False
        if task.role == "scheduler" and not (child.has_read() or self._returns(task)):
            return False  # no job has begun
        enough = self._enough_without(child)
        if self._is_over() and not enough:
            return False
        if not self._returns(task):
            self._lost.append(child)
        lines = [f"lost {self._name(child)}: it {how_it_ended(child.returncode)}; its last lines:"]
        lines += [f"    {line}" for line in tail] or ["    (it printed nothing)"]
        goes_on = "the job goes on" if enough else "the job ends, unless others have joined it"
        lines += [f"mercury launch: {goes_on}; it needs {self._needs(task)}"]
        self._say("\n".join(lines))
        return True

    def _enough_without(self, child: Child) -> bool:
        task, _ = self._tasks[child]
        role = "worker" if task.role == "scheduler" else task.role
        others = [c for c in self._of_role(role) if c is not child and c not in self._lost]
        return len(others) >= (1 if role == "server" else self._least_workers)

    def _needs(self, task: Task) -> str:
        return "a server" if task.role == "server" else f"{self._least_workers} workers"

    def _start_again(self, child: Child) -> int:
        """How many were started in its place."""
        task, _ = self._tasks[child]
        if self._returns(task):
            again = len(self._of_role("scheduler"))
            self._say(f"another scheduler goes on ({again} of {SCHEDULERS_MAX})")
            self._start(task, f"-again-{again}")
            return 1
        if self._replaced == self._replace or self._is_over():
            return 0
        self._replaced += 1
        self._say(f"{task.name} is started again ({self._replaced} of {self._replace})")
        self._start(task, f"-again-{self._replaced}")
        return 1

    def _may_return(self) -> bool:
        """While there is a journal, the job is not over by what the scheduler knew."""
        written = self._journal is not None and self._journal.exists()
        return written and len(self._of_role("scheduler")) <= SCHEDULERS_MAX

    def _returns(self, task: Task) -> bool:
        return task.role == "scheduler" and self._may_return()

    def _is_over(self) -> bool:
        """Or has lost its scheduler for good."""
        ended = any(c.poll() is not None for c in self._of_role("scheduler")[-1:])
        return ended and not self._may_return()

    def _of_role(self, role: str) -> list[Child]:
        return [child for child, (task, _) in self._tasks.items() if task.role == role]

    def _blamed(self, ended_well: Sequence[Child], hung: Sequence[Child]) -> Child | None:
        """The one of these, or of the lost, of which the scheduler says that the job failed."""
        suspects = [*ended_well, *hung, *reversed(self._lost), *self._done_without]
        return next((child for child in suspects if self._name(child) == self._culprit), None)

    def _name(self, child: Child) -> str:
        return self._tasks[child][0].name

    def _say(self, text: str) -> None:
        """After what was printed before, unless nobody reads that."""
        self._output.is_done(IN_ORDER_S)
        self._error.say(f"mercury launch: {text}")

    def hush(self) -> None:
        """Shows nothing from here on: what we end may say that others were lost. Logs keep it."""
        self._output.hush()

    def end_all(self) -> None:
        self._supervisor.end(ask_s=TERM_S)

    def say_ended(self, why: str) -> None:
        """After `end_all`."""
        left = [self._name(child) for child in self._tasks if child.is_left()]
        what = f"still there: {', '.join(left)}" if left else "everything has ended"
        self._say(f"{why}; {what}; all logs are in {self._log_dir}")

    def close(self) -> None:
        """Waits for who reads what is shown, unless he does not."""
        self._output.close()
        self._error.close()


def _may_serve(child: Child) -> bool:
    """It is there, or has ended well."""
    return child.poll() in (None, 0)
