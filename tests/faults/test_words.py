"""Jobs that fail while every message of the core is the same word: only people read messages.

Who is named, which exception is raised and which exit code a process has are what they are in
English (tests/faults/test_ends.py, test_models_differ.py).
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pslite_ext.errors import FAILED_ELSEWHERE
from tests.cluster import ROOT, clean_environment

LIMIT_S = 120
WORD = "word"
# A line in one piece, which nothing of the core's comes into the middle of.
SAY = "def say(*words): os.write(1, (' '.join(map(str, words)) + chr(10)).encode())\n"
HEAD = (
    "import os, mxnet as mx\n"
    f"from pslite_ext import errors\n{SAY}"
    "kv, x = mx.kv.create('dist_sync'), mx.nd.ones((5,))\n"
    "me = kv.rank\n"
)


def comes_to(folder: Path, code: str, **env: str) -> tuple[int, str]:
    """`mercury launch` of two workers, a server and that script: exit code and output."""
    (folder / "sitecustomize.py").write_text(
        f"from pslite_ext import _core\n_core.word_failures_as({WORD!r})\n"
    )
    words = ("-n", "2", "-s", "1", "--log-dir", str(folder / "logs"), "--van", "mercury")
    job = subprocess.run(
        [sys.executable, "-m", "tracer", "launch", *words, "--", sys.executable, "-c", code],
        cwd=ROOT,
        env=clean_environment(OMP_NUM_THREADS="1", PYTHONPATH=f"{folder}:{ROOT}", **env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=LIMIT_S,
        text=True,
    )
    assert "lost worker" not in job.stdout  # else a message has kept its words
    return job.returncode, job.stdout


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("end", "code", "how"),
    [
        ("os.kill(os.getpid(), 9)", 128 + signal.SIGKILL, "failed first: it was killed by signal"),
        ("raise ValueError('mine')", 1, "failed first: it ended with exit code 1"),
        ("os._exit(0)", 1, "ended with exit code 0 before the job was over"),
    ],
)
def test_the_culprit_is_named(tmp_path: Path, end: str, code: int, how: str) -> None:
    script = HEAD + f"kv.init('w', x)\nif me == 1: {end}\nkv.pushpull('w', x)\nx.wait_to_read()\n"
    returned, out = comes_to(tmp_path, script)
    assert returned == code, out
    assert f"mercury launch: worker 1 {how}" in out
    assert f"[scheduler] [mercury scheduler] error: {WORD}" in out


def test_a_code_of_one_s_own_does_not_hide_another_s_failure(tmp_path: Path) -> None:
    script = (
        f"import os, mxnet as mx\n{SAY}"
        "try:\n"
        "    kv, x = mx.kv.create('dist_sync'), mx.nd.ones((5,))\n"
        "    if kv.rank == 1: raise ValueError('mine')\n"
        "    kv.init('w', x)\n    kv.pushpull('w', x)\n    x.wait_to_read()\n"
        "except mx.MXNetError as error:\n"
        "    say('blames', error.failure.culprit)\n"
        "    raise RuntimeError('what the script makes of it') from error\n"
    )
    returned, out = comes_to(tmp_path, script)
    assert returned == 1, out
    assert "mercury launch: worker 1 failed first" in out
    assert "[worker 0] blames ('worker', 1)" in out
    assert f"worker 0 ended with exit code {FAILED_ELSEWHERE};" not in out


def test_workers_that_disagree_are_both_told_what_it_is(tmp_path: Path) -> None:
    script = HEAD + (
        "try:\n"
        "    y = mx.nd.ones((5 + me,))\n"
        "    kv.init('w', y)\n"
        "    kv.pushpull('w', y, out=y)\n"
        "    y.wait_to_read()\n"
        "except errors.InvalidArgumentError as error:\n"
        "    say('about a', error.failure.about[0])\n    raise\n"
    )
    returned, out = comes_to(tmp_path, script)
    assert returned == 1, out
    assert out.count("] about a tensor\n") == 2


def test_what_a_script_has_seen_does_not_fail_it(tmp_path: Path) -> None:
    """Both operations fail of one thing; the second one is never looked at."""
    script = HEAD + (
        "kv.init('w', x)\n"
        "y = mx.nd.ones((5,))\n"
        "for out in (x, y): kv.pushpull('w', mx.nd.ones((5,)), out=out)\n"
        "try:\n    x.wait_to_read()\nexcept errors.ExhaustedError: say('seen')\n"
    )
    returned, out = comes_to(tmp_path, script, MERCURY_SERVER_BYTES_MAX="200")
    assert returned == 0, out
    assert out.count("] seen\n") == 2
