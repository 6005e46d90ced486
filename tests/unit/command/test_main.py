"""The mercury command and its doctor."""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pslite_ext import __version__
from pslite_ext.command import doctor, lab, main
from pslite_ext.command.output import say
from tests.cluster import ROOT, clean_environment, mercury

BATCH = ROOT / "tests" / "golden" / "fabric" / "example_batch.json"


def test_help_lists_the_commands() -> None:
    result = mercury("--help")
    assert result.returncode == 0
    for name in ("launch", "trace", "doctor", "settings", "completion", "version"):
        assert name in result.stdout
        assert mercury(name, "--help").returncode == 0
    assert mercury().returncode == 2


def test_unknown_command() -> None:
    result = mercury("lunch")
    assert result.returncode == 2
    assert "no command 'lunch'; did you mean 'launch'?" in result.stderr
    assert result.stderr.count("\n") == 1
    assert "did you mean 'mercury trace stats'?" in mercury("stats", "run").stderr
    assert "no option '--versoin'; did you mean '--version'?" in mercury("--versoin").stderr


def test_version() -> None:
    for words in (["--version"], ["version"]):
        result = mercury(*words)
        assert (result.returncode, result.stdout) == (0, f"mercury-ps {__version__}\n")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["trace", "stat", "run"], "did you mean 'stats'?"),
        (["trace", "plot", "run", "--iteraton", "3"], "did you mean '--iteration'?"),
        (["sim", "predic"], "did you mean 'predict'?"),
        (["doctor", "--jsn"], "did you mean '--json'?"),
        (["settings", "--markdwn"], "did you mean '--markdown'?"),
        (["version", "3"], "unrecognized arguments: 3"),
        (["completion", "tcsh"], "invalid choice: 'tcsh'"),
        (["lab", "upp"], "did you mean 'up'?"),
    ],
)
def test_wrong_words_are_exit_code_2(words: list[str], says: str) -> None:
    result = mercury(*words)
    assert result.returncode == 2
    assert says in result.stderr


def test_the_lab_is_a_command_in_the_tree_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "lab" in main.commands()
    monkeypatch.setattr(lab, "ROOT", ROOT / "pslite_ext")
    assert "lab" not in main.commands()
    assert main.main(["lab"]) == 2


def test_settings() -> None:
    result = mercury("settings")
    assert "MERCURY_HEARTBEAT_TIMEOUT_MS" in result.stdout
    assert mercury("settings", "--markdown").stdout == (ROOT / "docs" / "settings.md").read_text()


@pytest.mark.parametrize("words", [("settings",), ("fabric", "plan", str(BATCH)), ()])
def test_a_full_disk_behind_stdout_is_one_line(words: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "tracer", *words],
            cwd=ROOT,
            env=clean_environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert result.returncode == 2
    name = " ".join(["mercury", *words[:1]])
    assert result.stderr == f"{name}: stdout cannot be written: No space left on device\n"


def test_a_job_s_exit_code_is_not_lost_on_a_full_disk(tmp_path: Path) -> None:
    words = ["launch", "-n", "1", "--log-dir", str(tmp_path), "--", "sh", "-c", "exit 7"]
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "tracer", *words],
            cwd=ROOT,
            env=clean_environment(PYTHONUNBUFFERED="1"),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert result.returncode == 7
    assert "stdout cannot be written" not in result.stderr


@pytest.mark.parametrize(
    ("shell", "code", "says"),
    [
        ("exec {} version >&-", 0, ""),
        ("exec {} lunch >&- 2>&-", 2, ""),
        ("exec {} launch -n 1 --log-dir {}/logs -- echo shown <&- >&- 2>&-", 0, ""),
        (
            "ulimit -n 12; exec {} launch -n 1 --log-dir {}/logs -- true",
            2,
            "mercury launch: Too many open files: raise the limit, as by `ulimit -n 4096`\n",
        ),
    ],
)
def test_closed_streams_and_few_files_are_no_traceback(
    shell: str, code: int, says: str, tmp_path: Path
) -> None:
    words = shell.format(f"{sys.executable} -m tracer", tmp_path)
    environ = clean_environment(PYTHONPATH=str(ROOT))
    result = subprocess.run(["bash", "-c", words], env=environ, capture_output=True, text=True)
    assert (result.returncode, result.stderr, result.stdout) == (code, says, "")
    for log in (tmp_path / "logs").glob("*_0.log"):
        assert log.read_text() == "shown\n"


def test_an_interrupted_command_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "main", interrupted)
    assert main.main(["doctor"]) == 130
    assert capsys.readouterr() == ("", "")


def test_what_stdout_s_encoding_lacks_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    def speaks(_: object) -> int:
        say("caf\u00e9\n")
        return 0

    kept = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(kept, encoding="ascii"))
    monkeypatch.setattr(doctor, "main", speaks)
    assert main.main(["doctor"]) == 0
    assert kept.getvalue() == b"caf\\xe9\n"


@pytest.mark.parametrize("words", [["doctor"], ["doctor", "--help"]])
def test_an_unbuffered_stdout_may_be_full_too(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("/dev/full", "wb", buffering=0) as full:
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(full, write_through=True))
        assert main.main(words) == 2
    said = "mercury doctor: stdout cannot be written: No space left on device\n"
    assert capsys.readouterr().err == said


def test_a_folder_that_was_removed_meanwhile(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main.main(["doctor"]) == 2
    assert "mercury doctor: the current folder is gone" in capsys.readouterr().err


def test_doctor_in_good_health() -> None:
    result = mercury("doctor", "--json")
    findings = {f["subject"]: f for f in json.loads(result.stdout)}
    assert result.returncode == 0, result.stdout
    assert findings["mxnet"]["state"] == "OK"
    assert "patched" in findings["mxnet"]["text"]


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"DMLC_PS_VAN_TYPE": "x"}, "FAIL  settings"),
        ({"DMLC_PS_VAN_TYPE": "zmq"}, "DMLC_ROLE is not set"),
        ({"MERCURY_POLICYY": "fifo"}, "did you mean MERCURY_POLICY?"),
    ],
)
def test_doctor_finds_bad_settings(env: dict[str, str], says: str) -> None:
    result = mercury("doctor", env=clean_environment(**env))
    assert result.returncode == 1
    assert says in result.stdout


def test_doctor_finds_a_taken_port() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        env = {"DMLC_PS_VAN_TYPE": "zmq", "DMLC_ROLE": "scheduler", "DMLC_PS_ROOT_PORT": port}
        env |= {"DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_NUM_WORKER": "1", "DMLC_NUM_SERVER": "1"}
        result = mercury("doctor", env=clean_environment(**env))
    assert result.returncode == 1
    assert f"FAIL  port        127.0.0.1:{port}" in result.stdout
    assert "WARN  token" in result.stdout
