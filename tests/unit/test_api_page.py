"""docs/api.md has every public name and no other, and each says what it does."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tracer
from pslite_ext import errors
from pslite_ext.command import main
from scripts.docs.commands import helps

ROOT = Path(__file__).resolve().parents[2]
NAMES = re.findall(r"^::: ([\w.]+)$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
STORES = ("mxnet_plugins/base_store.py", "mxnet_plugins/kvstore.py")


def _all_of(package: str) -> list[str]:
    """`__all__`, without an import: some packages join a job as they are imported."""
    tree = ast.parse((ROOT / package.replace(".", "/") / "__init__.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [f"{package}.{name}" for name in ast.literal_eval(node.value)]
    raise AssertionError(f"{package} has no __all__")


def test_public_names_are_there_and_no_others() -> None:
    packages = ("mxnet_plugins", "pslite_ext.torch", "pslite_ext.fabric")
    public = {name for package in packages for name in _all_of(package)}
    public |= {f"{home}.{name}" for name, home in tracer._HOME.items()}
    kinds: list[type[errors.PsliteError]] = [errors.PsliteError, *errors.BY_CODE.values()]
    public |= {f"{errors.__name__}.{kind.__name__}" for kind in kinds}
    public.add("mxnet_plugins.kvstore.MercuryKVStore")
    public.add("pslite_ext.saving.checkpoint.Checkpoint")
    assert sorted(NAMES) == sorted(public)


@pytest.mark.parametrize("path", STORES)
def test_what_scripts_call_says_what_it_does(path: str) -> None:
    tree = ast.parse((ROOT / path).read_text())
    store = next(node for node in tree.body if isinstance(node, ast.ClassDef))
    methods = [node for node in store.body if isinstance(node, ast.FunctionDef)]
    silent = [f.name for f in methods if not f.name.startswith("_") and not ast.get_docstring(f)]
    assert silent == []


def test_commands_inside_commands_are_found() -> None:
    programs = [name for name, _ in helps(main.parser_of("trace"))]
    assert programs[0] == "mercury trace"
    assert "mercury trace report" in programs
    assert len(programs) == len(set(programs))


def test_help_needs_nothing_that_is_built_or_installed() -> None:
    missing = ("pslite_ext._core", "numpy", "mxnet", "torch", "matplotlib")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({missing}))\n"
        "from scripts.docs.commands import helps, main\n"
        "[list(helps(main.parser_of(name))) for name in main.commands()]"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
