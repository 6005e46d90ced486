"""A checkpoint of one worker alone, without a job, and what a newcomer leaves to the others."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.saving import checkpoint, claim, letting_in, part_file
from pslite_ext.saving.checkpoint import Checkpoint
from pslite_ext.saving.exchange import Seat
from pslite_ext.saving.folder import SHARED, Folder, Place, own


class Front:
    """A number that is trained."""

    def __init__(self) -> None:
        self.number = 0

    def capture_shared(self) -> int:
        return self.number

    def capture_own(self) -> int:
        return self.number

    def dump(self, state: int, file: Any) -> None:
        file.write(str(state).encode())

    def load(self, file: Any) -> int:
        return int(file.read())

    def restore(self, shared: int, mine: int | None) -> None:
        self.number = shared

    def parts(self) -> Iterator[int]:
        yield self.number

    def load_parts(self, files: Iterator[Any]) -> int:
        return sum(map(self.load, files))

    def standing(self) -> dict[str, Any]:
        return {}

    def stand(self, standing: Any) -> None:
        assert standing == {}

    def missing(self) -> str:
        return ""


@pytest.fixture(autouse=True)
def as_if_in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "_folders", set())


def steps_of(folder: Path, part: str) -> list[int]:
    return [place.step for place in Folder(folder).places(part)]


def trained(folder: Path, steps: int, keep: int = 2, front: Front | None = None) -> None:
    front = front or Front()
    saved = Checkpoint(folder, front, Seat(0, 1, 1), 1, keep)
    for _ in range(steps):
        front.number += 1
        saved.step()
    saved.wait()
    checkpoint._folders.clear()


def test_a_script_may_go_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    saved = Checkpoint("run", Front(), Seat(0, 1, 1), 1, 2)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    saved.step()
    saved.wait()
    assert steps_of(tmp_path / "run", SHARED) == [1]


def test_what_cannot_be_written_to_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuses(**_: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuses)
    monkeypatch.setattr(checkpoint, "Exchange", Alone)
    for rank in (0, 1):
        Checkpoint(tmp_path / f"{rank}", Front(), Seat(rank, 2, 2), 1, 2)
    said = "mercury: checkpoint: nothing can be written now: [Errno 30] Read-only file system\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("part", [own(0), SHARED])
def test_it_goes_on_from_the_one_before_what_is_damaged(tmp_path: Path, part: str) -> None:
    trained(tmp_path, 3)
    found = Folder(tmp_path)
    newest = found.places(part)[0]
    assert newest.step == 3
    found.path(newest, part).write_bytes(b"damaged")
    front = Front()
    assert Checkpoint(tmp_path, front, Seat(0, 1, 1), 1, 2).steps == front.number == 2


def test_a_newcomer_leaves_what_another_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the place of worker 0, which the one that lets it in writes for."""
    place = Place(5, 2, 7)
    folder = Folder(tmp_path)
    unfinished = {part: part_file.temporary(folder.room(place, part)) for part in (own(0), SHARED)}
    for path in unfinished.values():
        path.touch()
    words = {"alike": [5, 2], "run": 7, "saves": 1, "by_all": [], "steps": 5}
    taken = {**words, "front": {}, "standing": ""}
    monkeypatch.setattr(_core, "outside", lambda: (0, 1))
    monkeypatch.setattr(letting_in, "take", lambda newcomer: (taken, iter(())))
    monkeypatch.setattr(letting_in, "enter", lambda newcomer, standing: None)
    assert Checkpoint(tmp_path, Front(), Seat(0, 2, 2), 5, 2).steps == 6
    assert not unfinished[own(0)].exists()
    assert unfinished[SHARED].exists()


def test_no_more_are_kept_than_are_looked_at(tmp_path: Path) -> None:
    most = checkpoint.KEEP_MOST
    with pytest.raises(InvalidArgumentError, match=f"keep is {most + 1}; {most} at most are kept"):
        Checkpoint(tmp_path, Front(), Seat(0, 1, 1), 1, most + 1)
    last = most + 20
    trained(tmp_path, last, most)
    assert steps_of(tmp_path, SHARED) == [*range(last, 19, -1)]
    for step, path in zip(range(last, 0, -1), sorted(tmp_path.glob("*/shared.mercury"))[:0:-1]):
        assert f"{step:012d}" in str(path)
        path.write_bytes(b"damaged")
    assert Checkpoint(tmp_path, Front(), Seat(0, 1, 1), 1, most).steps == 20


@pytest.mark.parametrize("folder", ["s3://bucket/run", Path("gs://bucket/run"), "file:///run"])
def test_an_address_is_not_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str | Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgumentError, match=f"checkpoint: '{folder}' is not a folder"):
        Checkpoint(folder, Front(), Seat(0, 1, 1), 1, 2)
    assert not [*tmp_path.iterdir()]
    trained(tmp_path / "a:" / "run", 1)


def test_two_jobs_do_not_write_to_one_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody holds it once the first one is killed, whatever that has forked."""
    code = (
        "import os, sys, time; from pathlib import Path; from pslite_ext.saving import claim\n"
        "held = claim.hold(Path(sys.argv[1]))\n"
        "if os.fork(): print('holds', flush=True)\n"
        "time.sleep(600)\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == b"holds\n"
        with monkeypatch.context() as patched:
            patched.setattr(claim, "PATIENCE_S", 0.0)
            says = f"another job writes to {tmp_path}, as process {other.pid} on this host"
            with pytest.raises(InvalidArgumentError, match=says):
                Checkpoint(tmp_path, Front(), Seat(0, 1, 1), 1, 2)
            patched.setattr(claim, "_holder", lambda _: 0)  # as of one on another host
            trained(tmp_path, 1)
        other.kill()
        other.wait()
        trained(tmp_path, 1)
        (tmp_path / claim.FILE).unlink()
        (tmp_path / claim.FILE).mkdir()
        trained(tmp_path, 1)
    finally:
        os.killpg(other.pid, signal.SIGKILL)
        other.communicate()


class FullDisk(Front):
    """Has no room for the shared part, from that step on."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self._step = step

    def capture_shared(self) -> int:
        return -self.number

    def dump(self, state: int, file: Any) -> None:
        if state <= -self._step:
            raise OSError(28, "No space left on device")
        super().dump(state, file)


def test_what_is_not_whole_does_not_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained(tmp_path, 12, front=FullDisk(4))
    said = capsys.readouterr().err
    assert "the checkpoint of step 12 was not written: [Errno 28] No space left" in said
    assert steps_of(tmp_path, own(0)) == steps_of(tmp_path, SHARED) == [3, 2]
    assert len(Folder(tmp_path).all_places()) == 2


def test_what_all_have_stays_if_it_cannot_be_written_again(tmp_path: Path) -> None:
    front = FullDisk(9)
    saved = Checkpoint(tmp_path, front, Seat(0, 1, 1), 1, 2)
    front.number = 1
    saved.step()
    front.number = 9
    saved.save()
    saved.wait()
    assert steps_of(tmp_path, own(0)) == steps_of(tmp_path, SHARED) == [1]


def test_a_step_that_is_saved_twice_counts_once(tmp_path: Path) -> None:
    saved = Checkpoint(tmp_path, Front(), Seat(0, 1, 1), 1, 2)
    for _ in range(2):
        saved.step()
        saved.save()
    saved.step()
    saved.wait()
    assert steps_of(tmp_path, SHARED) == [3, 2, 1]


class Alone:
    """The exchange of a worker whose others say what it says, until they are lost."""

    lost: tuple[int, ...] = ()

    def __init__(self, number: int, seat: Seat) -> None:
        del number
        self._places = seat.places

    def gather(self, what: str, mine: Sequence[int]) -> list[list[int]]:
        del what
        return [[*mine]] * self._places

    def there(self) -> list[int]:
        return [rank for rank in range(self._places) if rank not in self.lost]

    def all_say(self, what: str, word: str) -> bool:
        del what, word
        return True


def test_what_the_first_worker_may_not_have_written_is_not_what_all_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "Exchange", Alone)
    saved = Checkpoint(tmp_path, Front(), Seat(1, 2, 2), 1, 2)
    for _ in range(3):
        saved.step()
    monkeypatch.setattr(Alone, "lost", (0,))
    for _ in range(2):
        saved.step()
    saved.wait()
    assert {2, 4, 5} <= {*steps_of(tmp_path, own(1))}
    assert steps_of(tmp_path, SHARED) == [5, 4]


def test_who_wrote_the_shared_part_before_removes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Worker 1, on a host of its own, where worker 3 had begun to write, too."""
    folder = Folder(tmp_path)
    for part in (SHARED, own(1)):
        path = folder.room(Place(7, 1, 7), part)
        part_file.write(path, lambda file: file.write(b"7"))
    for part in (SHARED, own(3)):
        part_file.temporary(folder.room(Place(9, 1, 7), part)).touch()
    monkeypatch.setattr(checkpoint, "Exchange", Alone)
    saved = Checkpoint(tmp_path, Front(), Seat(1, 2, 2), 1, 2)
    assert saved.steps == 7
    assert [place.step for place in folder.all_places()] == [7]
    part_file.temporary(folder.path(Place(7, 1, 7), own(3))).touch()  # who is lost later on
    for _ in range(5):
        saved.step()
    saved.wait()
    assert steps_of(tmp_path, SHARED) == []
    assert sorted(place.step for place in folder.all_places()) == [10, 11, 12]


class Both:
    """The exchange of two workers in one process."""

    def __init__(self) -> None:
        self._barrier = threading.Barrier(2, timeout=20)
        self._table: list[list[int]] = [[], []]
        self._given = b""

    def __call__(self, number: int, seat: Seat) -> Any:
        del number
        its = _OfOne()
        its.gather = lambda _what, mine: self._gather(seat.rank, mine)
        its.of_one = self._of_one
        return its

    def _gather(self, rank: int, mine: Sequence[int]) -> list[list[int]]:
        self._table[rank] = [*mine]
        self._barrier.wait()
        rows = [*self._table]
        self._barrier.wait()
        return rows

    def _of_one(self, file: Any, size: int) -> io.BytesIO:
        if file is not None:
            self._given = file.read()
        self._barrier.wait()
        assert len(self._given) == size
        return io.BytesIO(self._given)


class _OfOne:
    gather: Any
    of_one: Any


def test_what_another_wrote_on_its_own_host_is_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Worker 0 was lost after step 5; worker 1's own part of step 9 is damaged."""
    hosts = [tmp_path / "0", tmp_path / "1"]
    for rank, part, place in (
        *((rank, own(rank), Place(5, 2, 7)) for rank in (0, 1)),
        (0, SHARED, Place(5, 2, 7)),
        *((1, part, Place(step, 1, 7)) for part in (own(1), SHARED) for step in (7, 9)),
    ):
        number = str(place.step).encode()
        path = Folder(hosts[rank]).room(place, part)
        part_file.write(path, lambda file, number=number: file.write(number))  # type: ignore[misc]
    Folder(hosts[1]).path(Place(9, 1, 7), own(1)).write_bytes(b"damaged")
    monkeypatch.setattr(checkpoint, "Exchange", Both())
    fronts = [Front(), Front()]
    with ThreadPoolExecutor(2) as pool:
        begun = [
            pool.submit(Checkpoint, hosts[rank], fronts[rank], Seat(rank, 2, 2), 1, 2)
            for rank in (0, 1)
        ]
        assert [its.result().steps for its in begun] == [7, 7]
    assert [front.number for front in fronts] == [7, 7]
    assert steps_of(hosts[1], own(1)) == [7, 5]
    assert steps_of(hosts[1], SHARED) == [7]
