"""`mercury profile`: real layers' times, as a job for the model and the lab."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pslite_ext.command.profile import main
from pslite_ext.forecast.model.job_file import read_job
from pslite_ext.forecast.model.predict import predict

NETS = """
import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn

def plain():
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(2, 3), nn.BatchNorm(), nn.MaxPool2D(), nn.Dense(500), nn.Dense(10))
    net.hybridize()
    return net

class Tied(gluon.Block):
    def __init__(self):
        super().__init__(prefix="tied_")
        with self.name_scope():
            self.words = nn.Embedding(100, 16)
            self.back = nn.Dense(100, in_units=16, flatten=False, params=self.words.params)
            self.idle = nn.Dense(3, in_units=2)
    def forward(self, x):
        return self.back(self.words(x)), x

def with_inputs():
    return Tied(), mx.nd.ones((4, 8))

def no_block():
    return 5

def no_array():
    return Tied(), [mx.nd.ones((4, 8)), 5]

def raises():
    raise KeyError("data")
"""


@pytest.fixture
def nets(tmp_path: Path) -> str:
    pytest.importorskip("mxnet")
    path = tmp_path / "nets.py"
    path.write_text(NETS)
    return str(path)


def profile(tmp_path: Path, *words: str) -> dict[str, Any]:
    out = tmp_path / "job.json"
    assert main([*words, "--repeats", "2", "--out", str(out), "--quiet"]) == 0
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def test_a_profile_is_a_job_with_the_model_s_own_tensors(nets: str, tmp_path: Path) -> None:
    found = profile(tmp_path, f"{nets}:plain", "--batch", "8", "--shape", "1,28,28")
    names = [layer["name"] for layer in found["layers"]]
    assert names == [
        "net_conv0_weight", "net_conv0_bias",
        "net_batchnorm0_gamma", "net_batchnorm0_beta",  # its running figures are not exchanged
        "net_dense0_weight", "net_dense0_bias", "net_dense1_weight", "net_dense1_bias",
    ]  # fmt: skip
    sizes = {layer["name"]: layer["bytes"] for layer in found["layers"]}
    assert sizes["net_dense0_weight"] == 2 * 13 * 13 * 500 * 4
    assert found["inputs"] == "8x1x28x28"
    job = read_job(tmp_path / "job.json")
    assert job.compute_s == pytest.approx(found["iteration_s"])
    forward = sum(layer.fp_s for layer in job.layers)
    assert forward == pytest.approx(found["iteration_s"] * found["forward_share"])
    # All of a layer's gradients are ready at once: its time is on its last tensor.
    assert [layer.bp_s > 0 for layer in job.layers] == [False, True] * 4
    assert predict(job, 1e6).iteration_s > job.compute_s


def test_the_lab_and_known_models_take_it(nets: str, tmp_path: Path) -> None:
    found = profile(tmp_path, f"{nets}:plain", "--batch", "2", "--shape", "1,28,28")
    from scripts.lab.workloads.workload import WorkloadError, load

    path = tmp_path / "job.json"
    workload = load(str(path))
    assert workload.compute_s == pytest.approx(found["iteration_s"])
    assert [len(layer) for layer in workload.layers()] == [2, 2, 2, 2]
    assert load("lenet5", path).compute_s == pytest.approx(found["iteration_s"])
    with pytest.raises(WorkloadError, match="cannot be read"):
        load(str(tmp_path / "other.json"))


def test_inputs_of_its_own_shared_and_idle_parameters(
    nets: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = profile(tmp_path, f"{nets}:with_inputs")
    names = [layer["name"] for layer in found["layers"]]
    assert names == ["tied_embedding0_weight", "tied_embedding0_bias"]
    assert found["inputs"] == "4x8"
    assert "left out: tied_dense1_weight, tied_dense1_bias" in capsys.readouterr().out


BAD = [
    (["no-such-net"], "'no-such-net' is not FILE.py:FUNCTION"),
    (["missing.py:net"], "missing.py: is not a Python file"),
    (["{nets}:missing"], "has no function 'missing'"),
    (["{nets}:no_block"], "returns no gluon block, but int"),
    (["{nets}:no_array"], "an input that is no NDArray, but int: make it one with mx.nd.array"),
    (["{nets}:raises"], "raises: KeyError: 'data'"),
    (["{nets}:with_inputs", "--shape", "3"], "brings its own inputs"),
    (["{nets}:plain", "--shape", "3,x"], "not of the form 3,224,224"),
    (["{nets}:plain", "--shape", "7"], "with an input of 32x7"),
    (["{nets}:plain", "--gpu", "99"], "--gpu 99: MXNet sees"),
    (["{nets}:plain", "--shape", "1,9,9", "--out", "/no/such/folder/x.json"], "cannot be written"),
]


@pytest.mark.parametrize(("words", "says"), BAD)
def test_what_is_wrong_is_one_line_and_exit_code_2(
    nets: str, words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*(word.format(nets=nets) for word in words), "--quiet"]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.startswith("mercury profile: ")
    assert error.count("\n") == 1


def test_ctrl_c_leaves_no_file(nets: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pslite_ext.command import layer_times

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(layer_times, "_timed", interrupted)
    out = tmp_path / "job.json"
    with pytest.raises(KeyboardInterrupt):
        main([f"{nets}:plain", "--shape", "1,9,9", "--out", str(out)])
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["nets.py"]


def test_without_mxnet_it_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mxnet", None)
    assert main(["alexnet"]) == 2
    assert "needs MXNet, and it does not load" in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert "FILE.py:FUNCTION" in capsys.readouterr().out
