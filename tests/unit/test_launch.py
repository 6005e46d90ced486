"""mercury launch with small children that are no job: what starts, what is left, what is said."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from pslite_ext.errors import Failure, PeerLostError
from pslite_ext.launch import display, scheduler_words
from pslite_ext.launch.scheduler_words import Ending
from pslite_ext.launch.tasks import Task
from pslite_ext.launch.watch import JobWatch
from tests.launching import LIMIT_S, came_to, launch, python


def blames(culprit: tuple[str, int] | None) -> str:
    """A scheduler that says so, among others that fail for what another did."""
    error = PeerLostError("read by people alone")
    error.failure = Failure(error.code, culprit=culprit)
    words = scheduler_words.failure(error)
    return (
        f"if os.environ['DMLC_ROLE'] == 'scheduler': print({words!r}, *range(30), sep='\\n')\n"
        "sys.exit(69)\n"
    )


def test_traces(tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    code = "print(os.environ['MERCURY_TRACE_DIR'], os.environ['MERCURY_TRACE_STEPS'])"
    wanted = ["-n", "1", "--trace-dir", str(traces), "--trace-steps", "3:5"]
    _, out, _ = came_to(tmp_path, *wanted, *python(code))
    assert set(out.split("\n")) >= {f"[{n}] {traces} 3:5" for n in ("worker 0", "server 0")}
    (traces / "trace_worker_0.txt").touch()
    ended, out, err = came_to(tmp_path, *wanted, *python("print('started')"))
    assert (ended, out) == (2, "")
    assert "holds a trace of another run" in err


def test_every_role_is_started_with_its_variables(tmp_path: Path) -> None:
    code = "print(*(os.environ.get('DMLC_' + k) for k in ('ROLE', 'TASK_ID', 'NUM_WORKER')))"
    ended, out, err = came_to(tmp_path, "-n", "2", "-s", "1", *python(code))
    assert ended == 0
    assert err.startswith("mercury launch: all processes have ended, but none of them had joined ")
    assert len(err.splitlines()) == 1
    expected = {"[scheduler] scheduler None 2", "[server 0] server 0 2"}
    expected |= {"[worker 0] worker 0 2", "[worker 1] worker 1 2"}
    assert set(out.splitlines()) == expected
    assert (tmp_path / "logs" / "worker_1.log").read_text() == "worker 1 2\n"


def test_the_first_failure_is_named_and_returned(tmp_path: Path) -> None:
    code = (
        "worker = os.environ['DMLC_ROLE'] == 'worker' and os.environ['DMLC_TASK_ID'] == '1'\n"
        "if not worker: time.sleep(30)\n"
        "print('\\n'.join(f'line {i}' for i in range(40)))\n"
        "sys.exit(3)\n"
    )
    ended, _, err = came_to(tmp_path, "-n", "2", "--grace", "0.5", *python(code))
    assert ended == 3
    assert "worker 1 failed first: it ended with exit code 3" in err
    assert "line 39" in err
    assert "line 19\n" not in err


def test_a_job_that_fails_is_started_again(tmp_path: Path) -> None:
    code = (
        "if os.environ['DMLC_ROLE'] == 'worker':\n"
        "    starts = os.path.join(os.environ['FOLDER'], os.environ['DMLC_PS_ROOT_PORT'])\n"
        "    open(starts, 'w').close()\n"
        "    sys.exit(7 if len(os.listdir(os.environ['FOLDER'])) < 3 else 0)\n"
    )
    (tmp_path / "starts").mkdir()
    words = ("-n", "1", "-s", "1", "--env", f"FOLDER={tmp_path / 'starts'}", "--restarts")
    returned, _, err = came_to(tmp_path, *words, "1", *python(code))
    assert returned == 7
    assert "mercury launch: starts the job again (1 of 1)" in err
    assert err.count("worker 0 failed first") == 2
    assert (tmp_path / "logs" / "restart-1" / "worker_0.log").exists()
    returned, _, err = came_to(tmp_path, *words, "3", *python(code))
    assert returned == 0
    assert "again" not in err
    assert len(list((tmp_path / "starts").iterdir())) == 3  # each on a port of its own


def test_each_start_has_traces_of_its_own(tmp_path: Path) -> None:
    code = (
        "folder = os.environ['MERCURY_TRACE_DIR']\n"
        "os.makedirs(folder, exist_ok=True)\n"
        "open(os.path.join(folder, 'trace_' + os.environ['DMLC_ROLE']), 'x').close()\n"
        "sys.exit(7 if os.environ['DMLC_ROLE'] == 'worker' else 0)\n"
    )
    traces = tmp_path / "traces"
    words = ("-n", "1", "-s", "1", "--restarts", "1", *python(code))
    returned, _, err = came_to(tmp_path, *words, MERCURY_TRACE_DIR=str(traces))
    assert returned == 7, err
    assert (traces / "trace_worker").exists()
    assert (traces / "restart-1" / "trace_worker").exists()


def test_lost_workers_are_started_again(tmp_path: Path) -> None:
    """As often as is said; those that end well are not."""
    code = (
        "role, rank = os.environ['DMLC_ROLE'], os.environ.get('DMLC_TASK_ID')\n"
        "path = sys.argv[1] + '/times'\n"
        "while role == 'scheduler' and not (os.path.exists(path) and os.path.getsize(path) > 2):\n"
        "    time.sleep(0.05)\n"
        "if role == 'worker' and rank == '1':\n"
        "    with open(path, 'a') as times: times.write('x')\n"
        "    if os.path.getsize(path) < 3: os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    words = ["-n", "3", "-s", "1", "--min-workers", "1", "--replace", "4"]
    rc, _, err = came_to(tmp_path, *words, *python(code), str(tmp_path))
    assert rc == 0, err
    assert (tmp_path / "times").read_text() == "xxx"
    assert [n for n in (1, 2, 3) if f"worker 1 is started again ({n} of 4)" in err] == [1, 2]
    logs = sorted(path.name for path in (tmp_path / "logs").glob("worker_1*"))
    assert logs == ["worker_1-again-1.log", "worker_1-again-2.log", "worker_1.log"]
    assert f"workers can join: mercury join {tmp_path / 'logs' / 'join.env'}" in err


def test_who_came_back_and_ended_well_was_not_done_without(tmp_path: Path) -> None:
    code = (
        "who = os.environ['DMLC_ROLE'] + os.environ.get('DMLC_TASK_ID', '')\n"
        "died, came_back = (os.path.join(sys.argv[1], what) for what in ('died', 'came back'))\n"
        "if who == 'server1':\n"
        "    again = os.path.exists(died)\n"
        "    open(came_back if again else died, 'w').close()\n"
        "    sys.exit(0 if again else 3)\n"
        "while not os.path.exists(came_back): time.sleep(0.05)\n"
        "if who == 'worker1': sys.exit(3)\n"
    )
    words = ["-n", "2", "-s", "2", "--min-workers", "1", "--replace", "1"]
    ended, _, err = came_to(tmp_path, *words, *python(code), str(tmp_path))
    assert ended == 0, err
    assert "server 1 is started again (1 of 1)" in err
    assert "mercury launch: the job has ended well, without worker 1\n" in err


def test_the_scheduler_alone_names_a_culprit(tmp_path: Path) -> None:
    code = blames(("worker", 1)).replace("'scheduler'", "'server'")
    code = f"if os.environ.get('DMLC_TASK_ID') == '1': sys.exit(0)\n{code}"
    ended, out, err = came_to(tmp_path, "-n", "2", "-s", "1", *python(code))
    assert ended == 69
    assert "failed first: it ended with exit code 69" in err
    assert '[server 0] \x1e{"culprit": ["worker", 1]}' in out


@pytest.mark.parametrize("goes_on", [True, False])
def test_the_scheduler_says_whether_enough_workers_are_left(tmp_path: Path, goes_on: bool) -> None:
    """It knows of workers that were started elsewhere."""
    lost, job_is_over = tmp_path / "lost", "sys.exit(0)" if goes_on else blames(("worker", 1))
    code = (
        "who = os.environ['DMLC_ROLE'], os.environ.get('DMLC_TASK_ID')\n"
        f"lost = {str(lost)!r}\n"
        "if who == ('worker', '1'):\n"
        "    open(lost, 'w').close()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "while not os.path.exists(lost): time.sleep(0.05)\n"
        "if who[0] == 'scheduler': sys.stdin.readline(); sys.stdin.readline()\n"  # hears of it
    )
    words = ["-n", "2", "-s", "1", "--min-workers", "2", "--max-workers", "3"]
    ended, _, err = came_to(tmp_path, *words, *python(code + job_is_over))
    assert "worker 1: it was killed by signal 9; its last lines" in err
    assert "the job ends, unless others have joined it; it needs 2 workers" in err
    assert ("the job has ended well, without worker 1" in err) == goes_on
    assert ("worker 1 failed first: it was killed by signal 9" in err) != goes_on
    assert ended == (0 if goes_on else 128 + signal.SIGKILL)


def test_what_is_used_wrongly_is_not_started_again(tmp_path: Path) -> None:
    words = ("-n", "1", "-s", "1", "--restarts")
    returned, _, err = came_to(tmp_path, *words, "3", *python("sys.exit(2)"))
    assert (returned, "again" in err) == (2, False)
    returned, _, err = came_to(tmp_path, *words, "-1", *python("pass"))
    assert (returned, err) == (2, "mercury launch: --restarts is -1; allowed: 0 or more\n")


def test_a_signal_is_128_and_its_number(tmp_path: Path) -> None:
    code = "os.environ['DMLC_ROLE'] == 'worker' and os.kill(os.getpid(), signal.SIGSEGV)"
    ended, _, err = came_to(tmp_path, "-n", "1", *python(code))
    assert ended == 128 + signal.SIGSEGV
    assert "worker 0 failed first: it was killed by signal 11" in err


@pytest.mark.parametrize(
    ("culprit", "named"),
    [
        (("worker", 1), "worker 1 ended with exit code 0 before"),
        (None, "failed first: it ended with exit code 69"),
        (("worker", 10), "failed first: it ended with exit code 69"),
    ],
)
def test_who_ended_with_0_is_named_if_the_job_failed_of_it(
    tmp_path: Path, culprit: tuple[str, int] | None, named: str
) -> None:
    code = "if os.environ.get('DMLC_TASK_ID') == '1': sys.exit(0)\n" + blames(culprit)
    ended, _, err = came_to(tmp_path, "-n", "2", "-s", "1", *python(code))
    assert named in err
    assert ended == (1 if "code 0" in named else 69)


def test_who_hangs_is_named_if_the_job_failed_of_it(tmp_path: Path) -> None:
    stuck = str(tmp_path / "stuck")
    code = (
        "if os.environ.get('DMLC_TASK_ID') == '1':\n"
        "    print('is stuck', flush=True)\n"
        f"    open({stuck!r}, 'w').close()\n"
        "    time.sleep(600)\n"
        f"while not os.path.exists({stuck!r}): time.sleep(0.05)\n"
    ) + blames(("worker", 1))
    ended, _, err = came_to(tmp_path, "-n", "2", "-s", "1", "--grace", "5", *python(code))
    assert "mercury launch: worker 1 hung and was ended; its last lines:\n    is stuck\n" in err
    assert ended == 1


def test_nobody_has_to_read_what_is_shown(tmp_path: Path) -> None:
    """As with `mercury launch ... | head -1`: the job goes on, and its exit code is its own."""
    code = (
        "worker = os.environ['DMLC_ROLE'] == 'worker'\n"
        "if not worker: sys.exit(0)\n"
        "for _ in range(2000): print('x' * 100)\n"
        "print('the last')\n"
        "sys.exit(3)\n"
    )
    job = launch(tmp_path, "-n", "1", *python(code))
    assert job.stdout is not None
    assert job.stderr is not None
    job.stdout.readline()
    job.stdout.close()
    assert job.wait(timeout=LIMIT_S) == 3
    err = job.stderr.read()
    job.stderr.close()
    assert err.count("output is no longer shown (Broken pipe); it goes on in ") == 1
    assert "worker 0 failed first: it ended with exit code 3" in err
    assert "    the last" in err
    assert (tmp_path / "logs" / "worker_0.log").read_text().endswith("the last\n")


def test_a_reader_who_reads_nothing_keeps_nobody_from_hearing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A worker that prints more than anybody takes is killed: all others hear of it."""
    reading, writing = os.pipe()
    monkeypatch.setattr(display, "PATIENCE_S", 0.0)
    heard = tmp_path / "heard"
    repeats = ("bash", "-c", 'read line; echo "$line" > $0', str(heard))
    prints = (
        "import signal\nfor _ in range(40): print('x' * 1000)\n"
        "signal.alarm(1)\nwhile True: print('x' * 1000)\n"
    )
    with open(writing, "w") as shown, open(reading, "rb") as reader:
        monkeypatch.setattr(sys, "stdout", shown)
        watch = JobWatch(tmp_path / "logs", LIMIT_S)
        watch.start(
            [
                Task("scheduler", 0, repeats, {}, b""),
                Task("worker", 0, (sys.executable, "-c", prints), {}),
            ]
        )
        try:
            assert watch.wait() == 128 + signal.SIGALRM
        finally:
            watch.end_all()
            watch.close()
        begun = reader.read(100)
    assert begun == b"[worker 0] " + b"x" * 89
    assert scheduler_words.heard(heard.read_bytes()) == Ending("worker", 0, -14)
    said = capfd.readouterr().err
    assert "worker 0 failed first: it was killed by signal 14; its last lines:\n    xxx" in said
    assert f"output is no longer shown (nobody reads it); it goes on in {tmp_path}" in said


@pytest.mark.parametrize(("dies", "stays"), [("server", "replica"), ("replica", "server")])
def test_a_server_and_its_replica_can_do_without_each_other(
    tmp_path: Path, dies: str, stays: str
) -> None:
    code = (
        "role = os.environ['DMLC_ROLE']\n"
        f"if role == {dies!r}: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"while role == {stays!r}: time.sleep(0.05)\n"
    )
    job = launch(tmp_path, "-n", "1", "-s", "1", "--replicas", "1", *python(code))
    assert job.stderr is not None
    said = job.stderr.readline()
    assert said == f"mercury launch: {dies} 0 was killed by signal 9; its {stays} is there\n"
    job.send_signal(signal.SIGTERM)
    job.communicate(timeout=LIMIT_S)


@pytest.mark.parametrize(("lost", "code"), [(["server 0"], 0), ([], 3)])
def test_a_server_that_fails_as_the_job_ends_fails_it_unless_it_was_lost_before(
    tmp_path: Path, lost: list[str], code: int
) -> None:
    """Its replica has ended well by then, whether it has become the server or not."""
    script = (
        f"if os.environ['DMLC_ROLE'] == 'scheduler': print({scheduler_words.without(lost)!r})\n"
        "if os.environ['DMLC_ROLE'] != 'server': sys.exit(0)\n"
        "time.sleep(2)\n"
        "sys.exit(3)\n"
    )
    ended, _, err = came_to(tmp_path, "-n", "1", "-s", "1", "--replicas", "1", *python(script))
    assert ended == code
    assert "server 0 ended with exit code 3; its replica is there" in err
    assert ("server 0 failed first: it ended with exit code 3" in err) == (code != 0)


def test_both_a_server_and_its_replica_are_too_many(tmp_path: Path) -> None:
    code = "if os.environ['DMLC_ROLE'] in ('server', 'replica'): sys.exit(3)"
    ended, _, err = came_to(tmp_path, "-n", "1", "-s", "1", "--replicas", "1", *python(code))
    assert ended == 3
    assert "failed first: it ended with exit code 3" in err


def test_replicas_go_on_one_after_another(tmp_path: Path) -> None:
    code = (
        "who = os.environ['DMLC_ROLE'] + os.environ.get('DMLC_TASK_ID', '')\n"
        "while not os.path.exists(os.path.join(sys.argv[1], who)): time.sleep(0.05)\n"
        "sys.exit(3)\n"
    )
    words = ["-n", "1", "-s", "1", "--replicas", "3", "--grace", "0.5"]
    job = launch(tmp_path, *words, *python(code), str(tmp_path))
    assert job.stderr is not None
    for role, rank, who in (
        ("replica", 2, "its server"),
        ("server", 0, "its replica"),
        ("replica", 0, "another replica"),
    ):
        (tmp_path / f"{role}{rank}").touch()
        said = job.stderr.readline()
        assert said == f"mercury launch: {role} {rank} ended with exit code 3; {who} is there\n"
    (tmp_path / "replica1").touch()
    _, err = job.communicate(timeout=LIMIT_S)
    assert job.returncode == 3
    assert "replica 1 failed first: it ended with exit code 3" in err


def test_who_was_done_without_is_named_if_the_job_failed_of_it(tmp_path: Path) -> None:
    """As a server whose next replica has not got the model yet."""
    heard = tmp_path / "heard"
    code = (
        "if os.environ['DMLC_ROLE'] == 'server': os.kill(os.getpid(), signal.SIGKILL)\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.05)\n"
    ) + blames(("server", 0))
    words = ["-n", "1", "-s", "1", "--replicas", "1"]
    job = launch(tmp_path, *words, *python(code), str(heard))
    assert job.stderr is not None
    assert "its replica is there" in job.stderr.readline()
    heard.touch()
    _, err = job.communicate(timeout=LIMIT_S)
    assert job.returncode == 128 + signal.SIGKILL
    assert "server 0 failed first: it was killed by signal 9" in err


def test_servers_that_their_replica_has_followed_do_not_keep_the_job_going(tmp_path: Path) -> None:
    lost = tmp_path / "lost"
    code = (
        "who = os.environ['DMLC_ROLE'], os.environ.get('DMLC_TASK_ID')\n"
        f"if who == ('server', '1'): open({str(lost)!r}, 'w').close(); sys.exit(3)\n"
        f"while who[0] != 'replica' or not os.path.exists({str(lost)!r}): time.sleep(0.05)\n"
        "sys.exit(4)\n"
    )
    words = ["-n", "1", "-s", "3", "--replicas", "1", "--grace", "1"]
    ended, _, err = came_to(tmp_path, *words, *python(code))
    assert ended in (3, 4), err  # whichever was heard of first, the other one keeps nothing going
    assert f"failed first: it ended with exit code {ended}" in err


def test_options_of_the_command_stay_where_they_are(tmp_path: Path) -> None:
    words = ["--lr", "0.1", "-n", "9", "--num-workers=7", "a b", "$HOME", "--help"]
    _, out, _ = came_to(tmp_path, "-n", "1", *python("print(sys.argv[1:])"), *words)
    assert out.splitlines().count(f"[worker 0] {words}") == 1


@pytest.mark.parametrize("empty", ["MERCURY_JOB_TOKEN", "MERCURY_JOB_TOKEN_FILE"])
def test_the_token_is_shared_and_on_no_command_line(tmp_path: Path, empty: str) -> None:
    code = (
        "token = os.environ['MERCURY_JOB_TOKEN']\n"
        "import glob\n"
        "def holds(path):\n"
        "    try: return token.encode() in open(path, 'rb').read()\n"
        "    except OSError: return False\n"
        "seen = [path for path in glob.glob('/proc/[0-9]*/cmdline') if holds(path)]\n"
        "print('token', token, seen)\n"
    )
    _, out, _ = came_to(tmp_path, "-n", "2", *python(code), **{empty: " "})
    tokens = {line.split()[-2] for line in out.splitlines() if " token " in line}
    assert len(tokens) == 1
    assert len(tokens.pop()) == 64
    assert out.count("[]") == 5, out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["-n", "1"], 2, "no command to run"),
        (["-n", "0", "x"], 2, "at least one worker"),
        (["-n", "1", "-s", "0", "x"], 2, "one server"),
        (
            ["-n", "1", "-s", "beneath", "x"],
            2,
            "-s/--num-servers: 'beneath' is neither a number nor 'beside'",
        ),
        (["-n", "1", "--replicas", "1", "x"], 2, "a replica needs a server: -s 1"),
        (["-n", "1", "-s", "1", "--replicas", "9", "x"], 2, "--replicas is 0 to 8"),
        (["-n", "3000", "x"], 2, "DMLC_NUM_WORKER is '3000'; allowed: 1 to 2000"),
        (["-n", "1", "-s", "3000", "x"], 2, "DMLC_NUM_SERVER is '3000'; allowed: 1 to 2000"),
        (["-n", "1", "--port", "99999", "x"], 2, "--port: '99999' is not a port; allowed: 1 to"),
        (["-n", "1", "--trace-dri", "t", "--", "x"], 2, "did you mean '--trace-dir'?"),
        (["--trace-dri", "t", "-n", "1", "--", "x"], 2, "did you mean '--trace-dir'?"),
        (["-n1", "--num-s", "1", "-x", "--", "x"], 2, "unrecognized arguments: -x"),
        (["-n", "1", "--env", "MERCURY_LANES=many", "x"], 2, "MERCURY_LANES is 'many'"),
        (["-n", "1", "--env", "MERCURY_POLICY=p4", "x"], 2, "MERCURY_POLICY is 'p4'; allowed: "),
        (["-n", "1", "--env", "MERCURY_SERVER_SHARES=x", "x"], 2, "MERCURY_SERVER_SHARES is 'x'"),
        (["-n", "1", "--env", "MERCURY_JOB_TOKEN_FILE=/no/such", "x"], 2, "'/no/such': No such"),
        (["-n", "1", "--env", "MERCURY_LANE=2", "x"], 2, "did you mean MERCURY_LANES?"),
        (["-n", "1", "--log-dir", "/proc/x", "x"], 2, "--log-dir /proc/x: No such file"),
        (["-n", "1", "no-such-program"], 127, "cannot run no-such-program"),
        (["-n", "1", "--van", "pigeon", "x"], 2, "DMLC_PS_VAN_TYPE is 'pigeon'"),
        (["-n", "1", "--env", "NOT_SET_ANYWHERE", "x"], 2, "NOT_SET_ANYWHERE"),
        (["-n", "2", "--max-workers", "3", "x"], 2, "MERCURY_MIN_WORKERS (--min-workers) is not"),
        (["-n", "2", "--min-workers", "3", "x"], 2, "MERCURY_MIN_WORKERS is '3'; allowed: 0 to 2"),
        (["-n", "2", "--replace", "3", "x"], 2, "--replace needs --min-workers"),
        (["-n", "2", "--min-workers", "1", "--max-workers", "1", "x"], 2, "begins with 2"),
        (["-n", "2", "--min-workers", "1", "--replace", "-1", "x"], 2, "allowed: 0 or more"),
        (
            ["-n", "2", "--min-workers", "1", "--replace", "1", "--trace-dir", "t", "x"],
            2,
            "nobody joins a job that writes a trace",
        ),
        (["-n", "1", "--launcher", "ssh", "x"], 2, "needs a --hostfile"),
        (["-n", "1", "--launcher", "local", "-H", "hosts", "x"], 2, "leave out the --hostfile"),
        (["-n", "1", "--env", "DMLC_NUM_WORKER=3", "x"], 2, "DMLC_NUM_WORKER: launch sets it"),
        (["-n", "1", "--env", "DMLC_ROLE", "x"], 2, "DMLC_ROLE: launch sets it itself"),
        (["-n", "1", "-H", "/no/such/file", "x"], 2, "No such file"),
        (["-n", "1", "--host", "192.0.2.77", "x"], 2, "--host 192.0.2.77"),
    ],
)
def test_mistakes(tmp_path: Path, arguments: list[str], code: int, says: str) -> None:
    ended, _, err = came_to(tmp_path, *arguments)
    assert ended == code
    assert says in err
    assert "Traceback" not in err
