"""What goes into wheels: licences, types, commands."""

from __future__ import annotations

from pslite_ext import __version__
from scripts import patches
from tests.cluster import ROOT

PYPROJECT = (ROOT / "pyproject.toml").read_text()


def test_the_version_is_one() -> None:
    assert f'\nversion = "{__version__}"\n' in PYPROJECT


def test_types_are_there_for_who_imports_us() -> None:
    for package in ("pslite_ext", "mxnet_plugins", "tracer"):
        assert (ROOT / package / "py.typed").exists()
        assert f'"{package}"' in PYPROJECT.partition("wheel.packages")[2].splitlines()[0]


def test_what_is_linked_in_is_named_with_its_licence() -> None:
    notice = (ROOT / "NOTICE").read_text()
    cmake = (ROOT / "CMakeLists.txt").read_text()
    for name, known_as in (("ps-lite", "ps-lite"), ("zeromq", "libzmq")):
        source = patches.find_source(name)
        assert f"{source.project} {source.version}" in notice
        assert f"patches/{name}" in notice
        assert f"DESTINATION ${{LICENSES}}/{known_as})" in cmake
    libraries = [n for n, s in patches.load_sources().items() if s.kind == "sdist"]
    assert sorted(libraries) == ["ps-lite", "zeromq"], "name it in NOTICE, install its licence"


def test_there_is_a_second_name_for_the_command() -> None:
    entry = '"pslite_ext.command.main:main"'
    assert f"\nmercury = {entry}" in PYPROJECT
    assert f"\nmercury-ps = {entry}" in PYPROJECT
