"""The patched wheel: a valid wheel, the same every time."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import zipfile
from pathlib import Path

import pytest

from pslite_ext import __version__
from scripts import build_wheel, patches

pytestmark = pytest.mark.xdist_group("wheel")  # the fixture's is built once, not by every process


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = patches.find_source("mxnet")
    return build_wheel.build(source, patches.fetch(source), tmp_path_factory.mktemp("dist"))


def test_record_is_complete_and_true(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        info = "mxnet-1.9.1+mercury.1.dist-info"
        rows = list(csv.reader(io.StringIO(archive.read(f"{info}/RECORD").decode())))
        assert sorted(row[0] for row in rows) == sorted(archive.namelist())
        for name, digest, size in rows:
            if name == f"{info}/RECORD":
                assert (digest, size) == ("", "")
                continue
            data = archive.read(name)
            assert int(size) == len(data)
            found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert digest == f"sha256={found}", name


def test_metadata(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read("mxnet-1.9.1+mercury.1.dist-info/METADATA").decode()
    assert "\nName: mxnet\nVersion: 1.9.1+mercury.1\n" in text
    assert f"\nRequires-Dist: mercury-ps (=={__version__})\n" in text
    assert "numpy (<2.0.0" not in text


def test_what_is_changed_is_told(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        licenses = "mxnet-1.9.1+mercury.1.dist-info/licenses"
        assert "Apache License" in archive.read(f"{licenses}/LICENSE").decode()
        notice = archive.read(f"{licenses}/NOTICE").decode()
    for name in ("mxnet/__init__.py", "mxnet/kvstore/kvstore_server.py", "dmlc_tracker/local.py"):
        assert f"\n{name}\n" in notice


def test_the_library_is_untouched(wheel: Path) -> None:
    source = patches.fetch(patches.find_source("mxnet"))
    with zipfile.ZipFile(wheel) as ours, zipfile.ZipFile(source) as theirs:
        name = "mxnet/libmxnet.so"
        assert ours.getinfo(name).CRC == theirs.getinfo(name).CRC


def test_rebuilt_byte_for_byte(wheel: Path, tmp_path: Path) -> None:
    source = patches.find_source("mxnet")
    (tmp_path / "mxnet_cu112-1.9.1+mercury.1-py3-none-any.whl").touch()
    again = build_wheel.build(source, patches.fetch(source), tmp_path)
    assert patches.file_sha256(again) == patches.file_sha256(wheel)
    assert [*tmp_path.iterdir()] == [again]  # the other's files would be installed over its
