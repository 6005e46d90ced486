"""Jobs under PyTorch that die and go on: from the newest checkpoint that all have, bit for bit."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.cluster import ROOT, clean_environment, mercury, small_disk
from tests.integration.torch_workers import torch_command, torch_job

pytestmark = pytest.mark.xdist_group("torch, a second time")  # imported once
STEPS = 23


def run(
    folder: Path | str, *more: int, workers: int = 2, slow_s: float = 0.0, way: str = ""
) -> list[list[str]]:
    """What each worker says, line by line."""
    words = (str(folder), str(STEPS), *map(str, more))
    with torch_job(
        "torch_saving.py",
        *words,
        workers=workers,
        servers=1,
        MERCURY_DETERMINISTIC="1",
        SLOW_S=str(slow_s),
        WAY=way,
    ) as job:
        job.wait()
        if not more:
            job.check()
        return [
            [line for line in w.output.splitlines() if not line.startswith("mercury: worker")]
            for w in job.workers
        ]


def ends(said: list[list[str]]) -> list[list[str]]:
    return [lines[-2:] for lines in said]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("workers", "way"), [*itertools.product([1, 3], ["", "local steps"]), (3, "apart")]
)
def test_a_job_that_died_goes_on_as_if_it_had_not(tmp_path: Path, workers: int, way: str) -> None:
    whole = run(tmp_path / "whole", workers=workers, way=way)
    assert {lines[-2] for lines in whole} == {whole[0][-2]}
    run(tmp_path / "broken", 13, workers=workers, way=way)
    resumed = run(tmp_path / "broken", workers=workers, way=way)
    assert f"mercury: goes on after step 10, from {tmp_path / 'broken'}" in resumed[0]
    assert all("begins after 10" in lines for lines in resumed)
    assert ends(resumed) == ends(whole)
    # The last two that all had are there, the newest, and nothing unfinished.
    names = sorted(path.name for path in (tmp_path / "broken").glob("step-*"))
    assert [name[:17] for name in names] == [f"step-{step:012d}" for step in (10, 15, 20)]
    assert not list((tmp_path / "broken").rglob("*.part"))


def test_folders_of_each_host_s_own(tmp_path: Path) -> None:
    """The shared part comes from worker 0; a damaged part is not used by anybody."""
    whole = run(tmp_path / "whole")
    each = tmp_path / "of RANK"
    run(each, 18)
    (newest,) = (tmp_path / "of 1").glob("step-000000000015-*/worker-1.mercury")
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
    resumed = run(each)
    assert all("begins after 10" in lines for lines in resumed)
    assert f"mercury: {newest} is not used: what was saved has changed on the disk" in resumed[1]
    assert ends(resumed) == ends(whole)


def test_a_folder_that_is_gone_costs_nobody_what_is_left(tmp_path: Path) -> None:
    each = tmp_path / "of RANK"
    run(each, 23 - 1)
    (tmp_path / "of 0").rename(tmp_path / "away")
    with torch_job("torch_saving.py", str(each), str(STEPS), workers=2, servers=1) as job:
        job.wait()
        why = "worker 0 sees none that is whole {}, but worker 1 has parts of step 20"
        says = [why.format(f"in {tmp_path / 'of 0'}"), why.format("where it looks")]
        # Who is last to see it may hear first why the other has ended.
        assert all(any(s in w.output for s in says) for w in job.workers), job.report()
    assert len(list((tmp_path / "of 1").rglob("worker-1.mercury"))) == 3


def test_a_worker_with_a_slow_disk_loses_nothing(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole")
    run(tmp_path / "broken", 21, slow_s=0.5)
    resumed = run(tmp_path / "broken")
    assert not any("begin as the one who wrote" in line for line in resumed[0])
    assert any(line in resumed[0] for line in ("begins after 10", "begins after 15"))
    assert ends(resumed) == ends(whole)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("way", ["", "local steps", "apart"])
def test_a_new_worker_begins_as_worker_0(tmp_path: Path, way: str) -> None:
    run(tmp_path, 13, way=way)
    resumed = run(tmp_path, workers=3, way=way)
    assert all("begins after 10" in lines for lines in resumed)
    line = f"mercury: goes on after step 10, from {tmp_path}; workers 2 have no part of their own"
    assert any(said.startswith(line) for said in resumed[0])
    assert {lines[-2] for lines in resumed} == {resumed[0][-2]}


def test_a_job_that_is_started_again_goes_on(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole")
    done = mercury(
        *("launch", "-n", 2, "-s", 1, "--log-dir", tmp_path / "logs", "--restarts", 1, "--"),
        *(*torch_command(), ROOT / "tests" / "integration" / "torch_saving.py"),
        *(tmp_path / "run", STEPS, 13),
        env=clean_environment(PYTHONPATH=str(ROOT), MERCURY_DETERMINISTIC="1"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mercury launch: starts the job again (1 of 1)" in done.stderr
    for rank, lines in enumerate(ends(whole)):
        assert all(f"[worker {rank}] {line}" in done.stdout for line in lines)


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    words = ("torch_saving_refused.py", str(tmp_path))
    with torch_job(*words, workers=1, servers=1) as job:
        job.wait()
        job.check()
        lines = [line for line in job.workers[0].output.splitlines() if ": " in line]
        halves = [line for line in lines if "it is not saved" in line]
        half = "the SGD is not named, and its model is: it is not saved, and begins anew when the"
        assert halves == [f"mercury: checkpoint: {half} job goes on"] * 2
    said = dict(line.split(": ", 1) for line in lines)
    expected = {
        "every": "checkpoint: every is 0; a whole number is needed, 1 or more",
        "keep": "checkpoint: keep is 1; a whole number is needed, 2 or more",
        "nothing": "checkpoint: name what is to be saved: ",
        "no state": "checkpoint: table is a list, which has no state_dict and load_state_dict",
        "sharded": "checkpoint: net has a FullyShardedDataParallel in '0', of which each worker ",
        "no folder": "checkpoint: the folder cannot be used: ",
        "twice": f"checkpoint: {tmp_path / 'narrow'} is another checkpoint's: name all",
        "another model": f"the checkpoint of step 1 in {tmp_path / 'another'} does not fit what",
        "other names": f"the checkpoint of step 1 in {tmp_path / 'names'} does not fit what is to "
        "be restored: it has model, optimizer, and the script saves net; ",
        "trained otherwise": f"the checkpoint of step 1 in {tmp_path / 'names'} does not fit what "
        "is to be restored: optimizer was trained by mercury.wrap then, and is by mercury.local_",
        "other steps": f"the checkpoint of step 1 in {tmp_path / 'rarely'} does not fit what is to "
        "be restored: optimizer: it was saved with every=2, fragments=1, delay=0, alpha=0, "
        "outer=SGD; the script has every=4, ",
        "synchronous": f"the checkpoint of step 1 in {tmp_path / 'rarely'} does not fit what is to "
        "be restored: optimizer was trained by mercury.local_steps then, and is by mercury.wrap",
        "half": "checkpoint: the Linear is not named, and its optimizer is: in local steps both ",
        "other half": "checkpoint: the SGD is not named, and its model is: in local steps both ",
        "odd": "checkpoint: what is to be saved holds an object of __main__.Own that torch",
        "path": "checkpoint: what is to be saved holds an object of pathlib.PosixPath that torch",
        "fields": "checkpoint: what is to be saved holds an object of numpy.",
        "default": "checkpoint: what is to be saved holds an object of collections.defaultdict ",
        "function": "checkpoint: what is to be saved cannot be written: ",
        "nowhere": "checkpoint: own cannot be saved: Cannot copy out of meta tensor",
        "early": "mercury.checkpoint has this model or optimizer already: call mercury.wrap first",
    }
    for what, text in expected.items():
        assert said[what].startswith(text), job.report()


def test_a_full_disk_costs_the_checkpoint_and_not_the_training(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    with small_disk(tmp_path / "disk", 150_000):
        said = run(tmp_path / "disk" / "run")
        left = list((tmp_path / "disk").rglob("*.part"))
    # What was not written may be said after the last step's words.
    same = {line for lines in said for line in lines if line.startswith("same ")}
    assert len(same) == 1, said
    assert any(
        line.startswith("mercury: the checkpoint of step ")
        and line.endswith("; training goes on")
        and "No space left on device" in line
        for line in said[0]
    )
    assert not left
