"""`mercury doctor` notices packages of others under our names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pslite_ext.command.doctor import check_frameworks

ROOT = Path(__file__).resolve().parents[3]
COMMAND = "import sys\nfrom pslite_ext.command.doctor import main\nsys.exit(main(['--json']))\n"


def imports(here: Path, *path: Path) -> list[dict[str, str]]:
    """What it says of imports, started in `here` as a script elsewhere, with this PYTHONPATH."""
    script = here / "bin" / "mercury-doctor"
    script.parent.mkdir()
    script.write_text(COMMAND)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    done = subprocess.run(
        [sys.executable, str(script)], cwd=here, env=env, capture_output=True, text=True
    )
    findings: list[dict[str, str]] = json.loads(done.stdout)
    return [finding for finding in findings if finding["subject"] == "imports"]


def test_ours_are_found_first(tmp_path: Path) -> None:
    (finding,) = imports(tmp_path)
    assert finding["state"] == "OK"
    assert str(ROOT) in finding["text"]


@pytest.mark.parametrize("file", ["tracer.py", "tracer/__init__.py", "mxnet_plugins/__init__.py"])
def test_another_of_the_name_is_found_first(file: str, tmp_path: Path) -> None:
    other = tmp_path / "other" / file
    other.parent.mkdir(parents=True)
    other.touch()
    (finding,) = imports(tmp_path, tmp_path / "other")
    name = file.split("/")[0]
    assert finding["state"] == "FAIL"
    text = f"{Path(name).stem} is found as {tmp_path}/other/{name}, before ours in {ROOT}"
    assert finding["text"].startswith(text)
    assert f"take {tmp_path}/other off PYTHONPATH" in finding["text"]


def test_a_script_would_find_another(tmp_path: Path) -> None:
    (tmp_path / "tracer.py").touch()
    (finding,) = imports(tmp_path)
    assert finding["state"] == "WARN"
    text = f"a script in {tmp_path} finds tracer as {tmp_path}/tracer.py, before ours in {ROOT}"
    assert finding["text"].startswith(text)


def test_the_tree_is_found_before_what_is_installed(tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    for folder in ("pslite_ext", "mercury_ps-0.1.0.dist-info"):
        (installed / folder).mkdir(parents=True)
    (installed / "pslite_ext" / "__init__.py").touch()
    metadata = "Metadata-Version: 2.1\nName: mercury-ps\nVersion: 0.1.0\n"
    (installed / "mercury_ps-0.1.0.dist-info" / "METADATA").write_text(metadata)
    first = imports(tmp_path, ROOT, installed)[0]
    assert first["state"] == "FAIL"
    assert first["text"].startswith(f"pslite_ext is found as {ROOT}/pslite_ext, before ours in")


@pytest.mark.parametrize(
    ("installed", "found"),
    [
        ({"mxnet": "1.9.1+mercury.1", "numpy": "1.26.4"}, {"mxnet": "OK", "numpy": "OK"}),
        ({"mxnet": "1.9.1", "numpy": "2.2.0"}, {"mxnet": "FAIL", "numpy": "FAIL"}),
        ({"mxnet-cu112": "1.9.1+mercury.1"}, {"mxnet": "OK", "numpy": "FAIL"}),
        (
            {"mxnet": "1.9.1+mercury.1", "mxnet-cu112": "1.9.1+mercury.1", "numpy": "1.26.4"},
            {"mxnet": "FAIL", "numpy": "OK"},
        ),
        # Whom MXNet is no business of.
        ({"torch": "2.4.1+cpu", "numpy": "2.2.0"}, {"torch": "OK"}),
        ({"torch": "1.13.1"}, {"torch": "FAIL"}),
        ({"numpy": "2.2.0"}, {"frameworks": "WARN"}),
        ({}, {"frameworks": "FAIL"}),
    ],
)
def test_frameworks(installed: dict[str, str], found: dict[str, str]) -> None:
    findings = list(check_frameworks(installed, (3, 12)))
    assert {finding.subject: finding.state for finding in findings} == found
    bad = [finding.text for finding in findings if finding.state != "OK"]
    assert all(": " in text for text in bad)  # what to do


def test_a_python_that_mxnet_is_too_old_for() -> None:
    """PyTorch is not."""
    mxnet = {"mxnet": "1.9.1+mercury.1", "numpy": "2.0.2"}
    states = [finding.state for finding in check_frameworks(mxnet, (3, 13))]
    assert states == ["FAIL", "OK", "OK"]
    assert [f.state for f in check_frameworks({"torch": "2.9.1"}, (3, 13))] == ["OK"]
