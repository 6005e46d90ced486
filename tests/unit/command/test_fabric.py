"""`mercury fabric`: plans from the command line, and what it says of bad batches."""

from __future__ import annotations

import contextlib
import json
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from pslite_ext import _core
from pslite_ext.command import fabric
from pslite_ext.command.main import main

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "fabric"
BATCH = GOLDEN / "example_batch.json"


def written(folder: Path, batch: Any) -> str:
    path = folder / "batch.json"
    path.write_text(batch if isinstance(batch, str) else json.dumps(batch))
    return str(path)


def test_the_example_is_planned(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fabric", "plan", str(BATCH)]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == json.loads((GOLDEN / "example_plan.json").read_text())
    assert err == ""


def test_the_search_is_no_worse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fabric", "plan", "--search", str(BATCH)]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["objective_s"] <= 5.4
    assert len(plan["order"]) == 5


def test_reasons_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fabric", "plan", str(BATCH), "--explain"]) == 0
    out = capsys.readouterr().out
    assert "Dropped: g1: it was computed from version 12" in out
    assert "held until 6 s for the replica" in out


def test_the_model_s_way_back_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fabric", "tree", str(BATCH)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("6 gets answered by ")
    assert sorted(line.split(":")[0] for line in out.splitlines() if line.startswith("w")) == [
        f"w{number}" for number in range(1, 7)
    ]
    batch = json.loads(BATCH.read_text()) | {"servers": ["server", "a1"], "aggregators": []}
    del batch["server"]
    batch["replica"] = None
    for update in batch["updates"]:
        update["parts"] = [1, 1]
    assert main(["fabric", "tree", written(tmp_path, batch)]) == 2
    assert "servers: a tree begins at one server; here are 2" in capsys.readouterr().err


def test_ctrl_c_ends_it_while_the_core_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def compute(*_: object) -> str:
        with contextlib.suppress(KeyboardInterrupt):  # the core hears of none
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            over.wait()
        return "what it has computed"

    monkeypatch.setattr(_core, "fabric_plan", compute)
    assert main(["fabric", "plan", str(BATCH)]) == 130
    over.set()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"delay_bound": -1}, "delay_bound: -1 is below 0"),
        ({"mode": "sync"}, "replica: it must be null"),
        ({"server": "nobody"}, 'server: there is no node "nobody" in placement'),
        ({"updates": [{"id": "a\nb"}]}, "updates[0].worker: it is missing"),
        ({"momentum": float("nan")}, "momentum: it is not JSON"),
        ({"aggregators": ["a1", "x\ny"]}, r'aggregators[1]: there is no node "x\u000ay"'),
    ],
)
def test_bad_batches(
    change: dict[str, Any], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, json.loads(BATCH.read_text()) | change)
    assert main(["fabric", "plan", path]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.count("\n") == 1


def test_unreadable_batches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (str(tmp_path / "nowhere"), str(tmp_path), written(tmp_path, "{")):
        assert main(["fabric", "plan", path]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"mercury fabric plan: {path!r}")
        assert err.count("\n") == 1
    (tmp_path / "latin").write_bytes(b'{"mode": "\xe9"}')
    assert main(["fabric", "plan", str(tmp_path / "latin")]) == 2
    assert "mode: it is not JSON: line 1, column 11: it is not UTF-8" in capsys.readouterr().err


def test_too_large_files_are_not_read_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fabric, "BATCH_MIB_MOST", 1)
    path = written(tmp_path, BATCH.read_text() + " " * (1 << 20))
    assert main(["fabric", "plan", path]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"mercury fabric plan: {path!r} cannot be read: it is larger than 1 MiB\n"


def test_plans_are_timed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fabric", "time", "3", "10", "--repeat", "2", "--aggregators", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["updates", "3", "10"]
    assert lines[2].split()[-1] == "5"
